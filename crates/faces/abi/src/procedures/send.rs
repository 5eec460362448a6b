//! Sections 3.2, 3.4 and 3.7: sends, blocking and nonblocking.

use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::error::Done;
use crate::handle::{Comm, Datatype, Request};
use mpi::Mode;
use std::ffi::{c_int, c_void};

#[inline(always)]
fn blocking(
    call: &Running,
    mode: Mode,
    buffer: UserBuffer,
    dest: c_int,
    tag: c_int,
    comm: Comm,
) -> Done {
    call.rank.send(
        call.procedure,
        mode,
        buffer.of_message(dest),
        dest,
        tag,
        comm,
    )
}

#[inline(always)]
fn nonblocking(
    call: &Running,
    mode: Mode,
    buffer: UserBuffer,
    dest: c_int,
    tag: c_int,
    comm: Comm,
    request: Out<Request>,
) -> Done {
    let mut state = call.rank.lock();
    let buffer = buffer.of_message(dest).buffer(&state)?;
    let id = state.send(mode, &buffer, dest, tag, comm.id())?;
    request.set(Request::from(id.0));
    Ok(())
}

macro_rules! sends {
    ($($name:ident $inonblocking:ident $mode:ident;)*) => {
        $(
            /// The blocking send of this mode.
            ///
            /// # Safety
            /// The buffer fulfils [`UserBuffer::new`]'s promise until the call returns.
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
                // SAFETY: the caller promises the memory of the message until the call returns.
                let buffer = unsafe { UserBuffer::new(buf, count, datatype) };
                blocking(call, Mode::$mode, buffer, dest, tag, comm)
            }

            /// The nonblocking send of this mode.
            ///
            /// # Safety
            /// The buffer fulfils [`UserBuffer::new`]'s promise until the request is complete.
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
                // SAFETY: the caller promises the memory of the message until the request is
                // complete.
                let buffer = unsafe { UserBuffer::new(buf, count, datatype) };
                nonblocking(call, Mode::$mode, buffer, dest, tag, comm, request)
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
