//! Arrays of converted handles that the library may read until a request is complete: those of
//! nonblocking and persistent collectives with a datatype for each peer.

use crate::abi::Abi;
use crate::handle::Handles;
use crate::kept_arrays;

/// The arrays of a call, before its request keeps them.
#[derive(Default)]
pub struct LateArrays {
    arrays: Vec<Vec<usize>>,
}

impl LateArrays {
    /// Converts an array of the program's datatypes to the standard's handles.
    ///
    /// # Safety
    /// The address is NULL or that of `count` handles.
    pub unsafe fn types<A: Abi>(&mut self, types: *const A::Handle, count: usize) -> *const usize {
        if types.is_null() {
            return std::ptr::null();
        }
        // SAFETY: promised.
        let standard =
            (0..count).map(|at| A::classes().datatype.standard(unsafe { *types.add(at) }));
        self.arrays.push(standard.collect());
        // The array does not move when the list of arrays grows.
        self.arrays
            .last()
            .map_or(std::ptr::null(), |array| array.as_ptr())
    }

    /// Writes the handle of the request that the library has made, and keeps the arrays as long as
    /// the request.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    pub unsafe fn keep<A: Abi>(self, request: *mut A::Handle, standard: usize) {
        if standard == 0 || request.is_null() {
            return;
        }
        let requests = &A::classes().request;
        let (handle, index) = requests.with_index(standard);
        // SAFETY: promised.
        unsafe { *request = handle };
        kept_arrays::keep(index, self.arrays, requests.mark(index));
    }
}
