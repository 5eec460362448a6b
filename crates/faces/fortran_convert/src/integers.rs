//! Addresses of MPI 1: integers of the default kind.

use abi_convert::array::Array;
use std::ffi::c_int;

/// Fills an array with addresses.
///
/// # Safety
/// The address is that of so many integers.
pub unsafe fn widen(to: &mut Array<isize>, from: *const c_int, length: i64) {
    // SAFETY: promised.
    to.fill(length, |at| unsafe { *from.add(at) } as isize);
}
