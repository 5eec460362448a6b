//! Conversions between handles of files and statuses of C and Fortran.

use crate::abi::Abi;
use crate::convert::{file_in, file_out};
use crate::standard;
use std::ffi::c_int;

/// Copies a status, which has the same fields in C and in Fortran.
///
/// # Safety
/// The pointers are those of statuses.
pub unsafe fn copy<A: Abi>(from: *const A::Status, to: *mut A::Status) -> c_int {
    if from as usize <= 1 || to as usize <= 1 {
        return A::MPI_ERR_ARG as c_int;
    }
    // SAFETY: promised, and these are no ignored statuses.
    unsafe { *to = *from };
    0
}

/// Fortran's MPI_FILE_NULL, in both ABIs.
const FILE_NULL: c_int = 0;

/// Fortran's integer of a file. A file is a pointer, for which the library has an integer.
pub fn file_toint<A: Abi>(file: usize) -> c_int {
    if file == A::file_null() {
        return FILE_NULL;
    }
    // SAFETY: any word is an argument of this function.
    unsafe { standard::file_toint(file_in::<A>(file)) }
}

/// The file of Fortran's integer.
pub fn file_fromint<A: Abi>(file: c_int) -> usize {
    if file == FILE_NULL {
        return A::file_null();
    }
    // SAFETY: any word is an argument of this function.
    file_out::<A>(unsafe { standard::file_fromint(file) })
}
