//! Arguments that may be a variable with a special meaning: MPI_BOTTOM, MPI_IN_PLACE, ignored
//! results.

use crate::abi::Abi;
use crate::commons::{Special, is_near_blocks};
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};

/// C's argument for a choice buffer.
#[inline(always)]
pub fn choice<A: Abi>(buffer: *mut c_void) -> *mut c_void {
    match A::special(buffer) {
        None => buffer,
        Some(Special::Bottom) => null_mut(),
        Some(Special::InPlace) => A::IN_PLACE,
        Some(Special::Automatic) => A::AUTOMATIC,
    }
}

/// Replaces C's address of an automatic buffer by that of the program's own variable: the program
/// compares it with `c_loc(MPI_BUFFER_AUTOMATIC)` (MPI 5.0 §3.6).
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

/// True if a choice buffer is certainly none of the special variables.
#[inline(always)]
pub fn is_memory(buffer: *mut c_void) -> bool {
    !is_near_blocks(buffer)
}

/// True if a choice buffer is MPI_IN_PLACE.
pub fn is_in_place<A: Abi>(buffer: *mut c_void) -> bool {
    choice::<A>(buffer) == A::IN_PLACE
}

/// C's argument for a status: the program's, or C's address for an ignored status.
#[inline(always)]
pub fn status<A: Abi, T>(status: *mut T) -> *mut T {
    match A::is_mpi_status_ignore(status) {
        true => without_provenance_mut(A::STATUS_IGNORE),
        false => status,
    }
}

/// C's argument for an array of statuses: the program's, or C's address for ignored statuses.
#[inline(always)]
pub fn statuses<A: Abi, T>(statuses: *mut T) -> *mut T {
    match A::is_mpi_statuses_ignore(statuses) {
        true => without_provenance_mut(A::STATUS_IGNORE),
        false => statuses,
    }
}

/// C's argument for the error codes of spawned processes: NULL means that they are ignored.
pub fn errcodes<A: Abi>(codes: *mut c_int) -> *mut c_int {
    match A::is_mpi_errcodes_ignore(codes) {
        true => null_mut(),
        false => codes,
    }
}

/// C's argument for the weights of the edges of a graph.
pub fn weights<A: Abi>(weights: *mut c_int) -> *mut c_int {
    match weights {
        _ if A::is_mpi_unweighted(weights) => A::weights()[0],
        _ if A::is_mpi_weights_empty(weights) => A::weights()[1],
        weights => weights,
    }
}
