//! Blocks from all to all: allgather and alltoall.

use super::Made;
use super::parts::*;
use crate::buffer::buffer_unless_in_place;
use crate::counts::{CommArray, CommCounts};
use crate::handle::{Comm, Datatype};
use mpi::State;
use mpi::coll::Work;
use std::ffi::c_void;

/// # Safety
/// C's promise for message buffers.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(super) unsafe fn make_allgather(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    comm: Comm,
) -> Made {
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    unsafe {
        let send = buffer_unless_in_place(state, sendbuf, sendcount, sendtype)?;
        let receive = even(state, recvbuf, recvcount, recvtype, size)?;
        Ok(Work::Allgather { send, receive })
    }
}

/// # Safety
/// C's promise for message buffers and for the arrays.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(super) unsafe fn make_allgatherv(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: CommCounts,
    displs: CommCounts,
    recvtype: Datatype,
    comm: Comm,
) -> Made {
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    unsafe {
        let send = buffer_unless_in_place(state, sendbuf, sendcount, sendtype)?;
        let receive = uneven(state, recvbuf, recvcounts, displs, recvtype, size)?;
        Ok(Work::Allgather { send, receive })
    }
}

/// Is it the address that stands for "in place"?
pub(super) fn in_place(address: *const c_void) -> bool {
    address == crate::constants::MPI_IN_PLACE.cast_const()
}

/// # Safety
/// C's promise for message buffers.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(super) unsafe fn make_alltoall(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    comm: Comm,
) -> Made {
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = (!in_place(sendbuf)).then(|| even(state, sendbuf, sendcount, sendtype, size));
        (
            send.transpose()?,
            even(state, recvbuf, recvcount, recvtype, size)?,
        )
    };
    Ok(Work::Alltoall { send, receive })
}

/// # Safety
/// C's promise for message buffers and for the arrays.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(super) unsafe fn make_alltoallv(
    state: &State,
    sendbuf: *const c_void,
    sendcounts: CommCounts,
    sdispls: CommCounts,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: CommCounts,
    rdispls: CommCounts,
    recvtype: Datatype,
    comm: Comm,
) -> Made {
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = (!in_place(sendbuf))
            .then(|| uneven(state, sendbuf, sendcounts, sdispls, sendtype, size));
        (
            send.transpose()?,
            uneven(state, recvbuf, recvcounts, rdispls, recvtype, size)?,
        )
    };
    Ok(Work::Alltoall { send, receive })
}

/// # Safety
/// C's promise for message buffers and for the arrays.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(super) unsafe fn make_alltoallw(
    state: &State,
    sendbuf: *const c_void,
    sendcounts: CommCounts,
    sdispls: CommCounts,
    sendtypes: CommArray<Datatype>,
    recvbuf: *mut c_void,
    recvcounts: CommCounts,
    rdispls: CommCounts,
    recvtypes: CommArray<Datatype>,
    comm: Comm,
) -> Made {
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = (!in_place(sendbuf))
            .then(|| mixed(state, sendbuf, sendcounts, sdispls, sendtypes, size));
        (
            send.transpose()?,
            mixed(state, recvbuf, recvcounts, rdispls, recvtypes, size)?,
        )
    };
    Ok(Work::Alltoall { send, receive })
}
