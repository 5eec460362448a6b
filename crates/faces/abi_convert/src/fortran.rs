//! Conversions of file handles and statuses between C and Fortran.

use crate::abi::Abi;
use crate::convert::{file_in, file_out};
use crate::standard;
use std::ffi::c_int;

/// Copies a status, which has the same fields in C and in Fortran.
///
/// # Safety
/// The pointers are those of statuses, or constants for ignored statuses.
pub unsafe fn copy<A: Abi>(from: *const A::Status, to: *mut A::Status) -> c_int {
    if from as usize <= 1 || to as usize <= 1 {
        return A::MPI_ERR_ARG as c_int;
    }
    // SAFETY: promised, and the check above excludes the constants for ignored statuses.
    unsafe { *to = *from };
    0
}

/// MPI_FILE_NULL of Fortran, in both ABIs.
const FILE_NULL: c_int = 0;

/// The Fortran integer of a file. A file is a pointer, to which the library assigns an integer.
pub fn file_toint<A: Abi>(file: usize) -> c_int {
    if file == A::file_null() {
        return FILE_NULL;
    }
    // SAFETY: the function accepts any value.
    unsafe { standard::file_toint(file_in::<A>(file)) }
}

/// The file handle for a Fortran integer.
pub fn file_fromint<A: Abi>(file: c_int) -> usize {
    if file == FILE_NULL {
        return A::file_null();
    }
    // SAFETY: the function accepts any value.
    file_out::<A>(unsafe { standard::file_fromint(file) })
}
