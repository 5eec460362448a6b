//! Error handlers (MPI 5.0 §9.3): who hears of an error, and what becomes of the program then.
//!
//! A handler that the user frees stays as long as a communicator uses it.

use std::sync::Arc;

use crate::handle::{Kind, Slab};
use crate::rank::{Rank, State};
use crate::{Class, Error, Result, comm};

/// The ABI's values.
pub const NULL: u32 = 0x140;
pub const FATAL: u32 = 0x141;
pub const ABORT: u32 = 0x142;
pub const RETURN: u32 = 0x143;

/// A user's function: it gets the object's handle, and the error code to look at and to change.
pub type Function = Arc<dyn Fn(u32, &mut i32) + Send + Sync>;

/// What is to be done after an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All connected processes end.
    Fatal,
    /// The processes of this communicator end.
    Abort,
    /// The call returns this code.
    Return(i32),
}

/// All error handlers that the user made.
pub struct Errhandlers(Slab<Errhandler>);

struct Errhandler {
    kind: Kind,
    function: Function,
    /// Handles that the user has and may free.
    handles: u32,
    /// Objects that use it.
    objects: u32,
}

impl Default for Errhandlers {
    fn default() -> Errhandlers {
        Errhandlers(Slab::new(Kind::Errhandler))
    }
}

impl Errhandlers {
    /// `kind`: of the objects that it is for.
    pub fn create(&mut self, kind: Kind, function: Function) -> Result<u32> {
        let errhandler = Errhandler {
            kind,
            function,
            handles: 1,
            objects: 0,
        };
        self.0.insert(errhandler).ok_or_else(|| {
            Error::new(
                Class::NO_MEM,
                "there are a million error handlers: free some of them first",
            )
        })
    }

    pub fn free(&mut self, handle: u32) -> Result<()> {
        if is_predefined(handle) {
            return Ok(());
        }
        let errhandler = self
            .0
            .get_mut(handle)
            .filter(|errhandler| errhandler.handles > 0);
        errhandler.ok_or_else(|| unknown(handle))?.handles -= 1;
        self.tidy(handle);
        Ok(())
    }

    fn check(&self, kind: Kind, handle: u32) -> Result<()> {
        if is_predefined(handle) {
            return Ok(());
        }
        match self.0.get(handle) {
            Some(errhandler) if errhandler.handles == 0 => Err(unknown(handle)),
            Some(errhandler) if errhandler.kind != kind => {
                let detail = format!(
                    "error handler {handle:#x} is for another kind of object ({:?})",
                    errhandler.kind
                );
                Err(Error::new(Class::ERRHANDLER, detail))
            }
            Some(_) => Ok(()),
            None => Err(unknown(handle)),
        }
    }

    /// One object more uses it.
    pub(crate) fn hold(&mut self, handle: u32) {
        if let Some(errhandler) = self.0.get_mut(handle) {
            errhandler.objects += 1;
        }
    }

    /// One object fewer uses it.
    pub(crate) fn let_go(&mut self, handle: u32) {
        if let Some(errhandler) = self.0.get_mut(handle) {
            errhandler.objects -= 1;
            self.tidy(handle);
        }
    }

    fn tidy(&mut self, handle: u32) {
        if self
            .0
            .get(handle)
            .is_some_and(|errhandler| errhandler.handles == 0 && errhandler.objects == 0)
        {
            self.0.remove(handle);
        }
    }
}

impl State {
    pub fn set_errhandler(&mut self, comm: u32, errhandler: u32) -> Result<()> {
        self.comms.get(comm)?;
        self.errhandlers.check(Kind::Comm, errhandler)?;
        self.errhandlers.hold(errhandler);
        let old = std::mem::replace(&mut self.comms.get_mut(comm)?.errhandler, errhandler);
        self.errhandlers.let_go(old);
        Ok(())
    }

    /// The handler of a communicator: a handle that the user is to free.
    pub fn errhandler(&mut self, comm: u32) -> Result<u32> {
        let handle = self.comms.get(comm)?.errhandler;
        if let Some(errhandler) = self.errhandlers.0.get_mut(handle) {
            errhandler.handles += 1;
        }
        Ok(handle)
    }
}

impl Rank {
    /// Lets the handler of a communicator hear of an error. What has no communicator of its own is the matter of
    /// `MPI_COMM_SELF`, and so is what names one that does not exist.
    #[cold]
    pub fn raise(&self, comm: u32, code: i32) -> Verdict {
        let state = self.lock();
        let (handle, errhandler) = match state.comms.get(comm) {
            Ok(known) => (comm, known.errhandler),
            Err(_) => (comm::SELF, state.comms.alone.errhandler),
        };
        let function = match errhandler {
            FATAL => return Verdict::Fatal,
            ABORT => return Verdict::Abort,
            _ => state
                .errhandlers
                .0
                .get(errhandler)
                .map(|errhandler| errhandler.function.clone()),
        };
        drop(state);
        let mut code = code;
        if let Some(function) = function {
            function(handle, &mut code);
        }
        Verdict::Return(code)
    }
}

fn is_predefined(handle: u32) -> bool {
    matches!(handle, FATAL | ABORT | RETURN)
}

#[cold]
fn unknown(handle: u32) -> Error {
    let detail = match handle {
        NULL => "MPI_ERRHANDLER_NULL is not an error handler that can be used".to_string(),
        _ => format!("{handle:#x} is not an error handler: it was never one, or it has been freed"),
    };
    Error::new(Class::ERRHANDLER, detail)
}
