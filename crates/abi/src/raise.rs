//! The last steps of an error: the error handler of its object, or the end of the job.

use crate::call_guard::Object;
use crate::error::Error;
use crate::state::Rank;
use mpi::comm;
use mpi::errhandler::ErrorAction;
use pmi::Notice;
use std::ffi::c_int;

/// Calls the error handler of the object, and gives the code to return if the handler returns.
/// Objects without a handler use the one of MPI_COMM_SELF.
#[cold]
pub(crate) fn raise(rank: &Rank, object: Object, procedure: &str, error: &Error) -> c_int {
    let comm = match object {
        Object::Comm(comm) => comm.id(),
        Object::None | Object::Win(_) | Object::File(_) | Object::Session(_) => comm::SELF,
    };
    match rank.raise(comm, error.class.0) {
        ErrorAction::Return(code) => code,
        ErrorAction::Fatal | ErrorAction::Abort => fatal(rank, procedure, error),
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
