//! The frame around every call from C: is MPI running, what becomes of an error, and that no panic
//! gets out.
//!
//! What must hold: the way of a call that succeeds is a load and two branches around the face's
//! function; everything else is cold and stands below. A panic is a fault of the library after which
//! nothing can be promised: it never unwinds into C, because entry points are `extern "C"` and the
//! library is built to abort (see `raise::on_panic` for the words).

use crate::constants::*;
use crate::error::Error;
use crate::handle::{Comm, File, Session, Win};
use crate::state::{LIBRARY, Rank};
use std::cell::Cell;
use std::ffi::c_int;
use std::ops::Deref;

/// Whose error handler hears of an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Object {
    /// No object of the call: the handler of MPI_COMM_SELF.
    None,
    /// A communicator.
    Comm(Comm),
    /// A window.
    Win(Win),
    /// A file.
    File(File),
    /// A session.
    Session(Session),
}

/// The call that is under way.
pub struct Call {
    /// The procedure's full name, such as `MPI_Send_c`.
    pub procedure: &'static str,
    object: Cell<Object>,
}

impl Call {
    /// Errors of this call go to the handler of `object` from now on: for calls whose arguments do not
    /// say so themselves, as MPI_Wait, where it is the communicator of the request.
    pub fn raise_on(&self, object: Object) {
        self.object.set(object);
    }
}

/// A call while MPI is running.
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

/// The frame of a procedure that needs a running MPI. `announced` is the same call, which is announced
/// first; `decode` checks and turns the arguments.
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
        Err(error) => failed(procedure, object, error),
    }
}

/// The frame of a procedure that may be called at any time.
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

/// The frame of a procedure of the tools interface, which returns its errors.
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

/// Takes the parts of a call and not its address, so that a call whose address nobody takes needs no memory.
#[cold]
#[inline(never)]
fn failed(procedure: &'static str, object: Object, error: Error) -> c_int {
    raise(procedure, object, &error)
}

/// Makes a call once more that did not find its rank: somebody watches the program, or MPI is not running.
#[inline(always)]
pub fn announced(procedure: &'static str, again: impl FnOnce() -> c_int) -> c_int {
    if !LIBRARY.enter(procedure) {
        return not_running(procedure);
    }
    let code = again();
    LIBRARY.leave();
    code
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

/// The body of a procedure that does not work yet.
#[cold]
pub fn unsupported(procedure: &'static str, object: Object) -> c_int {
    if LIBRARY.rank().is_none() {
        return not_running(procedure);
    }
    unsupported_early(procedure, object)
}

/// The same for one that may be called at any time.
#[cold]
pub fn unsupported_early(procedure: &'static str, object: Object) -> c_int {
    let detail = "this procedure is not supported yet";
    raise(
        procedure,
        object,
        &Error::new(MPI_ERR_UNSUPPORTED_OPERATION, detail),
    )
}

/// The same for one of the tools interface.
#[cold]
pub fn unsupported_tools() -> c_int {
    MPI_T_ERR_NOT_SUPPORTED
}

#[cold]
fn raise(procedure: &'static str, object: Object, error: &Error) -> c_int {
    match LIBRARY.rank() {
        Some(rank) => (rank.raise)(rank, object, procedure, error),
        None => fatal(procedure, error),
    }
}

/// While MPI is not running the initial error handler is in force, and that is MPI_ERRORS_ARE_FATAL
/// (section 9.3 of MPI 5.0).
#[cold]
fn fatal(procedure: &str, error: &Error) -> ! {
    eprintln!("fishplate: {procedure}: {error}");
    std::process::exit(error.class.0)
}

impl Object {
    /// The object of a call that gets the address of a handle. NULL is found by the checks that follow.
    ///
    /// # Safety
    /// `place` is NULL or holds a handle.
    #[inline(always)]
    pub unsafe fn comm_at(place: *const Comm) -> Object {
        // SAFETY: the caller's promise.
        unsafe { place.as_ref() }.map_or(Object::None, |comm| Object::Comm(*comm))
    }

    /// # Safety
    /// As for [`Object::comm_at`].
    #[inline(always)]
    pub unsafe fn win_at(place: *const Win) -> Object {
        // SAFETY: the caller's promise.
        unsafe { place.as_ref() }.map_or(Object::None, |win| Object::Win(*win))
    }

    /// # Safety
    /// As for [`Object::comm_at`].
    #[inline(always)]
    pub unsafe fn file_at(place: *const File) -> Object {
        // SAFETY: the caller's promise.
        unsafe { place.as_ref() }.map_or(Object::None, |file| Object::File(*file))
    }

    /// # Safety
    /// As for [`Object::comm_at`].
    #[inline(always)]
    pub unsafe fn session_at(place: *const Session) -> Object {
        // SAFETY: the caller's promise.
        unsafe { place.as_ref() }.map_or(Object::None, |session| Object::Session(*session))
    }
}
