//! What becomes of an error: the error handler of its object, and how a rank ends.

use crate::call_guard::Object;
use crate::error::Error;
use crate::state::Rank;
use mpi::comm;
use mpi::errhandler::Verdict;
use pmi::Notice;
use std::ffi::c_int;

/// Calls the error handler of the object; the code to return, if it comes back. What has no handler of its own is the
/// matter of MPI_COMM_SELF.
#[cold]
pub fn raise(rank: &Rank, object: Object, procedure: &str, error: &Error) -> c_int {
    let comm = match object {
        Object::Comm(comm) => comm.id(),
        Object::None | Object::Win(_) | Object::File(_) | Object::Session(_) => comm::SELF,
    };
    match rank.raise(comm, error.class.0) {
        Verdict::Return(code) => code,
        Verdict::Fatal | Verdict::Abort => fatal(rank, procedure, error),
    }
}

/// MPI_ERRORS_ARE_FATAL: ends the job, with words for the person in front of it.
#[cold]
pub fn fatal(rank: &Rank, procedure: &str, error: &Error) -> ! {
    let text = format!("{procedure}: {error}");
    let told = rank.lock().bootstrap.notify(Notice::Fault(&text)).is_ok();
    if !told {
        eprintln!("fishplate: rank {}: {text}", rank.rank());
    }
    std::process::exit(error.class.0.clamp(1, 255))
}

/// MPI_Abort.
#[cold]
pub fn abort(rank: &Rank, _object: Object, code: c_int) -> ! {
    let text = format!("rank {} called MPI_Abort with code {code}", rank.rank());
    let told = rank.lock().bootstrap.abort(code, &text).is_ok();
    if !told {
        eprintln!("fishplate: {text}");
    }
    // An exit code has eight bits, and an abort must not look like success.
    std::process::exit(if code & 0xff == 0 { 1 } else { code & 0xff })
}

/// A fault of the library itself: says so before the process aborts.
pub fn on_panic(rank: usize) {
    std::panic::set_hook(Box::new(move |panic| {
        eprintln!(
            "fishplate: rank {rank}: {panic}\nThis is a fault of the library, not of the program: please report it."
        );
    }));
}
