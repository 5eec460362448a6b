//! Section 14.3: views of files.

use super::super::comms::pairs;
use crate::args::{Out, OutCount, OutText};
use crate::call_guard::Running;
use crate::error::Done;
use crate::handle::{Datatype, File, Info};
use mpi::ViewArguments;
use std::ffi::CStr;

/// `MPI_File_set_view` (MPI 5.0, chapter 14).
pub fn file_set_view(
    call: &Running,
    fh: File,
    disp: i64,
    etype: Datatype,
    filetype: Datatype,
    datarep: &CStr,
    info: Info,
) -> Done {
    let arguments = ViewArguments {
        displacement: disp,
        etype: etype.id(),
        filetype: filetype.id(),
        representation: &datarep.to_string_lossy(),
        info: pairs(info),
    };
    call.rank.file_set_view(call.procedure, fh.id(), arguments)
}

/// `MPI_File_get_view` (MPI 5.0, chapter 14).
pub fn file_get_view(
    call: &Running,
    fh: File,
    disp: Out<i64>,
    etype: Out<Datatype>,
    filetype: Out<Datatype>,
    datarep: OutText,
) -> Done {
    let facts = call.rank.objects().file_view(fh.id())?;
    disp.set(facts.displacement);
    etype.set(facts.etype);
    filetype.set(facts.filetype);
    datarep.set(facts.representation.as_bytes());
    Ok(())
}

/// `MPI_File_get_type_extent` (MPI 5.0, chapter 14).
pub fn file_get_type_extent(
    call: &Running,
    fh: File,
    datatype: Datatype,
    extent: OutCount,
) -> Done {
    extent.set(call.rank.file_type_extent(fh.id(), datatype.id())?);
    Ok(())
}
