//! The last steps of an error: the error handler of its object, or the end of the job.

use crate::call_guard::Object;
use crate::constants::MPI_ERR_OTHER;
use crate::error::Error;
use crate::state::Rank;
use mpi::Misuse;
use mpi::comm;
use mpi::errhandler::ErrorAction;
use pmi::{Bootstrap, Notice};
use std::ffi::c_int;
use std::io::Write;
use std::sync::{Arc, mpsc};
use std::time::Duration;

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
    let code = error.class.0.clamp(1, 255);
    let fault = Notice::Fault { code, text: &text };
    let reported = rank.lock().bootstrap.notify(fault).is_ok();
    if !reported {
        say(&format!("rank {}: {text}", rank.rank()));
    }
    leave(code)
}

/// Ends the job (MPI_Abort).
#[cold]
pub(crate) fn abort(rank: &Rank, _object: Object, code: c_int) -> ! {
    let reported = rank.lock().bootstrap.abort(code, "").is_ok();
    if !reported {
        let number = rank.rank();
        say(&format!("rank {number} called MPI_Abort with code {code}"));
    }
    // An exit code has eight bits, and an abort must not look like success.
    leave(if code & 0xff == 0 { 1 } else { code & 0xff })
}

/// Longest wait for the streams of C, which another thread may hold or a slow reader delay.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// Ends the process. Its exit handlers do not run: MPI is open, and a handler that calls it could
/// wait for ever. Buffered output of C is written first.
pub(crate) fn leave(code: c_int) -> ! {
    let (done, flushed) = mpsc::channel();
    let flush = move || {
        // SAFETY: NULL stands for all streams.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        let _ = done.send(());
    };
    if std::thread::Builder::new().spawn(flush).is_ok() {
        let _ = flushed.recv_timeout(FLUSH_PATIENCE);
    }
    // SAFETY: nothing of this process is used afterwards.
    unsafe { libc::_exit(code) }
}

/// Prints a message in one write, so that lines of several ranks never run together.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("fishplate: {text}\n").as_bytes());
}

/// Makes a panic print that the fault is the library's before the process aborts, or end the job
/// with the reason if the fault is the program's.
pub(crate) fn on_panic(bootstrap: Arc<dyn Bootstrap>) {
    std::panic::set_hook(Box::new(move |panic| {
        let rank = bootstrap.rank();
        let Some(Misuse(text)) = panic.payload().downcast_ref() else {
            return say(&format!(
                "rank {rank}: {panic}\nThis is a fault of the library, not of the program: please report it."
            ));
        };
        let code = MPI_ERR_OTHER;
        if bootstrap.notify(Notice::Fault { code, text }).is_err() {
            say(&format!("rank {rank}: {text}"));
        }
        leave(code)
    }));
}
