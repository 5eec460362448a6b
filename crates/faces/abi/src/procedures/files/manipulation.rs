//! Sections 14.2 and 14.6: opening, deleting and size of files, their hints and their consistency.

use super::super::comms::pairs;
use crate::args::{Flag, Out};
use crate::call_guard::Running;
use crate::constants::{MPI_ERR_BAD_FILE, MPI_FILE_NULL};
use crate::error::{Done, Error};
use crate::handle::{Comm, File, Group, Info};
use crate::info::InfoObject;
use crate::state::LIBRARY;
use recording::without_prefix;
use std::ffi::{CStr, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `MPI_File_open` (MPI 5.0, chapter 14).
pub fn file_open(
    call: &Running,
    comm: Comm,
    filename: &CStr,
    amode: c_int,
    info: Info,
    fh: Out<File>,
) -> Done {
    fh.set(MPI_FILE_NULL);
    let made = call.rank.file_open(
        call.procedure,
        comm.id(),
        path_of(filename),
        amode,
        pairs(info),
    )?;
    fh.set(made);
    Ok(())
}

/// `MPI_File_close` (MPI 5.0, chapter 14).
pub fn file_close(call: &Running, fh: &mut File) -> Done {
    call.rank.file_close(call.procedure, fh.id())?;
    *fh = MPI_FILE_NULL;
    Ok(())
}

/// `MPI_File_delete` (MPI 5.0, chapter 14).
pub fn file_delete(call: &Running, filename: &CStr, info: Info) -> Done {
    pairs(info)?;
    call.rank.file_delete(path_of(filename)?)
}

/// `MPI_File_set_size` (MPI 5.0, chapter 14).
pub fn file_set_size(call: &Running, fh: File, size: i64) -> Done {
    call.rank.file_set_size(call.procedure, fh.id(), size)
}

/// `MPI_File_preallocate` (MPI 5.0, chapter 14).
pub fn file_preallocate(call: &Running, fh: File, size: i64) -> Done {
    call.rank.file_preallocate(call.procedure, fh.id(), size)
}

/// `MPI_File_get_size` (MPI 5.0, chapter 14).
pub fn file_get_size(call: &Running, fh: File, size: Out<i64>) -> Done {
    size.set(call.rank.objects().file_size(fh.id())?);
    Ok(())
}

/// `MPI_File_get_group` (MPI 5.0, chapter 14).
pub fn file_get_group(call: &Running, fh: File, group: Out<Group>) -> Done {
    group.set(call.rank.objects().file_group(fh.id())?);
    Ok(())
}

/// `MPI_File_get_amode` (MPI 5.0, chapter 14).
pub fn file_get_amode(call: &Running, fh: File, amode: Out<c_int>) -> Done {
    amode.set(call.rank.objects().file_mode(fh.id())?);
    Ok(())
}

/// `MPI_File_set_info` (MPI 5.0, chapter 14).
pub fn file_set_info(call: &Running, fh: File, info: Info) -> Done {
    call.rank
        .file_set_info(call.procedure, fh.id(), pairs(info))
}

/// `MPI_File_get_info` (MPI 5.0, chapter 14).
pub fn file_get_info(call: &Running, fh: File, info: Out<Info>) -> Done {
    let mut object = InfoObject::default();
    for (key, value) in call.rank.objects().file_info(fh.id())? {
        object.set(key.as_bytes(), value.as_bytes());
    }
    info.set(LIBRARY.infos().insert(object)?);
    Ok(())
}

/// `MPI_File_set_atomicity` (MPI 5.0, chapter 14).
pub fn file_set_atomicity(call: &Running, fh: File, flag: bool) -> Done {
    call.rank.file_set_atomicity(call.procedure, fh.id(), flag)
}

/// `MPI_File_get_atomicity` (MPI 5.0, chapter 14).
pub fn file_get_atomicity(call: &Running, fh: File, flag: Out<Flag>) -> Done {
    flag.set(call.rank.objects().file_atomicity(fh.id())?);
    Ok(())
}

/// `MPI_File_sync` (MPI 5.0, chapter 14).
pub fn file_sync(call: &Running, fh: File) -> Done {
    call.rank.file_sync(call.procedure, fh.id())
}

/// The path of a file, without the prefix for the kind of its file system.
fn path_of(name: &CStr) -> Result<&Path, Error> {
    match without_prefix(name.to_bytes()) {
        [] => Err(Error::new(MPI_ERR_BAD_FILE, "the file name is empty")),
        path => Ok(Path::new(OsStr::from_bytes(path))),
    }
}
