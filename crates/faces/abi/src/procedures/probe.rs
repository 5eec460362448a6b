//! Section 3.8: probes, matched probes, and cancelling.

use crate::args::{Flag, Out};
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::{Comm, Datatype, Message, Request};
use crate::object::Object;
use crate::status::Status;
use mpi::request::RequestId;
use std::ffi::{c_int, c_void};

/// `MPI_Probe` (MPI 5.0, chapter 3).
pub fn probe(
    call: &Running,
    source: c_int,
    tag: c_int,
    comm: Comm,
    status: Option<Out<Status>>,
) -> Done {
    let found = call.rank.probe(call.procedure, source, tag, comm.id())?;
    if let Some(status) = status {
        status.fill(found.into());
    }
    Ok(())
}

/// `MPI_Iprobe` (MPI 5.0, chapter 3).
#[inline(always)]
pub fn iprobe(
    call: &Running,
    source: c_int,
    tag: c_int,
    comm: Comm,
    flag: Out<Flag>,
    status: Option<Out<Status>>,
) -> Done {
    let found = call
        .rank
        .poll_for(call.procedure, |state| state.probe(source, tag, comm.id()))?;
    flag.set(found.is_some());
    if let (Some(status), Some(found)) = (status, found) {
        status.fill(found.into());
    }
    Ok(())
}

/// `MPI_Mprobe` (MPI 5.0, chapter 3).
pub fn mprobe(
    call: &Running,
    source: c_int,
    tag: c_int,
    comm: Comm,
    message: Out<Message>,
    status: Option<Out<Status>>,
) -> Done {
    let claimed = call.rank.claim(call.procedure, source, tag, comm.id())?;
    message.set(claimed.handle);
    if let Some(status) = status {
        status.fill(claimed.status.into());
    }
    Ok(())
}

/// `MPI_Improbe` (MPI 5.0, chapter 3).
pub fn improbe(
    call: &Running,
    source: c_int,
    tag: c_int,
    comm: Comm,
    flag: Out<Flag>,
    message: Out<Message>,
    status: Option<Out<Status>>,
) -> Done {
    let claimed = call
        .rank
        .poll_for(call.procedure, |state| state.claim(source, tag, comm.id()))?;
    flag.set(claimed.is_some());
    if let Some(claimed) = claimed {
        message.set(claimed.handle);
        if let Some(status) = status {
            status.fill(claimed.status.into());
        }
    }
    Ok(())
}

/// `MPI_Mrecv` (MPI 5.0, chapter 3).
///
/// # Safety
/// The buffer fulfils [`UserBuffer::new`]'s promise until the call returns.
pub unsafe fn mrecv(
    call: &Running,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    message: &mut Message,
    status: Option<Out<Status>>,
) -> Done {
    // SAFETY: the caller promises the memory of the message until the call returns.
    let buffer = unsafe { UserBuffer::new(buf, count, datatype) };
    let id = begin(call, buffer, message)?;
    let received = call.rank.wait(call.procedure, id)?;
    super::receive::deliver(call, received, status)
}

/// `MPI_Imrecv` (MPI 5.0, chapter 3).
///
/// # Safety
/// The buffer fulfils [`UserBuffer::new`]'s promise until the request is complete.
pub unsafe fn imrecv(
    call: &Running,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    message: &mut Message,
    request: Out<Request>,
) -> Done {
    // SAFETY: the caller promises the memory of the message until the request is complete.
    let buffer = unsafe { UserBuffer::new(buf, count, datatype) };
    let id = begin(call, buffer, message)?;
    request.set(id.0);
    Ok(())
}

/// Starts to receive a message that a matched probe has claimed.
fn begin(call: &Running, buffer: UserBuffer, message: &mut Message) -> Result<RequestId, Error> {
    let mut state = call.rank.lock();
    // Errors are raised on the communicator of the message.
    let context = state.claimed_context(message.id());
    if let Some(comm) = context.and_then(|context| state.objects().comms().handle_of(context)) {
        call.raise_on(Object::Comm(comm.into()));
    }
    let peer = if *message == MPI_MESSAGE_NO_PROC {
        MPI_PROC_NULL
    } else {
        MPI_ANY_SOURCE
    };
    let buffer = buffer.of_message(peer).buffer(&state)?;
    let id = state.receive_claimed(buffer, message.id())?;
    *message = MPI_MESSAGE_NULL;
    Ok(id)
}

/// `MPI_Cancel` (MPI 5.0, chapter 3).
pub fn cancel(call: &Running, request: &mut Request) -> Done {
    if *request == MPI_REQUEST_NULL {
        return Err(Error::new(
            MPI_ERR_REQUEST,
            "MPI_REQUEST_NULL is no operation that could be cancelled",
        ));
    }
    call.rank.cancel(RequestId(request.id()))
}
