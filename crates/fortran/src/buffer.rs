//! Arguments that may be a variable with a meaning: MPI_BOTTOM, MPI_IN_PLACE, what is ignored.

use crate::commons::*;
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};

const IN_PLACE: *mut c_void = without_provenance_mut(1);
const AUTOMATIC: *mut c_void = without_provenance_mut(2);
const UNWEIGHTED: *mut c_int = without_provenance_mut(0xa);
const WEIGHTS_EMPTY: *mut c_int = without_provenance_mut(0xb);

/// A choice buffer for C.
#[inline(always)]
pub(crate) fn choice(buffer: *mut c_void) -> *mut c_void {
    match MPIPRIV1.place::<8, _>(buffer) {
        Some(MPI_BOTTOM_AT) => null_mut(),
        Some(MPI_IN_PLACE_AT) => IN_PLACE,
        _ if MPIFCMBA.is(MPI_BUFFER_AUTOMATIC_AT, buffer) => AUTOMATIC,
        _ => buffer,
    }
}

pub(crate) fn is_in_place(buffer: *mut c_void) -> bool {
    choice(buffer) == IN_PLACE
}

/// A status that is written. NULL in C: it is ignored.
#[inline(always)]
pub(crate) fn status<T>(status: *mut T) -> *mut T {
    unless(&MPIPRIV1, MPI_STATUS_IGNORE_AT, status)
}

/// Statuses that are written. NULL in C: they are ignored.
#[inline(always)]
pub(crate) fn statuses<T>(statuses: *mut T) -> *mut T {
    unless(&MPIPRIV2, MPI_STATUSES_IGNORE_AT, statuses)
}

/// Error codes of spawned processes. NULL in C: they are ignored.
pub(crate) fn errcodes(codes: *mut c_int) -> *mut c_int {
    unless(&MPIPRIV2, MPI_ERRCODES_IGNORE_AT, codes)
}

/// Weights of the edges of a graph.
pub(crate) fn weights(weights: *mut c_int) -> *mut c_int {
    match weights {
        _ if MPIFCMB5.is(MPI_UNWEIGHTED_AT, weights) => UNWEIGHTED,
        _ if MPIFCMB9.is(MPI_WEIGHTS_EMPTY_AT, weights) => WEIGHTS_EMPTY,
        weights => weights,
    }
}

#[inline(always)]
fn unless<T>(common: &Common, place: usize, address: *mut T) -> *mut T {
    if common.is(place, address) {
        return null_mut();
    }
    address
}
