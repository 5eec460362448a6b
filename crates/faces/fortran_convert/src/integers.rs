//! The conversion of arrays of addresses of MPI 1's procedures, which are integers of the default
//! kind in Fortran.

use abi_convert::array::Array;
use std::ffi::c_int;

/// Fills an array with addresses for MPI 1's integers.
///
/// # Safety
/// The address is that of `length` integers.
pub unsafe fn widen(to: &mut Array<isize>, from: *const c_int, length: i64) {
    // SAFETY: promised.
    to.fill(length, |at| unsafe { *from.add(at) } as isize);
}
