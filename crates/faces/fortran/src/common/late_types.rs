//! Arrays of C's datatypes that the library may read until a request is complete: those of
//! nonblocking and persistent exchanges with a datatype for each peer.

use crate::common::handle::{Datatype, Request, Word, from_integer, to_integer};
use crate::common::requests;
use crate::program::handles;
use std::ffi::c_int;

pub(crate) struct LateTypes {
    arrays: Vec<Vec<handles::Datatype>>,
}

impl LateTypes {
    pub(crate) fn new() -> LateTypes {
        LateTypes { arrays: Vec::new() }
    }

    /// C's handles of an array of datatypes.
    ///
    /// # Safety
    /// The address is that of so many handles.
    pub(crate) unsafe fn add(
        &mut self,
        types: *const c_int,
        count: i64,
    ) -> *const handles::Datatype {
        // SAFETY: promised.
        let type_at = |at| from_integer::<Datatype>(unsafe { *types.add(at) });
        let array = (0..count.max(0) as usize).map(type_at).collect();
        self.arrays.push(array);
        // The array stays where it is when the list of arrays moves.
        self.arrays
            .last()
            .map_or(std::ptr::null(), |array| array.as_ptr())
    }

    /// Keeps the arrays as long as the request that the library has made.
    pub(crate) fn keep(self, request: handles::Request) {
        if request != handles::Request::NONE {
            requests::keep_types(to_integer::<Request>(request), self.arrays);
        }
    }
}
