//! Sections 3.2, 3.4 and 3.7: sends, blocking and nonblocking.

use super::Done;
use crate::args::Out;
use crate::buffer::buffer;
use crate::call_guard::Running;
use crate::handle::{Comm, Datatype, Request};
use mpi::Mode;
use std::ffi::{c_int, c_void};

/// # Safety
/// C's promise for message buffers.
#[inline(always)]
unsafe fn blocking(
    call: &Running,
    mode: Mode,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
) -> Done {
    let mut state = call.rank.lock();
    // SAFETY: the caller's promise.
    let buffer = unsafe { buffer(&state, buf, count, datatype) }?;
    let id = state.send(mode, &buffer, dest, tag, comm.id())?;
    if id == state.messages.requests.done() {
        return Ok(());
    }
    drop(state);
    call.rank.wait(call.procedure, id)?;
    Ok(())
}

/// # Safety
/// C's promise for message buffers, until the request is complete.
#[inline(always)]
unsafe fn nonblocking(
    call: &Running,
    mode: Mode,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
    request: Out<Request>,
) -> Done {
    let mut state = call.rank.lock();
    // SAFETY: the caller's promise.
    let buffer = unsafe { buffer(&state, buf, count, datatype) }?;
    let id = state.send(mode, &buffer, dest, tag, comm.id())?;
    request.set(Request::from(id.0));
    Ok(())
}

macro_rules! sends {
    ($($name:ident $inonblocking:ident $mode:ident;)*) => {
        $(
            /// # Safety
            /// C's promise for message buffers.
            #[inline]
            pub unsafe fn $name(
                call: &Running,
                buf: *const c_void,
                count: i64,
                datatype: Datatype,
                dest: c_int,
                tag: c_int,
                comm: Comm,
            ) -> Done {
                // SAFETY: the caller's promise.
                unsafe { blocking(call, Mode::$mode, buf, count, datatype, dest, tag, comm) }
            }

            /// # Safety
            /// C's promise for message buffers, until the request is complete.
            #[inline]
            pub unsafe fn $inonblocking(
                call: &Running,
                buf: *const c_void,
                count: i64,
                datatype: Datatype,
                dest: c_int,
                tag: c_int,
                comm: Comm,
                request: Out<Request>,
            ) -> Done {
                // SAFETY: the caller's promise.
                unsafe { nonblocking(call, Mode::$mode, buf, count, datatype, dest, tag, comm, request) }
            }
        )*
    };
}

sends! {
    send isend Standard;
    ssend issend Synchronous;
    rsend irsend Ready;
    bsend ibsend Buffered;
}
