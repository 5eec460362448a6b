//! Sections 3.2 and 3.7: receives, blocking and nonblocking.

use super::Done;
use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::error::Error;
use crate::handle::{Comm, Datatype, Request};
use crate::status::Status;
use mpi::request::RequestId;
use std::ffi::{c_int, c_void};

/// # Safety
/// C's promise for message buffers.
#[inline(always)]
pub unsafe fn recv(
    call: &Running,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    status: Option<Out<Status>>,
) -> Done {
    // SAFETY: the caller promises the memory of the message until the call returns.
    let buffer = unsafe { UserBuffer::new(buf, count, datatype) };
    call.rank
        .receive_then(call.procedure, buffer, source, tag, comm, |received| {
            deliver(call, received, status)
        })
}

/// # Safety
/// C's promise for message buffers, until the request is complete.
#[inline(always)]
pub unsafe fn irecv(
    call: &Running,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    request: Out<Request>,
) -> Done {
    // SAFETY: the caller promises the memory of the message until the request is complete.
    let buffer = unsafe { UserBuffer::new(buf, count, datatype) };
    let id = begin(call, buffer, source, tag, comm)?;
    request.set(Request::from(id.0));
    Ok(())
}

/// Starts a receive.
#[inline(always)]
pub(super) fn begin(
    call: &Running,
    buffer: UserBuffer,
    source: c_int,
    tag: c_int,
    comm: Comm,
) -> Result<RequestId, Error> {
    let mut state = call.rank.lock();
    let buffer = buffer.buffer(&state)?;
    state.receive(buffer, source, tag, comm.id())
}

/// Fills in the status of one completed operation; the error that it carries is the call's.
#[inline(always)]
pub(super) fn deliver(call: &Running, from: mpi::Status, status: Option<Out<Status>>) -> Done {
    if let Some(status) = status {
        status.fill(Status::from(from));
    }
    if from.error != mpi::Class::SUCCESS {
        return Err(carried(
            call.rank,
            from.error,
            from.source,
            from.tag,
            from.bytes,
            from.dropped,
        ));
    }
    Ok(())
}

/// The error of a status. It comes in parts, so that a status without one needs no memory.
#[cold]
#[inline(never)]
fn carried(
    rank: &mpi::Rank,
    error: mpi::Class,
    source: c_int,
    tag: c_int,
    bytes: u64,
    dropped: u64,
) -> Error {
    let status = mpi::Status {
        source,
        tag,
        error,
        bytes,
        dropped,
        cancelled: false,
    };
    status
        .into_result(&mut rank.lock())
        .expect_err("the status carries an error")
}
