//! The user's buffer in C: an address, a count and a datatype.
//!
//! What must hold: a buffer of a predefined datatype costs a look at its size, and touches neither the
//! table of datatypes nor a reference count. All else, and what an error says, stands out of line.

use crate::constants::*;
use crate::error::Error;
use crate::handle::Datatype;
use datatype::{Buffer, Elements, Predefined, Type};
use mpi::State;
use std::ffi::c_void;

/// Nothing of a program lies below: Linux maps no memory there.
const FIRST_PAGE: usize = 4096;

/// The buffer of a communication call.
///
/// # Safety
/// By the standard's rules the memory belongs to the call until the operation completes: it is readable, and writable
/// if the operation receives.
#[inline(always)]
pub unsafe fn buffer(
    state: &State,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
) -> Result<Buffer, Error> {
    let bytes = if address.addr() >= FIRST_PAGE {
        dense(count, datatype)
    } else {
        None
    };
    // SAFETY: the caller's promise.
    let mut buffer = unsafe { Buffer::dense(address.cast_mut().cast(), bytes.unwrap_or(0)) };
    if bytes.is_none() {
        // SAFETY: the same.
        buffer = unsafe { any(state, address, count, datatype) }?;
    }
    Ok(buffer)
}

/// The same where MPI_IN_PLACE may stand for the address; it gives `None`, and count and datatype are not looked at.
///
/// # Safety
/// As for [`buffer`].
#[inline(always)]
pub unsafe fn buffer_unless_in_place(
    state: &State,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
) -> Result<Option<Buffer>, Error> {
    if address == MPI_IN_PLACE.cast_const() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { buffer(state, address, count, datatype) }.map(Some)
}

/// The elements of a reduction.
///
/// # Safety
/// As for [`buffer`].
#[inline]
pub unsafe fn elements(
    state: &State,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
) -> Result<Elements, Error> {
    let start = address.cast_mut().cast();
    if address.addr() >= FIRST_PAGE
        && dense(count, datatype).is_some()
        && let Some(basic) = Predefined::from_handle(datatype.0)
    {
        // SAFETY: the caller's promise.
        return Ok(unsafe { Elements::new(start, count as usize, &Type::Predefined(basic)) });
    }
    // SAFETY: the same.
    unsafe {
        any(state, address, count, datatype)?;
        let ty = state.types.committed(datatype.id())?;
        Ok(Elements::new(start, count as usize, &ty))
    }
}

/// The same where MPI_IN_PLACE may stand for the address; it gives `None`.
///
/// # Safety
/// As for [`buffer`].
#[inline]
pub unsafe fn elements_unless_in_place(
    state: &State,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
) -> Result<Option<Elements>, Error> {
    if address == MPI_IN_PLACE.cast_const() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { elements(state, address, count, datatype) }.map(Some)
}

/// How many bytes in a row the elements are, if the datatype is a predefined one without gaps.
#[inline(always)]
fn dense(count: i64, datatype: Datatype) -> Option<usize> {
    let size = Predefined::dense_size(datatype.0)?;
    Some(count.checked_mul(size as i64)? as usize)
}

/// The buffer in every case that [`buffer`] has not dealt with itself.
///
/// # Safety
/// As for [`buffer`].
#[inline(never)]
unsafe fn any(
    state: &State,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
) -> Result<Buffer, Error> {
    let ty = state.types.committed(datatype.id())?;
    let bytes = count.checked_mul(ty.size() as i64);
    if bytes.ok_or_else(|| too_many(count, &ty))? == 0 {
        return Ok(Buffer::empty());
    }
    if address.addr() < FIRST_PAGE {
        check_low(address, count, &ty)?;
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { Buffer::new(address.cast_mut().cast(), count as usize, &ty) })
}

/// NULL is MPI_BOTTOM, from where a datatype with absolute addresses counts.
#[cold]
fn check_low(address: *const c_void, count: i64, ty: &Type) -> Result<(), Error> {
    let (start, _) = ty.span(count as usize)?;
    if start >= FIRST_PAGE as isize {
        return Ok(());
    }
    let detail = if address.is_null() {
        "the buffer is NULL but its elements hold data; \
         MPI_BOTTOM needs a datatype that is made of absolute addresses"
            .to_string()
    } else if address == MPI_IN_PLACE.cast_const() {
        "this buffer must not be MPI_IN_PLACE".to_string()
    } else {
        format!("the buffer is at {address:p}, where no memory of a program can be")
    };
    Err(Error::new(MPI_ERR_BUFFER, detail))
}

#[cold]
fn too_many(count: i64, ty: &Type) -> Error {
    let detail = format!(
        "{count} elements of {} bytes are more than any memory holds",
        ty.size()
    );
    Error::new(MPI_ERR_COUNT, detail)
}
