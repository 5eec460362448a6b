//! Arguments that may be a variable with a meaning: MPI_BOTTOM, MPI_IN_PLACE, what is ignored.

use crate::common::commons::{self, Special};
use crate::program::{self, AUTOMATIC, IN_PLACE, STATUS_IGNORE};
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};

/// A choice buffer for C.
#[inline(always)]
pub(crate) fn choice(buffer: *mut c_void) -> *mut c_void {
    match commons::special(buffer) {
        None => buffer,
        Some(Special::Bottom) => null_mut(),
        Some(Special::InPlace) => IN_PLACE,
        Some(Special::Automatic) => AUTOMATIC,
    }
}

/// Gives the program the address of its own variable where C has the address that stands for an
/// automatic buffer: it compares that with `c_loc(MPI_BUFFER_AUTOMATIC)` (MPI 5.0 §3.6).
///
/// # Safety
/// The address is that of a pointer.
pub(crate) unsafe fn detached(buffer: *mut *mut c_void) {
    // SAFETY: promised.
    let buffer = unsafe { &mut *buffer };
    if *buffer == AUTOMATIC {
        *buffer = without_provenance_mut(commons::automatic());
    }
}

/// Whether a choice buffer is certainly none of the variables.
#[inline(always)]
pub(crate) fn is_memory(buffer: *mut c_void) -> bool {
    !commons::is_near_blocks(buffer)
}

pub(crate) fn is_in_place(buffer: *mut c_void) -> bool {
    choice(buffer) == IN_PLACE
}

/// A status that is written, or C's address of one that is ignored.
#[inline(always)]
pub(crate) fn status<T>(status: *mut T) -> *mut T {
    match commons::is_mpi_status_ignore(status) {
        true => without_provenance_mut(STATUS_IGNORE),
        false => status,
    }
}

/// Statuses that are written, or C's address of those that are ignored.
#[inline(always)]
pub(crate) fn statuses<T>(statuses: *mut T) -> *mut T {
    match commons::is_mpi_statuses_ignore(statuses) {
        true => without_provenance_mut(STATUS_IGNORE),
        false => statuses,
    }
}

/// Error codes of spawned processes. NULL in C: they are ignored.
pub(crate) fn errcodes(codes: *mut c_int) -> *mut c_int {
    match commons::is_mpi_errcodes_ignore(codes) {
        true => null_mut(),
        false => codes,
    }
}

/// Weights of the edges of a graph.
pub(crate) fn weights(weights: *mut c_int) -> *mut c_int {
    match weights {
        _ if commons::is_mpi_unweighted(weights) => program::weights()[0],
        _ if commons::is_mpi_weights_empty(weights) => program::weights()[1],
        weights => weights,
    }
}
