//! Arrays from C: the views of arrays of known length, and the error for NULL.

use crate::constants::MPI_ERR_ARG;
use crate::error::Error;
use std::mem::MaybeUninit;
use std::slice;

type Result<T> = std::result::Result<T, Error>;

/// An array that is read. It may be NULL if it is empty.
///
/// # Safety
/// `start` is NULL or the start of `length` Ts that nothing changes during the call.
#[inline(always)]
pub unsafe fn slice<'a, T>(name: &str, start: *const T, length: usize) -> Result<&'a [T]> {
    if length == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller promises this array or string, and the pointer is not NULL.
    Ok(unsafe { slice::from_raw_parts(start, length) })
}

/// An array that is read and written. It may be NULL if it is empty.
///
/// # Safety
/// `start` is NULL or the start of `length` Ts that nothing else touches during the call.
#[inline(always)]
pub unsafe fn slice_mut<'a, T>(name: &str, start: *mut T, length: usize) -> Result<&'a mut [T]> {
    if length == 0 {
        return Ok(&mut []);
    }
    if start.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller promises this array or string, and the pointer is not NULL.
    Ok(unsafe { slice::from_raw_parts_mut(start, length) })
}

/// An array that is written. It may be NULL if it is empty.
///
/// # Safety
/// As for [`slice_mut`], but the Ts need not be initialised.
#[inline(always)]
pub unsafe fn slice_out<'a, T>(
    name: &str,
    start: *mut T,
    length: usize,
) -> Result<&'a mut [MaybeUninit<T>]> {
    // SAFETY: the caller promises this array; a MaybeUninit needs no initialisation.
    unsafe { slice_mut(name, start.cast(), length) }
}

#[cold]
#[inline(never)]
pub(crate) fn null(name: &str) -> Error {
    let detail = format!("{name} is NULL; it must point to memory of the caller");
    Error::new(MPI_ERR_ARG, detail)
}
