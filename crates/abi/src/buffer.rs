//! The user's buffer in C: an address, a count and a datatype.

use crate::constants::{MPI_ERR_BUFFER, MPI_ERR_TYPE};
use crate::error::Error;
use crate::handle::Datatype;
use datatype::{Buffer, Predefined, Type};
use mpi::State;
use std::ffi::c_void;

/// The buffer of a communication call.
///
/// # Safety
/// By the standard's rules the memory belongs to the call until the operation completes: it is readable, and writable
/// if the operation receives.
#[inline(always)]
pub unsafe fn buffer(
    _state: &State,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
) -> Result<Buffer, Error> {
    let Some(ty) = Predefined::from_handle(datatype.0) else {
        return Err(Error::new(MPI_ERR_TYPE, "no datatype"));
    };
    if address.is_null() && count > 0 {
        return Err(no_buffer());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe {
        Buffer::new(
            address.cast_mut().cast(),
            count as usize,
            &Type::Predefined(ty),
        )
    })
}

#[cold]
fn no_buffer() -> Error {
    let detail = "the buffer is NULL but the count is not 0; MPI_BOTTOM needs a datatype with absolute addresses";
    Error::new(MPI_ERR_BUFFER, detail)
}
