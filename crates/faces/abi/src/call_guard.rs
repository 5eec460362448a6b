//! The guard around every call from C: it finds the rank, passes errors to their handler, and keeps
//! panics out of C.
//!
//! Invariant: a successful call costs a load and two branches around the procedure's function; all
//! other code is cold and comes last in this file. A panic is a bug of the library, after which
//! nothing can be promised. It never unwinds into C, because entry points are `extern "C"` and the
//! library is built to abort (`raise::on_panic` prints the message).

use crate::buffer::UserBuffer;
use crate::call_trace::Watch;
use crate::constants::*;
use crate::error::Error;
use crate::making;
use crate::object::Object;
use crate::state::{LIBRARY, Rank};
use pmi::{Notice, unsupported_text};
use recording::{RECORDED, Recorded};
use std::cell::Cell;
use std::ffi::c_int;
use std::ops::Deref;

/// The program's present call of a procedure.
pub struct Call {
    /// The procedure's full name, such as `MPI_Send_c`.
    pub procedure: &'static str,
    object: Cell<Object>,
}

impl Call {
    /// Sets the object whose error handler gets the errors of this call from now on. For calls
    /// whose arguments do not name the object, such as MPI_Wait: the object is the request's
    /// communicator.
    pub fn raise_on(&self, object: Object) {
        self.object.set(object);
    }
}

/// The program's present call of a procedure, made while MPI is running.
pub struct Running {
    call: Call,
    /// The rank of this process.
    pub rank: &'static Rank,
}

impl Deref for Running {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

/// The guard of a procedure that needs a running MPI. `decode` checks and converts the arguments;
/// `body` does the work; `announced` announces the call to the trace, and then repeats it.
#[inline(always)]
pub fn running<A>(
    procedure: &'static str,
    object: Object,
    announced: impl FnOnce() -> c_int,
    decode: impl FnOnce() -> Result<A, Error>,
    body: impl FnOnce(&Running, A) -> Result<(), Error>,
) -> c_int {
    let Some(rank) = LIBRARY.rank_in_call() else {
        return announced();
    };
    let call = Running {
        call: Call {
            procedure,
            object: Cell::new(object),
        },
        rank,
    };
    match decode() {
        Ok(arguments) => finish(&call, || body(&call, arguments)),
        Err(error) => refused(procedure, object, error),
    }
}

/// The guard of a procedure that may be called at any time.
#[inline(always)]
pub fn early<A>(
    procedure: &'static str,
    object: Object,
    decode: impl FnOnce() -> Result<A, Error>,
    body: impl FnOnce(&Call, A) -> Result<(), Error>,
) -> c_int {
    let call = Call {
        procedure,
        object: Cell::new(object),
    };
    match decode() {
        Ok(arguments) => finish(&call, || body(&call, arguments)),
        Err(error) => failed(procedure, object, error),
    }
}

/// The guard of a procedure of the tools interface, which returns its errors without a handler.
#[inline(always)]
pub fn tools<A>(
    procedure: &'static str,
    decode: impl FnOnce() -> Result<A, Error>,
    body: impl FnOnce(&Call, A) -> Result<(), Error>,
) -> c_int {
    let call = Call {
        procedure,
        object: Cell::new(Object::None),
    };
    match decode().and_then(|arguments| body(&call, arguments)) {
        Ok(()) => MPI_SUCCESS,
        Err(error) => error.class.0,
    }
}

#[inline(always)]
fn finish(call: &Call, body: impl FnOnce() -> Result<(), Error>) -> c_int {
    match body() {
        Ok(()) => MPI_SUCCESS,
        Err(error) => failed(call.procedure, call.object.get(), error),
    }
}

/// Raises the error of a call with invalid arguments. The other ranks of a collective call on a
/// file, or of a call that makes a communicator or a window, get the error too.
#[cold]
#[inline(never)]
fn refused(procedure: &'static str, object: Object, error: Error) -> c_int {
    if let (Object::File(file), Some(rank)) = (object, LIBRARY.rank())
        && is_collective(procedure)
    {
        rank.file_refuse(file.id(), &error);
    }
    let error = match object {
        Object::Comm(comm) => making::refuse(procedure, comm, error),
        _ => error,
    };
    failed(procedure, object, error)
}

/// True if all ranks of a file take part in the procedure.
fn is_collective(procedure: &str) -> bool {
    let begins = !procedure.ends_with("_end");
    begins
        && [
            "_all",
            "_ordered",
            "_set_",
            "_sync",
            "_preallocate",
            "_seek_shared",
            "_close",
        ]
        .iter()
        .any(|part| procedure.contains(part))
        && !procedure.ends_with("_errhandler")
}

/// Raises an error. It takes the fields of a call one by one: a call whose address is passed would
/// need memory in every procedure.
#[cold]
#[inline(never)]
fn failed(procedure: &'static str, object: Object, error: Error) -> c_int {
    raise(procedure, object, &error)
}

/// A function that calls a procedure whose arguments are 64-bit words.
pub type ByWords = unsafe fn(&[u64]) -> c_int;

/// Announces a call that found no rank to the trace, and repeats it. Without a trace, MPI is not
/// running, which is a fatal error. `used`: buffers of the program, each with true if the call
/// writes it. `number`, `words` and `by_words`: the procedure, its arguments, and its call with
/// others, for a recording.
///
/// # Safety
/// The words are the arguments of that procedure, as C promises them.
#[inline(always)]
pub unsafe fn announced(
    number: usize,
    words: &[u64],
    by_words: ByWords,
    again: impl FnOnce() -> c_int,
    used: &[(UserBuffer, bool)],
) -> c_int {
    let mut again = Some(again);
    let mut again = || again.take().map_or(MPI_ERR_INTERN, |again| again());
    // SAFETY: the caller's promise.
    unsafe { announce(number, words, by_words, &mut again, used) }
}

/// Repeats the program's call. It is called once.
type Again<'a> = &'a mut dyn FnMut() -> c_int;

/// Announces a call as [`announced`] does. The function is one for all procedures.
///
/// # Safety
/// As for [`announced`].
#[cold]
#[inline(never)]
unsafe fn announce(
    number: usize,
    words: &[u64],
    by_words: ByWords,
    again: Again,
    used: &[(UserBuffer, bool)],
) -> c_int {
    let Recorded {
        name, constructs, ..
    } = RECORDED[number];
    if !LIBRARY.enter(name, constructs) {
        return not_running(name);
    }
    let is_noted = note_use(used);
    let messages = LIBRARY.message_notes();
    // SAFETY: the caller's promise.
    let code = unsafe {
        match messages {
            Some(rank) => checked(rank, number, words, by_words, again),
            None => recorded(number, words, by_words, again),
        }
    };
    if is_noted && let Some(rank) = LIBRARY.rank_in_call() {
        rank.lock().notes().returned();
    }
    LIBRARY.leave();
    code
}

/// Makes a call that traces record, and passes its arguments and results to the recorder, if there
/// is one.
///
/// # Safety
/// As for [`announced`].
unsafe fn recorded(number: usize, words: &[u64], by_words: ByWords, again: Again) -> c_int {
    // SAFETY: the caller's promise; other arguments differ by valid memory for statuses.
    unsafe {
        let Some(given) = LIBRARY.arguments(number, words) else {
            let code = again();
            LIBRARY.results(words, code);
            return code;
        };
        let mut words = words.to_vec();
        words[given.parameter] = given.address;
        let code = by_words(&words);
        LIBRARY.results(&words, code);
        code
    }
}

/// Makes a call whose messages are checked.
///
/// # Safety
/// As for [`announced`].
unsafe fn checked(
    rank: &'static Rank,
    number: usize,
    words: &[u64],
    by_words: ByWords,
    again: Again,
) -> c_int {
    let notes = rank.watch.as_ref().and_then(Watch::messages);
    // SAFETY: the caller's promise; other arguments differ by valid memory for statuses.
    unsafe {
        let Some(notes) = notes else {
            return recorded(number, words, by_words, again);
        };
        let begun = notes.begin(rank, number, words);
        // Words have no functions of the program: only a call that needs other words is by words.
        let code = match begun.words == words {
            true => recorded(number, words, by_words, again),
            false => recorded(number, &begun.words, by_words, &mut || {
                by_words(&begun.words)
            }),
        };
        // MPI_Finalize has left the machine.
        if LIBRARY.rank_in_call().is_some() {
            notes.end(rank, &begun, code);
        }
        code
    }
}

/// If accesses to windows are checked, notes the use of memory that belongs to windows. Returns
/// true if some of `used` does.
#[cold]
fn note_use(used: &[(UserBuffer, bool)]) -> bool {
    let Some(rank) = LIBRARY.rank_in_call().filter(|_| !used.is_empty()) else {
        return false;
    };
    let mut state = rank.lock();
    let mut is_noted = false;
    for (memory, is_written) in used {
        // The call itself reports errors in its arguments.
        if let Ok(memory) = memory.buffer(&state) {
            is_noted |= state.notes().uses(&memory, *is_written);
        }
    }
    is_noted
}

#[cold]
fn not_running(procedure: &'static str) -> c_int {
    let when = if LIBRARY.initialised() {
        "after MPI_Finalize"
    } else {
        "before MPI_Init"
    };
    fatal(
        procedure,
        &Error::new(MPI_ERR_OTHER, format!("called {when}")),
    )
}

/// The body of a procedure that is not implemented yet.
#[cold]
pub fn unsupported(procedure: &'static str, object: Object) -> c_int {
    if LIBRARY.rank().is_none() {
        return not_running(procedure);
    }
    unsupported_early(procedure, object)
}

/// The body of a procedure that is not implemented yet and may be called at any time.
#[cold]
pub fn unsupported_early(procedure: &'static str, object: Object) -> c_int {
    // An error handler may query the text of its error.
    LIBRARY.refused().called(procedure);
    let detail = "this procedure is not supported yet";
    let error = Error::new(MPI_ERR_UNSUPPORTED_OPERATION, detail);
    let code = raise(procedure, object, &error);
    report(procedure);
    code
}

/// The body of a procedure of the tools interface that is not implemented yet.
#[cold]
pub fn unsupported_tools(procedure: &'static str) -> c_int {
    report(procedure);
    MPI_T_ERR_NOT_SUPPORTED
}

/// Reports, once for each procedure, that an unsupported procedure was called and its error handler
/// returned.
#[cold]
fn report(procedure: &'static str) {
    if !LIBRARY.refused().is_new(procedure) {
        return;
    }
    let Some(rank) = LIBRARY.rank() else {
        return crate::raise::say(&unsupported_text(procedure));
    };
    let notice = Notice::Unsupported(procedure);
    let heard = rank.bootstrap().notify(notice).is_ok();
    if !heard {
        let text = unsupported_text(procedure);
        crate::raise::say(&format!("rank {}: {text}", rank.rank()));
    }
}

#[cold]
fn raise(procedure: &'static str, object: Object, error: &Error) -> c_int {
    match LIBRARY.rank() {
        Some(rank) => (rank.raise)(rank, object, procedure, error),
        None if object == Object::Made(MPI_ERRORS_RETURN) => error.class.0,
        None => fatal(procedure, error),
    }
}

/// Ends the process: while MPI is not running, and the call names no error handler, the initial one
/// applies, which is MPI_ERRORS_ARE_FATAL (section 9.3 of MPI 5.0).
#[cold]
fn fatal(procedure: &str, error: &Error) -> ! {
    crate::raise::say(&format!("{procedure}: {error}"));
    crate::raise::leave(error.class.0.clamp(1, 255))
}
