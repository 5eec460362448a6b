//! The last steps of an error: the error handler of its object, or the end of the job.

use crate::call_guard::Object;
use crate::error::{Error, ErrorClass as Class};
use crate::state::Rank;
use mpi::comm;
use mpi::errhandler::{ErrorAction, RETURN};
use pmi::Notice;
use std::ffi::c_int;
use std::time::Duration;

/// The time within which a launcher ends the job of a rank that is gone, with much to spare.
const LAUNCHER_ENDS: Duration = Duration::from_secs(10);

/// Calls the error handler of the object, and gives the code to return if the handler returns. A
/// peer that is gone is the launcher's to report: it knows how that rank ended, and ends this one.
#[cold]
pub(crate) fn raise(rank: &Rank, object: Object, procedure: &str, error: &Error) -> c_int {
    match action(rank, object, error.class.0) {
        ErrorAction::Return(code) => code,
        ErrorAction::Fatal | ErrorAction::Abort => {
            if error.class == Class::PROC_ABORTED {
                std::thread::sleep(LAUNCHER_ENDS);
            }
            fatal(rank, procedure, error)
        }
    }
}

/// As [`raise`], for an error that the program itself reports.
#[cold]
pub(crate) fn raise_for_program(rank: &Rank, object: Object, procedure: &str, error: &Error) {
    match action(rank, object, error.class.0) {
        ErrorAction::Return(_) => {}
        ErrorAction::Fatal | ErrorAction::Abort => fatal(rank, procedure, error),
    }
}

/// Calls the error handler of the object. Windows and sessions have no handlers yet and use the one
/// of MPI_COMM_SELF, as calls without an object do.
fn action(rank: &Rank, object: Object, code: c_int) -> ErrorAction {
    match object {
        Object::Comm(comm) => rank.raise(comm.id(), code),
        Object::None | Object::Win(_) | Object::Session(_) => rank.raise(comm::SELF, code),
        Object::Made(errhandler) => rank.raise_by(errhandler.id(), comm::NULL, code),
        // The handler of files, unless a program sets another (MPI 5.0 §14.7).
        Object::File(_) => rank.raise_by(RETURN, comm::NULL, code),
    }
}

/// MPI_ERRORS_ARE_FATAL: ends the job with a message for its user.
#[cold]
pub(crate) fn fatal(rank: &Rank, procedure: &str, error: &Error) -> ! {
    let text = format!("{procedure}: {error}");
    let reported = rank.lock().bootstrap.notify(Notice::Fault(&text)).is_ok();
    if !reported {
        eprintln!("fishplate: rank {}: {text}", rank.rank());
    }
    std::process::exit(error.class.0.clamp(1, 255))
}

/// Ends the job (MPI_Abort).
#[cold]
pub(crate) fn abort(rank: &Rank, _object: Object, code: c_int) -> ! {
    let text = format!("rank {} called MPI_Abort with code {code}", rank.rank());
    let reported = rank.lock().bootstrap.abort(code, &text).is_ok();
    if !reported {
        eprintln!("fishplate: {text}");
    }
    // An exit code has eight bits, and an abort must not look like success.
    std::process::exit(if code & 0xff == 0 { 1 } else { code & 0xff })
}

/// Makes a panic print that the fault is the library's before the process aborts.
pub(crate) fn on_panic(rank: usize) {
    std::panic::set_hook(Box::new(move |panic| {
        eprintln!(
            "fishplate: rank {rank}: {panic}\nThis is a fault of the library, not of the program: please report it."
        );
    }));
}
