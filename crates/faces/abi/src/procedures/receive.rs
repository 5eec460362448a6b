//! Sections 3.2 and 3.7: receives, blocking and nonblocking.

use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::error::{Done, Error};
use crate::handle::{Comm, Datatype, Request};
use crate::status::Status;
use mpi::request::RequestId;
use std::ffi::{c_int, c_void};

/// `MPI_Recv` (MPI 5.0, chapter 3).
///
/// # Safety
/// The buffers fulfil [`UserBuffer::new`]'s promise until the call returns.
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
    let buffer = unsafe { UserBuffer::new(buf, count, datatype) }.of_message(source);
    call.rank
        .receive_then(call.procedure, buffer, source, tag, comm, |received| {
            deliver(call, received, status)
        })
}

/// `MPI_Irecv` (MPI 5.0, chapter 3).
///
/// # Safety
/// The buffers fulfil [`UserBuffer::new`]'s promise until the request is complete.
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

/// Starts a nonblocking receive.
#[inline(always)]
pub(super) fn begin(
    call: &Running,
    buffer: UserBuffer,
    source: c_int,
    tag: c_int,
    comm: Comm,
) -> Result<RequestId, Error> {
    let mut state = call.rank.lock();
    let buffer = buffer.of_message(source).buffer(&state)?;
    state.receive(buffer, source, tag, comm.id())
}

/// Writes the status of a completed operation, and returns the error that it carries.
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

/// The error of a status. It takes the fields one by one: a status whose address is passed would
/// need memory in every call.
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
    rank.result_of(status)
        .expect_err("the status carries an error")
}
