//! Section 3.10: sending and receiving in one call.

use super::Done;
use super::receive::{begin, deliver};
use crate::args::Out;
use crate::buffer::buffer;
use crate::frame::Running;
use crate::handle::{Comm, Datatype};
use crate::status::Status;
use mpi::Mode;
use std::ffi::{c_int, c_void};

/// # Safety
/// C's promise for message buffers.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the standard's")]
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
    // SAFETY: the caller's promise.
    let receive = unsafe { begin(call, recvbuf, recvcount, recvtype, source, recvtag, comm) }?;
    let send = {
        let mut state = call.rank.lock();
        // SAFETY: the caller's promise.
        let buffer = unsafe { buffer(&state, sendbuf, sendcount, sendtype) };
        buffer.and_then(|buffer| state.send(Mode::Standard, buffer, dest, sendtag, comm.id()))
    };
    let send = match send {
        Ok(send) => send,
        Err(error) => {
            // The receive must not write to the user's buffer after an error has been reported.
            let mut state = call.rank.lock();
            state.cancel(receive)?;
            state.messages.requests.detach(receive)?;
            return Err(error);
        }
    };
    call.rank.wait(call.procedure, send)?;
    let received = call.rank.wait(call.procedure, receive)?;
    deliver(call, received, status)
}
