//! Section 14.4: reads and writes, blocking and nonblocking, independent and collective.

use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::error::Done;
use crate::handle::{Datatype, File, Request};
use crate::status::Status;
use mpi::file::Direction::{self, Read, Write};
use mpi::file::Pointer::{self, At, Individual, Shared};
use std::ffi::c_void;

/// Declares the blocking and the nonblocking form of each independent procedure.
macro_rules! independent {
    ($($name:ident $inonblocking:ident $direction:ident $pointer:expr, ($($offset:ident)?) $buf:ty;)*) => {
        $(
            /// The blocking form of the independent access.
            ///
            /// # Safety
            /// The buffer fulfils [`UserBuffer::new`]'s promise until the call returns.
            pub unsafe fn $name(
                call: &Running,
                fh: File,
                $($offset: i64,)?
                buf: $buf,
                count: i64,
                datatype: Datatype,
                status: Option<Out<Status>>,
            ) -> Done {
                // SAFETY: the caller promises the memory until the call returns.
                let buffer = unsafe { UserBuffer::new(buf.cast::<c_void>(), count, datatype) };
                let memory = buffer.file_memory(&call.rank.lock())?;
                let done = call.rank.file_access(fh.id(), $direction, $pointer, memory)?;
                write_status(done, status)
            }

            /// The nonblocking form of the independent access.
            ///
            /// # Safety
            /// The buffer fulfils [`UserBuffer::new`]'s promise until the request is complete.
            pub unsafe fn $inonblocking(
                call: &Running,
                fh: File,
                $($offset: i64,)?
                buf: $buf,
                count: i64,
                datatype: Datatype,
                request: Out<Request>,
            ) -> Done {
                // SAFETY: the caller promises the memory until the request is complete.
                let buffer = unsafe { UserBuffer::new(buf.cast::<c_void>(), count, datatype) };
                let memory = buffer.file_memory(&call.rank.lock())?;
                let id = call.rank.start_file_access(fh.id(), $direction, $pointer, memory)?;
                request.set(Request::from(id.0));
                Ok(())
            }
        )*
    };
}

independent! {
    file_read_at file_iread_at Read At(offset), (offset) *mut c_void;
    file_write_at file_iwrite_at Write At(offset), (offset) *const c_void;
    file_read file_iread Read Individual, () *mut c_void;
    file_write file_iwrite Write Individual, () *const c_void;
    file_read_shared file_iread_shared Read Shared, () *mut c_void;
    file_write_shared file_iwrite_shared Write Shared, () *const c_void;
}

/// Declares the blocking collective procedures.
macro_rules! collective {
    ($($name:ident $direction:ident $pointer:expr, ($($offset:ident)?) $buf:ty;)*) => {
        $(
            /// The blocking collective access.
            ///
            /// # Safety
            /// The buffer fulfils [`UserBuffer::new`]'s promise until the call returns.
            pub unsafe fn $name(
                call: &Running,
                fh: File,
                $($offset: i64,)?
                buf: $buf,
                count: i64,
                datatype: Datatype,
                status: Option<Out<Status>>,
            ) -> Done {
                // SAFETY: the caller promises the memory until the call returns.
                let buffer = unsafe { UserBuffer::new(buf.cast::<c_void>(), count, datatype) };
                collective(call, fh, $direction, $pointer, buffer, status)
            }
        )*
    };
}

collective! {
    file_read_at_all Read At(offset), (offset) *mut c_void;
    file_write_at_all Write At(offset), (offset) *const c_void;
    file_read_all Read Individual, () *mut c_void;
    file_write_all Write Individual, () *const c_void;
    file_read_ordered Read Shared, () *mut c_void;
    file_write_ordered Write Shared, () *const c_void;
}

/// Declares the nonblocking collective procedures.
macro_rules! nonblocking_collective {
    ($($name:ident $direction:ident $pointer:expr, ($($offset:ident)?) $buf:ty;)*) => {
        $(
            /// The nonblocking collective access.
            ///
            /// # Safety
            /// The buffer fulfils [`UserBuffer::new`]'s promise until the request is complete.
            pub unsafe fn $name(
                call: &Running,
                fh: File,
                $($offset: i64,)?
                buf: $buf,
                count: i64,
                datatype: Datatype,
                request: Out<Request>,
            ) -> Done {
                // SAFETY: the caller promises the memory until the request is complete.
                let buffer = unsafe { UserBuffer::new(buf.cast::<c_void>(), count, datatype) };
                let memory = buffer.file_memory(&call.rank.lock());
                let id = call
                    .rank
                    .start_file_collective(fh.id(), $direction, $pointer, memory)?;
                request.set(Request::from(id.0));
                Ok(())
            }
        )*
    };
}

nonblocking_collective! {
    file_iread_at_all Read At(offset), (offset) *mut c_void;
    file_iwrite_at_all Write At(offset), (offset) *const c_void;
    file_iread_all Read Individual, () *mut c_void;
    file_iwrite_all Write Individual, () *const c_void;
}

fn collective(
    call: &Running,
    fh: File,
    direction: Direction,
    pointer: Pointer,
    buffer: UserBuffer,
    status: Option<Out<Status>>,
) -> Done {
    let memory = buffer.file_memory(&call.rank.lock());
    let done = call
        .rank
        .file_collective(call.procedure, fh.id(), direction, pointer, memory)?;
    write_status(done, status)
}

/// Writes the status of an access to a file.
pub(super) fn write_status(done: mpi::Status, status: Option<Out<Status>>) -> Done {
    if let Some(status) = status {
        status.fill(Status::from(done));
    }
    Ok(())
}
