//! Section 13.2: generalized requests.

use super::completion::id;
use crate::args::Out;
use crate::call_guard::Running;
use crate::callback::{self, GrequestCancel, GrequestFree, GrequestQuery};
use crate::constants::{MPI_REQUEST_NULL, MPI_SUCCESS};
use crate::error::{Done, Error};
use crate::handle::Request;
use crate::status::Status;
use mpi::{Answer, Functions};
use std::ffi::{c_int, c_void};
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;

/// `MPI_Grequest_start` (MPI 5.0, chapter 13). A function that is NULL does nothing.
pub fn grequest_start(
    call: &Running,
    query: GrequestQuery,
    free: GrequestFree,
    cancel: GrequestCancel,
    extra_state: *mut c_void,
    request: Out<Request>,
) -> Done {
    let functions = UserFunctions {
        query,
        free,
        cancel,
        extra_state: extra_state.expose_provenance(),
    };
    let started = call.rank.start_generalized(Arc::new(functions))?;
    request.set(started.0);
    Ok(())
}

/// `MPI_Grequest_complete` (MPI 5.0, chapter 13).
pub fn grequest_complete(call: &Running, request: Request) -> Done {
    if request == MPI_REQUEST_NULL {
        let detail = "MPI_REQUEST_NULL is no operation that could be completed";
        return Err(Error::new(crate::constants::MPI_ERR_REQUEST, detail));
    }
    call.rank.complete_generalized(id(request))
}

/// The user's functions of a generalized request, and the extra state that each of them gets.
struct UserFunctions {
    query: GrequestQuery,
    free: GrequestFree,
    cancel: GrequestCancel,
    extra_state: usize,
}

impl UserFunctions {
    fn extra_state(&self) -> *mut c_void {
        with_exposed_provenance_mut(self.extra_state)
    }
}

impl Functions for UserFunctions {
    fn query(&self) -> Answer {
        let mut status = Status::empty();
        let code = self.query.map_or(MPI_SUCCESS, |query| {
            // SAFETY: the user has promised MPI a query function, which gets its extra state and a
            // status.
            callback::run(|| unsafe { query(self.extra_state(), &mut status) })
        });
        // Only MPI sets the error field.
        let status = mpi::Status {
            source: status.source,
            tag: status.tag,
            bytes: status.bytes(),
            cancelled: status.cancelled(),
            ..mpi::Status::EMPTY
        };
        Answer::new(status, succeeded("query", code))
    }

    fn free(&self) -> Result<(), mpi::Error> {
        let free = |free: unsafe extern "C" fn(*mut c_void) -> c_int| {
            // SAFETY: the user has promised MPI a free function, which gets its extra state.
            callback::run(|| unsafe { free(self.extra_state()) })
        };
        succeeded("free", self.free.map_or(MPI_SUCCESS, free))
    }

    fn cancel(&self, complete: bool) -> Result<(), mpi::Error> {
        let code = self.cancel.map_or(MPI_SUCCESS, |cancel| {
            // SAFETY: the user has promised MPI a cancel function, which gets its extra state.
            callback::run(|| unsafe { cancel(self.extra_state(), complete.into()) })
        });
        succeeded("cancel", code)
    }
}

/// Makes the error code of a user's function the error of the call.
fn succeeded(what: &str, code: c_int) -> Done {
    if code == MPI_SUCCESS {
        return Ok(());
    }
    let detail = format!("the {what} function of a generalised request gave the error code {code}");
    Err(Error::new(code, detail))
}
