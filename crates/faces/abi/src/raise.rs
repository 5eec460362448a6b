//! The last step of an error: a call of its object's error handler, or the end of the job.

use crate::constants::MPI_ERR_OTHER;
use crate::error::{Error, ErrorClass as Class};
use crate::object::Object;
use mpi::Misuse;
use mpi::comm;
use mpi::errhandler::ErrorAction;
use pmi::{Bootstrap, Notice, StartReporter};
use std::ffi::{CStr, c_int};
use std::io::Write;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The time within which a launcher certainly ends the job of a rank that has gone.
const LAUNCHER_ENDS: Duration = Duration::from_secs(10);
/// The time within which a launcher that watches its ranks ends the job after a rank has died.
const DEATH_IS_REPORTED: Duration = Duration::from_millis(500);
/// The time within which the job ends after a death under a launcher that does not report deaths:
/// by the launcher, or by a neighbour of the dead rank.
const DEATH_IS_KNOWN: Duration = Duration::from_secs(4);

/// Calls the error handler of the object, and returns its code if the handler returns. If a fatal
/// error is the loss of a peer, this waits first, so that the launcher reports it and ends this
/// rank: it knows how the peer ended. The same holds for a lost connection, with a shorter wait.
#[cold]
pub(crate) fn raise(rank: &mpi::Rank, object: Object, procedure: &str, error: &Error) -> c_int {
    match action(rank, object, error.class.0) {
        ErrorAction::Return(code) => code,
        ErrorAction::Fatal | ErrorAction::Abort => {
            // Also of a call that sums up the errors of several requests.
            if error.exit_class == Class::PROC_ABORTED {
                std::thread::sleep(LAUNCHER_ENDS);
            } else if error.may_be_death {
                std::thread::sleep(match bootstrap_of(rank).reports_deaths() {
                    true => DEATH_IS_REPORTED,
                    false => DEATH_IS_KNOWN,
                });
            }
            fatal(rank, procedure, error)
        }
    }
}

/// Calls the error handler like [`raise`], for an error that the program itself reports.
#[cold]
pub(crate) fn raise_for_program(rank: &mpi::Rank, object: Object, procedure: &str, error: &Error) {
    match action(rank, object, error.class.0) {
        ErrorAction::Return(_) => {}
        ErrorAction::Fatal | ErrorAction::Abort => fatal(rank, procedure, error),
    }
}

/// Calls the error handler of the object. Sessions have no handlers yet: they and calls without an
/// object use that of MPI_COMM_SELF.
fn action(rank: &mpi::Rank, object: Object, code: c_int) -> ErrorAction {
    match object {
        Object::Comm(comm) => rank.raise(comm.id(), code),
        Object::Win(win) => rank.raise_window(win.id(), code),
        Object::None | Object::Session(_) => rank.raise(comm::SELF, code),
        Object::Made(errhandler) => rank.raise_by(errhandler.id(), comm::NULL, code),
        Object::File(file) => rank.raise_on_file(file.id(), code),
    }
}

/// Does the action of MPI_ERRORS_ARE_FATAL: ends the job with a message for the user.
#[cold]
pub(crate) fn fatal(rank: &mpi::Rank, procedure: &str, error: &Error) -> ! {
    let text = format!("{procedure}: {error}");
    let code = error.exit_class.0.clamp(1, 255);
    let fault = Notice::Fault { code, text: &text };
    let reported = rank.bootstrap().notify(fault).is_ok();
    if !reported {
        say(&format!("rank {}: {text}", rank.rank()));
    }
    end_job(&*bootstrap_of(rank), code)
}

fn bootstrap_of(rank: &mpi::Rank) -> Arc<dyn Bootstrap> {
    Arc::clone(rank.bootstrap())
}

/// Ends the job for an error before MPI has started. The launcher reports it once for all ranks.
#[cold]
pub(crate) fn end_start(launcher: &StartReporter, procedure: &str, error: &Error) -> ! {
    let text = format!("{procedure}: {error}");
    let code = error.class.0.clamp(1, 255);
    if launcher.failed(code, &text).is_err() {
        say(&text);
    }
    flush();
    launcher.end_job(code);
    exit(code)
}

/// Flushes output, and ends the process and with it the job.
fn end_job(bootstrap: &dyn Bootstrap, code: c_int) -> ! {
    flush();
    bootstrap.end_job(code);
    exit(code)
}

/// Ends the job (MPI_Abort).
#[cold]
pub(crate) fn abort(rank: &mpi::Rank, _object: Object, code: c_int) -> ! {
    let reported = rank.bootstrap().abort(code, "").is_ok();
    if !reported {
        let number = rank.rank();
        say(&format!("rank {number} called MPI_Abort with code {code}"));
    }
    // An exit code has eight bits, and an abort must not pass for success.
    let code = if code & 0xff == 0 { 1 } else { code & 0xff };
    end_job(&*bootstrap_of(rank), code)
}

/// The longest wait for the flush of streams, which another thread may lock or a slow reader may
/// block.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// Ends the process without its exit handlers: MPI is open, and a handler that calls it could wait
/// for ever. Buffered output is written first.
pub(crate) fn leave(code: c_int) -> ! {
    flush();
    exit(code)
}

/// The function of gfortran's library that writes the buffered output of a unit, or of all units
/// for NULL. Without it, output that a program has printed before MPI_Abort would be lost.
const FLUSH_UNIT: &CStr = c"_gfortran_flush_i4";

/// Writes buffered output of Fortran, if the program has gfortran's library.
fn flush_fortran() {
    // SAFETY: the name ends with NUL.
    let flush_unit = unsafe { libc::dlsym(libc::RTLD_DEFAULT, FLUSH_UNIT.as_ptr()) };
    if !flush_unit.is_null() {
        // SAFETY: the function of this name takes the address of an integer, or NULL.
        unsafe {
            let flush_unit: extern "C" fn(*const c_int) = std::mem::transmute(flush_unit);
            flush_unit(std::ptr::null());
        }
    }
}

/// Writes buffered output of C and of Fortran.
fn flush() {
    let (done, flushed) = mpsc::channel();
    let flush = move || {
        // SAFETY: NULL means all streams.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        flush_fortran();
        let _ = done.send(());
    };
    if std::thread::Builder::new().spawn(flush).is_ok() {
        let _ = flushed.recv_timeout(FLUSH_PATIENCE);
    }
}

fn exit(code: c_int) -> ! {
    // SAFETY: nothing of this process is used afterwards.
    unsafe { libc::_exit(code) }
}

/// Prints a message in one write, so that lines of several ranks never mix. The message may contain
/// text of other programs: it is made safe for a terminal.
pub(crate) fn say(text: &str) {
    let text = terminal_text::lines(text);
    let _ = std::io::stderr().write_all(format!("fishplate: {text}\n").as_bytes());
}

/// Sets the action of a panic: it prints that the error is the library's before the process aborts,
/// or ends the job with the reason if the error is the program's.
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
        end_job(&*bootstrap, code)
    }));
}
