//! Section 14.4.5: split collective accesses.

use super::access::write_status;
use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::error::Done;
use crate::handle::{Datatype, File};
use crate::status::Status;
use mpi::file::Direction::{Read, Write};
use mpi::file::Pointer::{At, Individual, Shared};
use mpi::file::{PointerKind, SplitKind};
use std::ffi::c_void;

macro_rules! split {
    ($($begin:ident $end:ident $direction:ident $pointer:expr, $kind:ident ($($offset:ident)?) $buf:ty;)*) => {
        $(
            /// Begins the access.
            ///
            /// # Safety
            /// The buffer fulfils [`UserBuffer::new`]'s promise until the end of the access.
            pub unsafe fn $begin(
                call: &Running,
                fh: File,
                $($offset: i64,)?
                buf: $buf,
                count: i64,
                datatype: Datatype,
            ) -> Done {
                // SAFETY: the caller promises the memory until the end of the access.
                let buffer = unsafe { UserBuffer::new(buf.cast::<c_void>(), count, datatype) };
                let memory = buffer.file_memory(&call.rank.lock());
                call.rank.file_begin(fh.id(), $direction, $pointer, memory)
            }

            /// Ends the split access. The buffer is the one that its begin got.
            pub fn $end(call: &Running, fh: File, _buf: $buf, status: Option<Out<Status>>) -> Done {
                let kind = SplitKind {
                    direction: $direction,
                    pointer: PointerKind::$kind,
                };
                write_status(call.rank.file_end(call.procedure, fh.id(), kind)?, status)
            }
        )*
    };
}

split! {
    file_read_at_all_begin file_read_at_all_end Read At(offset), Explicit (offset) *mut c_void;
    file_write_at_all_begin file_write_at_all_end Write At(offset), Explicit (offset) *const c_void;
    file_read_all_begin file_read_all_end Read Individual, Individual () *mut c_void;
    file_write_all_begin file_write_all_end Write Individual, Individual () *const c_void;
    file_read_ordered_begin file_read_ordered_end Read Shared, Shared () *mut c_void;
    file_write_ordered_begin file_write_ordered_end Write Shared, Shared () *const c_void;
}
