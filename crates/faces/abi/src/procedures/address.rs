//! Section 5.1: addresses and their differences.

use crate::args::Out;
use crate::call_guard::Running;
use crate::error::Done;
use std::ffi::c_void;

/// `MPI_Get_address` (MPI 5.0, chapter 5).
pub fn get_address(_: &Running, location: *const c_void, address: Out<isize>) -> Done {
    address.set(location as isize);
    Ok(())
}

/// `MPI_Aint_add` (MPI 5.0, chapter 5).
#[inline]
pub fn aint_add(base: isize, displacement: isize) -> isize {
    base.wrapping_add(displacement)
}

/// `MPI_Aint_diff` (MPI 5.0, chapter 5).
#[inline]
pub fn aint_diff(one: isize, other: isize) -> isize {
    one.wrapping_sub(other)
}
