//! Error handlers of communicators: set, get, and call.

use crate::Result;
use crate::comm;
use crate::errhandler::{ABORT, ErrorAction, FATAL, RETURN};
use crate::handle::ObjectKind;
use crate::rank::Rank;
use crate::state::Objects;

impl Objects {
    /// `MPI_Comm_set_errhandler`.
    pub fn set_errhandler(&mut self, comm: u32, errhandler: u32) -> Result<()> {
        self.comms.get(comm)?;
        self.errhandlers.check(ObjectKind::Comm, errhandler)?;
        self.errhandlers.add_object(errhandler);
        let old = std::mem::replace(&mut self.comms.get_mut(comm)?.errhandler, errhandler);
        self.errhandlers.remove_object(old);
        Ok(())
    }

    /// `MPI_Comm_get_errhandler`: a handle that the user is to free.
    pub fn errhandler(&mut self, comm: u32) -> Result<u32> {
        let handle = self.comms.get(comm)?.errhandler;
        self.errhandlers.add_handle(handle);
        Ok(handle)
    }
}

impl Rank {
    /// Calls the error handler of a communicator. An error without a communicator, or with an
    /// invalid one, goes to the handler of `MPI_COMM_SELF`.
    #[cold]
    pub fn raise(&self, comm: u32, code: i32) -> ErrorAction {
        let state = self.lock();
        let of = |handle| Some((handle, state.objects.comms.get(handle).ok()?.errhandler));
        let (handle, errhandler) = of(comm)
            .or_else(|| of(comm::SELF))
            .unwrap_or((comm::SELF, FATAL));
        drop(state);
        self.raise_by(errhandler, handle, code)
    }

    /// Calls the error handler of a window. An invalid handle goes to the handler of
    /// `MPI_COMM_SELF`.
    #[cold]
    pub fn raise_window(&self, win: u32, code: i32) -> ErrorAction {
        let errhandler = self
            .lock()
            .objects
            .windows
            .get(win)
            .map(|window| window.errhandler);
        match errhandler {
            Ok(errhandler) => self.raise_by(errhandler, win, code),
            Err(_) => self.raise(comm::NULL, code),
        }
    }

    /// Calls this error handler, for the object of this handle. An invalid handler counts as
    /// `MPI_ERRORS_ARE_FATAL`.
    #[cold]
    pub fn raise_by(&self, errhandler: u32, handle: u32, code: i32) -> ErrorAction {
        let function = match errhandler {
            FATAL => return ErrorAction::Fatal,
            ABORT => return ErrorAction::Abort,
            RETURN => return ErrorAction::Return(code),
            _ => self.lock().objects.errhandlers.function(errhandler),
        };
        let Some(function) = function else {
            return ErrorAction::Fatal;
        };
        let mut code = code;
        function(handle, &mut code);
        ErrorAction::Return(code)
    }
}
