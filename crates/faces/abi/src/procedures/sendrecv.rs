//! Section 3.10: send and receive in one call.

use super::receive::{begin, deliver};
use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::error::{Done, Error};
use crate::handle::{Comm, Datatype, Request};
use crate::status::Status;
use datatype::Buffer;
use mpi::request::RequestId;
use mpi::{Class, Completion};
use mpi::{Mode, State};
use std::ffi::{c_int, c_void};

/// `MPI_Sendrecv` (MPI 5.0, chapter 3).
///
/// # Safety
/// The buffers fulfil [`UserBuffer::new`]'s promise until the call returns.
#[inline]
pub unsafe fn sendrecv(
    call: &Running,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    status: Option<Out<Status>>,
) -> Done {
    // SAFETY: the caller promises the memory of both messages until the call returns.
    let (outgoing, incoming) = unsafe {
        (
            UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBuffer::new(recvbuf, recvcount, recvtype),
        )
    };
    let receive = begin(call, incoming, source, recvtag, comm)?;
    let send = start_send(call, receive, |state| {
        let buffer = outgoing.of_message(dest).buffer(state)?;
        state.send(Mode::Standard, &buffer, dest, sendtag, comm.id())
    })?;
    finish(call, send, receive, status)
}

/// `MPI_Sendrecv_replace` (MPI 5.0, chapter 3).
///
/// # Safety
/// The buffers fulfil [`UserBuffer::new`]'s promise until the call returns.
pub unsafe fn sendrecv_replace(
    call: &Running,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    status: Option<Out<Status>>,
) -> Done {
    // SAFETY: the caller promises the memory of the message until the call returns.
    let buffer = unsafe { UserBuffer::new(buf, count, datatype) };
    let copy = copy_of(call, buffer, dest)?;
    let receive = begin(call, buffer, source, recvtag, comm)?;
    let send = start_send(call, receive, |state| {
        state.send(Mode::Standard, &copy, dest, sendtag, comm.id())
    })?;
    finish(call, send, receive, status)
}

/// `MPI_Isendrecv` (MPI 5.0, chapter 3).
///
/// # Safety
/// The buffers fulfil [`UserBuffer::new`]'s promise until the request is complete.
pub unsafe fn isendrecv(
    call: &Running,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    request: Out<Request>,
) -> Done {
    // SAFETY: the caller promises the memory of both messages until the request is complete.
    let (outgoing, incoming) = unsafe {
        (
            UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBuffer::new(recvbuf, recvcount, recvtype),
        )
    };
    let receive = begin(call, incoming, source, recvtag, comm)?;
    let send = start_send(call, receive, |state| {
        let buffer = outgoing.of_message(dest).buffer(state)?;
        state.send(Mode::Standard, &buffer, dest, sendtag, comm.id())
    })?;
    both(call, send, receive, request)
}

/// `MPI_Isendrecv_replace` (MPI 5.0, chapter 3).
///
/// # Safety
/// The buffers fulfil [`UserBuffer::new`]'s promise until the request is complete.
pub unsafe fn isendrecv_replace(
    call: &Running,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    request: Out<Request>,
) -> Done {
    // SAFETY: the caller promises the memory of the message until the request is complete.
    let buffer = unsafe { UserBuffer::new(buf, count, datatype) };
    let copy = copy_of(call, buffer, dest)?;
    let receive = begin(call, buffer, source, recvtag, comm)?;
    let send = start_send(call, receive, |state| {
        state.send(Mode::Standard, &copy, dest, sendtag, comm.id())
    })?;
    both(call, send, receive, request)
}

/// A copy of the data to send, as the received message overwrites the user's buffer.
fn copy_of(call: &Running, buffer: UserBuffer, dest: c_int) -> Result<Buffer, Error> {
    let mut state = call.rank.lock();
    let from = buffer.of_message(dest).buffer(&state)?;
    state.copy_of(&from)
}

/// Starts the send that belongs to `receive`. If it fails, the receive must not write to the user's
/// buffer after the error has been reported.
#[inline(always)]
fn start_send(
    call: &Running,
    receive: RequestId,
    send: impl FnOnce(&mut State) -> Result<RequestId, Error>,
) -> Result<RequestId, Error> {
    let mut state = call.rank.lock();
    match send(&mut state) {
        Ok(send) => Ok(send),
        Err(error) => {
            state.cancel(receive)?;
            state.requests_mut().detach(receive)?;
            Err(error)
        }
    }
}

#[inline(always)]
fn finish(
    call: &Running,
    send: RequestId,
    receive: RequestId,
    status: Option<Out<Status>>,
) -> Done {
    let sent = call.rank.wait(call.procedure, send)?;
    let received = call.rank.wait_blocked(call.procedure, receive)?;
    match sent.error {
        Class::SUCCESS => deliver(call, received, status),
        _ => deliver(call, sent, None),
    }
}

/// Makes one request of a send and a receive; its status is that of the receive.
fn both(call: &Running, send: RequestId, receive: RequestId, request: Out<Request>) -> Done {
    let rank = call.rank.mpi.clone();
    let context = rank.lock().requests().context(receive);
    let id = call.rank.spawn_with_status(context, async move {
        let sent = Completion {
            rank: rank.clone(),
            request: send,
        };
        let received = Completion {
            rank,
            request: receive,
        };
        sent.await?;
        received.await
    })?;
    request.set(id.0);
    Ok(())
}
