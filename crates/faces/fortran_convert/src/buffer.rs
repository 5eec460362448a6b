//! Arguments that may be a variable with a meaning: MPI_BOTTOM, MPI_IN_PLACE, what is ignored.

use crate::abi::Abi;
use crate::commons::{Special, is_near_blocks};
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};

/// A choice buffer for C.
#[inline(always)]
pub fn choice<A: Abi>(buffer: *mut c_void) -> *mut c_void {
    match A::special(buffer) {
        None => buffer,
        Some(Special::Bottom) => null_mut(),
        Some(Special::InPlace) => A::IN_PLACE,
        Some(Special::Automatic) => A::AUTOMATIC,
    }
}

/// Gives the program the address of its own variable where C has the address that stands for an
/// automatic buffer: it compares that with `c_loc(MPI_BUFFER_AUTOMATIC)` (MPI 5.0 §3.6).
///
/// # Safety
/// The address is that of a pointer.
pub unsafe fn detached<A: Abi>(buffer: *mut *mut c_void) {
    // SAFETY: promised.
    let buffer = unsafe { &mut *buffer };
    if *buffer == A::AUTOMATIC {
        *buffer = without_provenance_mut(A::automatic());
    }
}

/// A choice buffer is certainly none of the variables.
#[inline(always)]
pub fn is_memory(buffer: *mut c_void) -> bool {
    !is_near_blocks(buffer)
}

/// A choice buffer is MPI_IN_PLACE.
pub fn is_in_place<A: Abi>(buffer: *mut c_void) -> bool {
    choice::<A>(buffer) == A::IN_PLACE
}

/// A status that is written, or C's address of one that is ignored.
#[inline(always)]
pub fn status<A: Abi, T>(status: *mut T) -> *mut T {
    match A::is_mpi_status_ignore(status) {
        true => without_provenance_mut(A::STATUS_IGNORE),
        false => status,
    }
}

/// Statuses that are written, or C's address of those that are ignored.
#[inline(always)]
pub fn statuses<A: Abi, T>(statuses: *mut T) -> *mut T {
    match A::is_mpi_statuses_ignore(statuses) {
        true => without_provenance_mut(A::STATUS_IGNORE),
        false => statuses,
    }
}

/// Error codes of spawned processes. NULL in C: they are ignored.
pub fn errcodes<A: Abi>(codes: *mut c_int) -> *mut c_int {
    match A::is_mpi_errcodes_ignore(codes) {
        true => null_mut(),
        false => codes,
    }
}

/// Weights of the edges of a graph.
pub fn weights<A: Abi>(weights: *mut c_int) -> *mut c_int {
    match weights {
        _ if A::is_mpi_unweighted(weights) => A::weights()[0],
        _ if A::is_mpi_weights_empty(weights) => A::weights()[1],
        weights => weights,
    }
}
