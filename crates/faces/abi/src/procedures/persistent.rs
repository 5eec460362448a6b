//! Section 3.9: persistent operations.

use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::{Comm, Datatype, Request};
use mpi::Mode;
use mpi::request::RequestId;
use std::ffi::{c_int, c_void};

macro_rules! send_inits {
    ($($name:ident $mode:ident;)*) => {
        $(
            /// Makes a persistent send.
            ///
            /// # Safety
            /// The buffer fulfils [`UserBuffer::new`]'s promise whenever the operation is active.
            pub unsafe fn $name(
                call: &Running,
                buf: *const c_void,
                count: i64,
                datatype: Datatype,
                dest: c_int,
                tag: c_int,
                comm: Comm,
                request: Out<Request>,
            ) -> Done {
                // SAFETY: the caller promises the memory of the message whenever the operation is
                // active.
                let buffer = unsafe { UserBuffer::new(buf, count, datatype) };
                let mut state = call.rank.lock();
                let buffer = buffer.of_message(dest).buffer(&state)?;
                request.set(state.send_init(Mode::$mode, buffer, dest, tag, comm.id())?.0);
                Ok(())
            }
        )*
    };
}

send_inits! {
    send_init Standard;
    ssend_init Synchronous;
    rsend_init Ready;
    bsend_init Buffered;
}

/// `MPI_Recv_init` (MPI 5.0, chapter 3).
///
/// # Safety
/// The buffer fulfils [`UserBuffer::new`]'s promise whenever the operation is active.
pub unsafe fn recv_init(
    call: &Running,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    request: Out<Request>,
) -> Done {
    // SAFETY: the caller promises the memory of the message whenever the operation is active.
    let buffer = unsafe { UserBuffer::new(buf, count, datatype) };
    let mut state = call.rank.lock();
    let buffer = buffer.of_message(source).buffer(&state)?;
    request.set(state.receive_init(buffer, source, tag, comm.id())?.0);
    Ok(())
}

/// `MPI_Start` (MPI 5.0, chapter 3).
pub fn start(call: &Running, request: &mut Request) -> Done {
    if *request == MPI_REQUEST_NULL {
        return Err(Error::new(
            MPI_ERR_REQUEST,
            "MPI_REQUEST_NULL is no operation that could be started",
        ));
    }
    call.rank.start(RequestId(request.id()))
}

/// `MPI_Startall` (MPI 5.0, chapter 3).
pub fn startall(call: &Running, _count: usize, requests: &mut [Request]) -> Done {
    requests
        .iter_mut()
        .try_for_each(|request| start(call, request))
}
