//! Section 9.3.3: error handlers of files.

use crate::args::Out;
use crate::call_guard::Running;
use crate::callback::FileErrhandler;
use crate::constants::MPI_ERR_ARG;
use crate::error::{Done, Error};
use crate::handle::{Errhandler, File};
use crate::object::Object;
use crate::raise::raise_for_program;
use mpi::handle::ObjectKind;
use std::ffi::c_int;
use std::sync::Arc;

/// `MPI_File_create_errhandler` (MPI 5.0, chapter 9).
pub fn file_create_errhandler(
    call: &Running,
    function: FileErrhandler,
    errhandler: Out<Errhandler>,
) -> Done {
    let Some(function) = function else {
        return Err(Error::new(
            MPI_ERR_ARG,
            "file_errhandler_fn is NULL; it must be a function",
        ));
    };
    let function = Arc::new(move |file: u32, code: &mut c_int| {
        let mut file = File::from(file);
        // SAFETY: the user's function, called with the arguments of MPI 5.0 §9.3; further arguments
        // are the library's choice, and there are none.
        unsafe { function(&raw mut file, code) }
    });
    let mut state = call.rank.lock();
    errhandler.set(
        state
            .objects_mut()
            .errhandlers_mut()
            .create(ObjectKind::File, function)?,
    );
    Ok(())
}

/// `MPI_File_set_errhandler` (MPI 5.0, chapter 9).
pub fn file_set_errhandler(call: &Running, file: File, errhandler: Errhandler) -> Done {
    call.rank
        .objects()
        .set_file_errhandler(file.id(), errhandler.id())
}

/// `MPI_File_get_errhandler` (MPI 5.0, chapter 9).
pub fn file_get_errhandler(call: &Running, file: File, errhandler: Out<Errhandler>) -> Done {
    errhandler.set(call.rank.objects().file_errhandler(file.id())?);
    Ok(())
}

/// `MPI_File_call_errhandler` (MPI 5.0, chapter 9). The call succeeds, whatever the handler
/// returns.
pub fn file_call_errhandler(call: &Running, fh: File, code: c_int) -> Done {
    call.rank.objects().check_file(fh.id())?;
    let error = Error::new(code, "the program called the error handler");
    raise_for_program(call.rank, Object::File(fh), call.procedure, &error);
    Ok(())
}
