//! Error handlers (MPI 5.0 §9.3): what an error does to the program.
//!
//! Invariant: a handler that the user has freed stays as long as an object uses it.

use std::sync::Arc;

use crate::handle::{ObjectKind, Slab};
use crate::{Class, Error, Result};

/// `MPI_ERRHANDLER_NULL`, with the ABI's value.
pub const NULL: u32 = 0x140;
/// `MPI_ERRORS_ARE_FATAL`, with the ABI's value.
pub const FATAL: u32 = 0x141;
/// `MPI_ERRORS_ABORT`, with the ABI's value.
pub const ABORT: u32 = 0x142;
/// `MPI_ERRORS_RETURN`, with the ABI's value.
pub const RETURN: u32 = 0x143;

/// A user's function. Its arguments are the object's handle, and the error code, which it may
/// change.
pub type Function = Arc<dyn Fn(u32, &mut i32) + Send + Sync>;

/// The action that follows from the error handler of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorAction {
    /// All connected processes are ended.
    Fatal,
    /// The processes of this communicator are ended.
    Abort,
    /// The call returns this error code.
    Return(i32),
}

/// All error handlers that a program made.
pub struct Errhandlers(Slab<Errhandler>);

struct Errhandler {
    kind: ObjectKind,
    function: Function,
    /// Number of handles that the user holds and may free.
    handles: u32,
    /// The number of objects to which the handler is attached.
    objects: u32,
}

impl Default for Errhandlers {
    fn default() -> Errhandlers {
        Errhandlers(Slab::new(ObjectKind::Errhandler))
    }
}

impl Errhandlers {
    /// Adds an error handler for objects of this kind, and returns its handle.
    pub fn create(&mut self, kind: ObjectKind, function: Function) -> Result<u32> {
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

    /// `MPI_Errhandler_free`: counts one handle less that the user holds.
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

    /// Checks that the user may set this handler on an object of this kind.
    pub(crate) fn check(&self, kind: ObjectKind, handle: u32) -> Result<()> {
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

    /// The user's function of a handler; `None` for a predefined handler.
    pub(crate) fn function(&self, handle: u32) -> Option<Function> {
        let errhandler = self.0.get(handle)?;
        Some(errhandler.function.clone())
    }

    /// Counts one more handle of the handler that the user holds.
    pub(crate) fn add_handle(&mut self, handle: u32) {
        if let Some(errhandler) = self.0.get_mut(handle) {
            errhandler.handles += 1;
        }
    }

    /// Counts one more object to which the handler is attached.
    pub(crate) fn add_object(&mut self, handle: u32) {
        if let Some(errhandler) = self.0.get_mut(handle) {
            errhandler.objects += 1;
        }
    }

    /// Counts one object less to which the handler is attached.
    pub(crate) fn remove_object(&mut self, handle: u32) {
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
