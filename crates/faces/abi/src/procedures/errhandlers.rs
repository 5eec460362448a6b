//! Section 9.3: error handlers.

use crate::args::Out;
use crate::call_guard::{Call, Running};
use crate::callback::{self, CommErrhandler, ErrhandlerFunction};
use crate::constants::{MPI_ERR_ARG, MPI_ERR_ERRHANDLER, MPI_ERRHANDLER_NULL};
use crate::error::{Done, Error};
use crate::handle::{Comm, Errhandler};
use crate::object::Object;
use crate::raise::raise_for_program;
use crate::state::LIBRARY;
use mpi::errhandler::{ABORT, FATAL, RETURN};
use mpi::handle::ObjectKind;
use std::ffi::c_int;
use std::sync::Arc;

/// `MPI_Comm_create_errhandler` (MPI 5.0, chapter 9).
pub fn comm_create_errhandler(
    call: &Running,
    function: CommErrhandler,
    errhandler: Out<Errhandler>,
) -> Done {
    create_errhandler::<Comm>(call, ObjectKind::Comm, function, errhandler)
}

/// Makes an error handler for objects of class `H`.
pub(super) fn create_errhandler<H: From<u32> + 'static>(
    call: &Running,
    kind: ObjectKind,
    function: ErrhandlerFunction<H>,
    errhandler: Out<Errhandler>,
) -> Done {
    let Some(function) = function else {
        return Err(Error::new(
            MPI_ERR_ARG,
            "the error handler is NULL; it must be a function",
        ));
    };
    let function = Arc::new(move |handle: u32, code: &mut c_int| {
        let mut handle = H::from(handle);
        // SAFETY: the user's function, called with the arguments of MPI 5.0 §9.3; further arguments
        // are the library's choice, and there are none.
        callback::run(|| unsafe { function(&raw mut handle, code) })
    });
    errhandler.set(
        call.rank
            .objects()
            .errhandlers_mut()
            .create(kind, function)?,
    );
    Ok(())
}

/// `MPI_Comm_set_errhandler` (MPI 5.0, chapter 9).
pub fn comm_set_errhandler(call: &Running, comm: Comm, errhandler: Errhandler) -> Done {
    call.rank
        .objects()
        .set_errhandler(comm.id(), errhandler.id())
}

/// `MPI_Comm_get_errhandler` (MPI 5.0, chapter 9).
pub fn comm_get_errhandler(call: &Running, comm: Comm, errhandler: Out<Errhandler>) -> Done {
    errhandler.set(call.rank.objects().errhandler(comm.id())?);
    Ok(())
}

/// `MPI_Comm_call_errhandler` (MPI 5.0, chapter 9). The call succeeds, whatever the handler
/// returns.
pub fn comm_call_errhandler(call: &Running, comm: Comm, code: c_int) -> Done {
    call.rank.objects().comms().get(comm.id())?;
    let error = Error::new(code, "the program called the error handler");
    raise_for_program(call.rank, Object::Comm(comm), call.procedure, &error);
    Ok(())
}

/// `MPI_Errhandler_free` (MPI 5.0, chapter 9). While MPI is not running, only the predefined
/// handlers exist.
pub fn errhandler_free(_: &Call, errhandler: &mut Errhandler) -> Done {
    let handle = errhandler.id();
    match LIBRARY.rank() {
        Some(rank) => rank.objects().errhandlers_mut().free(handle)?,
        None if matches!(handle, FATAL | ABORT | RETURN) => {}
        None => {
            let detail = format!("{handle:#x} is not an error handler, and MPI is not running");
            return Err(Error::new(MPI_ERR_ERRHANDLER, detail));
        }
    }
    *errhandler = MPI_ERRHANDLER_NULL;
    Ok(())
}
