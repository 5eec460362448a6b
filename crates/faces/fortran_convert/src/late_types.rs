//! Arrays of C's datatypes that the library may read until a request is complete: those of
//! nonblocking and persistent collectives with a datatype for each peer.

use crate::abi::Abi;
use crate::handle::{Datatype, Request, from_integer, to_integer};
use crate::requests;
use std::ffi::c_int;

/// The arrays of a call, before its request keeps them.
pub struct LateTypes<A: Abi> {
    arrays: Vec<Vec<A::Handle>>,
}

#[allow(clippy::new_without_default)] // a default is no statement of a call
impl<A: Abi> LateTypes<A> {
    /// A list without arrays.
    pub fn new() -> LateTypes<A> {
        LateTypes { arrays: Vec::new() }
    }

    /// Converts an array of Fortran datatypes to C's handles, and returns its address.
    ///
    /// # Safety
    /// The address is that of `count` handles.
    pub unsafe fn add(&mut self, types: *const c_int, count: i64) -> *const A::Handle {
        // SAFETY: promised.
        let type_at = |at| from_integer::<A, Datatype>(unsafe { *types.add(at) });
        let array = (0..count.max(0) as usize).map(type_at).collect();
        self.arrays.push(array);
        // The array does not move when the list of arrays grows.
        self.arrays
            .last()
            .map_or(std::ptr::null(), |array| array.as_ptr())
    }

    /// Keeps the arrays as long as the request that the library has made.
    pub fn keep(self, request: A::Handle) {
        if request != A::Handle::default() {
            requests::keep_types(to_integer::<A, Request>(request), self.arrays);
        }
    }
}
