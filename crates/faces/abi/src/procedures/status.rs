//! Sections 3.2.5, 3.8.4 and 13.3: the fields of statuses, and statuses that users set.

use crate::args::{Flag, Out};
use crate::call_guard::Running;
use crate::error::Done;
use crate::status::Status;
use std::ffi::c_int;

/// `MPI_Status_get_source` (MPI 5.0, chapter 3).
pub fn status_get_source(_: &Running, status: &Status, source: Out<c_int>) -> Done {
    source.set(status.source);
    Ok(())
}

/// `MPI_Status_get_tag` (MPI 5.0, chapter 3).
pub fn status_get_tag(_: &Running, status: &Status, tag: Out<c_int>) -> Done {
    tag.set(status.tag);
    Ok(())
}

/// `MPI_Status_get_error` (MPI 5.0, chapter 3).
pub fn status_get_error(_: &Running, status: &Status, error: Out<c_int>) -> Done {
    error.set(status.error);
    Ok(())
}

/// `MPI_Test_cancelled` (MPI 5.0, chapter 3).
pub fn test_cancelled(_: &Running, status: &Status, flag: Out<Flag>) -> Done {
    flag.set(status.cancelled());
    Ok(())
}

/// `MPI_Status_set_source` (MPI 5.0, chapter 13).
pub fn status_set_source(_: &Running, status: &mut Status, source: c_int) -> Done {
    status.source = source;
    Ok(())
}

/// `MPI_Status_set_tag` (MPI 5.0, chapter 13).
pub fn status_set_tag(_: &Running, status: &mut Status, tag: c_int) -> Done {
    status.tag = tag;
    Ok(())
}

/// `MPI_Status_set_error` (MPI 5.0, chapter 13).
pub fn status_set_error(_: &Running, status: &mut Status, error: c_int) -> Done {
    status.error = error;
    Ok(())
}

/// `MPI_Status_set_cancelled` (MPI 5.0, chapter 13).
pub fn status_set_cancelled(_: &Running, status: &mut Status, cancelled: bool) -> Done {
    status.set_cancelled(cancelled);
    Ok(())
}
