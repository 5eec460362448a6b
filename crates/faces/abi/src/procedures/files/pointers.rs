//! Sections 14.4.2 to 14.4.4: file pointers.

use crate::args::Out;
use crate::call_guard::Running;
use crate::error::Done;
use crate::handle::File;
use std::ffi::c_int;

/// `MPI_File_seek` (MPI 5.0, chapter 14).
pub fn file_seek(call: &Running, fh: File, offset: i64, whence: c_int) -> Done {
    call.rank.objects().file_seek(fh.id(), offset, whence)
}

/// `MPI_File_get_position` (MPI 5.0, chapter 14).
pub fn file_get_position(call: &Running, fh: File, offset: Out<i64>) -> Done {
    offset.set(call.rank.objects().file_position(fh.id())?);
    Ok(())
}

/// `MPI_File_get_byte_offset` (MPI 5.0, chapter 14).
pub fn file_get_byte_offset(call: &Running, fh: File, offset: i64, disp: Out<i64>) -> Done {
    disp.set(call.rank.objects().file_byte_offset(fh.id(), offset)?);
    Ok(())
}

/// `MPI_File_seek_shared` (MPI 5.0, chapter 14).
pub fn file_seek_shared(call: &Running, fh: File, offset: i64, whence: c_int) -> Done {
    call.rank
        .file_seek_shared(call.procedure, fh.id(), offset, whence)
}

/// `MPI_File_get_position_shared` (MPI 5.0, chapter 14).
pub fn file_get_position_shared(call: &Running, fh: File, offset: Out<i64>) -> Done {
    offset.set(call.rank.file_position_shared(fh.id())?);
    Ok(())
}
