//! The conversion of indices of arrays from C, where they begin with 0, to Fortran, where they
//! begin with 1.

use crate::constants::Constants;
use std::ffi::c_int;

/// Converts an index that the library has written. A negative one is MPI_UNDEFINED.
///
/// # Safety
/// The address is that of an index.
#[inline(always)]
pub unsafe fn from_c(place: *mut c_int) {
    // SAFETY: promised.
    unsafe {
        if *place >= 0 {
            *place += 1;
        }
    }
}

/// Converts `count` indices that a call with this error code has written. `count` is MPI_UNDEFINED
/// if it wrote none.
///
/// # Safety
/// The address is that of `count` indices.
pub unsafe fn all_from_c<A: Constants>(code: c_int, places: *mut c_int, count: c_int) {
    if code == 0 || code == A::MPI_ERR_IN_STATUS {
        for at in 0..count.max(0) as usize {
            // SAFETY: promised.
            unsafe { from_c(places.add(at)) };
        }
    }
}
