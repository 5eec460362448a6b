//! One to all and all to one: broadcast, gather, scatter.

use super::Made;
use super::parts::*;
use crate::args;
use crate::buffer::{buffer, buffer_unless_in_place};
use crate::counts::CommCounts;
use crate::error::Error;
use crate::handle::{Comm, Datatype};
use datatype::Buffer;
use mpi::State;
use mpi::coll::Work;
use std::ffi::{c_int, c_void};

/// # Safety
/// C's promise for message buffers.
pub(super) unsafe fn make_bcast(
    state: &State,
    address: *mut c_void,
    count: i64,
    datatype: Datatype,
    root: c_int,
    _: Comm,
) -> Made {
    // SAFETY: the caller's promise.
    let buffer = unsafe { buffer(state, address, count, datatype) }?;
    Ok(Work::Bcast { buffer, root })
}

/// This rank's part of a gather or scatter: where it is, unless it is in place at the root.
///
/// # Safety
/// C's promise for message buffers.
pub(super) unsafe fn own_part(
    state: &State,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
    at_root: bool,
) -> Result<Option<Buffer>, Error> {
    // SAFETY: the caller's promise.
    unsafe {
        if at_root {
            buffer_unless_in_place(state, address, count, datatype)
        } else {
            buffer(state, address, count, datatype).map(Some)
        }
    }
}

/// # Safety
/// C's promise for message buffers.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(super) unsafe fn make_gather(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Made {
    let at_root = is_root(state, comm, root)?;
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = own_part(state, sendbuf, sendcount, sendtype, at_root)?;
        let receive = at_root.then(|| {
            let count = args::count("recvcount", recvcount)?;
            even(state, recvbuf, count, recvtype, size)
        });
        (send, receive.transpose()?)
    };
    Ok(Work::Gather {
        send,
        receive,
        root,
    })
}

/// # Safety
/// C's promise for message buffers and for the arrays.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(super) unsafe fn make_gatherv(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: CommCounts,
    displs: CommCounts,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Made {
    let at_root = is_root(state, comm, root)?;
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = own_part(state, sendbuf, sendcount, sendtype, at_root)?;
        let receive = at_root.then(|| uneven(state, recvbuf, recvcounts, displs, recvtype, size));
        (send, receive.transpose()?)
    };
    Ok(Work::Gatherv {
        send,
        receive,
        root,
    })
}

/// # Safety
/// C's promise for message buffers.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(super) unsafe fn make_scatter(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Made {
    let at_root = is_root(state, comm, root)?;
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = at_root.then(|| {
            let count = args::count("sendcount", sendcount)?;
            even(state, sendbuf, count, sendtype, size)
        });
        (
            send.transpose()?,
            own_part(state, recvbuf, recvcount, recvtype, at_root)?,
        )
    };
    Ok(Work::Scatter {
        send,
        receive,
        root,
    })
}

/// # Safety
/// C's promise for message buffers and for the arrays.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(super) unsafe fn make_scatterv(
    state: &State,
    sendbuf: *const c_void,
    sendcounts: CommCounts,
    displs: CommCounts,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Made {
    let at_root = is_root(state, comm, root)?;
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = at_root.then(|| uneven(state, sendbuf, sendcounts, displs, sendtype, size));
        (
            send.transpose()?,
            own_part(state, recvbuf, recvcount, recvtype, at_root)?,
        )
    };
    Ok(Work::Scatterv {
        send,
        receive,
        root,
    })
}
