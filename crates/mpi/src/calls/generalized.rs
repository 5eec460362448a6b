//! Generalised requests (MPI 5.0 §13.2), whose operations are the user's: start, completion, end.
//!
//! Invariants: nothing is locked while a user's function runs; the free function runs once, when the
//! operation is complete and the request has been waited for or freed.

use std::sync::Arc;

use crate::rank::Rank;
use crate::request::{Operation, RequestId};
use crate::{Error, Result, Status};

/// The user's functions of a generalised request.
pub trait Functions: Send + Sync {
    /// The status of the complete operation, and the error of the query function.
    fn query(&self) -> Answer;

    /// Frees what belongs to the operation.
    ///
    /// # Errors
    /// The free function gave an error code.
    fn free(&self) -> Result<()>;

    /// Cancels the operation, which may be complete.
    ///
    /// # Errors
    /// The cancel function gave an error code.
    fn cancel(&self, complete: bool) -> Result<()>;
}

/// The outcome of the user's functions for a complete request.
#[derive(Debug)]
pub struct Answer {
    /// The status of the operation, which carries the class of the error.
    pub status: Status,
    /// The error that a function gave.
    pub error: Option<Error>,
}

impl Answer {
    /// The answer with this status and the error of a function, if it failed.
    pub fn new(status: Status, result: Result<()>) -> Answer {
        let error = result.err();
        let class = error
            .as_ref()
            .map_or(crate::Class::SUCCESS, |error| error.class);
        let status = Status {
            error: class,
            ..status
        };
        Answer { status, error }
    }
}

impl Rank {
    /// Starts an operation of the user's (`MPI_Grequest_start`).
    ///
    /// # Errors
    /// Too many requests are under way.
    pub fn start_generalized(&self, functions: Arc<dyn Functions>) -> Result<RequestId> {
        let operation = Operation::Generalized(functions);
        self.lock().messages.requests.add(operation)
    }

    /// Completes an operation of the user's (`MPI_Grequest_complete`), and wakes threads that wait
    /// for it.
    ///
    /// # Errors
    /// The request is no generalised one, or complete already; or it was freed before, and its free
    /// function gave an error code.
    pub fn complete_generalized(&self, id: RequestId) -> Result<()> {
        let freed = self.lock().messages.requests.complete_generalized(id)?;
        if self.threads() {
            self.waiter.wake_threads();
        }
        freed.map_or(Ok(()), |functions| functions.free())
    }

    /// Ends a generalised request that has been finished with this status: query, then free. The
    /// last error counts.
    #[cold]
    pub fn end_generalized(&self, finished: Status) -> Answer {
        let ended = self.lock().messages.requests.take_ended(finished);
        let Some(functions) = ended else {
            // Nobody else can have ended it.
            return Answer::new(Status::EMPTY, Ok(()));
        };
        let answer = functions.query();
        match functions.free() {
            Ok(()) => answer,
            error => Answer::new(answer.status, error),
        }
    }

    /// The answer of a complete generalised request that stays as it is. `peeked`: its status.
    #[cold]
    pub fn query_generalized(&self, peeked: Status) -> Answer {
        let state = self.lock();
        let found = state.messages.requests.generalized(peeked.generalized());
        drop(state);
        match found {
            Some((functions, _)) => functions.query(),
            // Another thread has ended it meanwhile.
            None => Answer::new(Status::EMPTY, Ok(())),
        }
    }

    /// Begins to cancel an operation (`MPI_Cancel`). An operation of the user's is handed to its
    /// cancel function.
    ///
    /// # Errors
    /// The handle is invalid, progress failed, or the cancel function gave an error code.
    pub fn cancel(&self, id: RequestId) -> Result<()> {
        let mut state = self.lock();
        match state.messages.requests.generalized(id) {
            None => state.cancel(id),
            Some((functions, complete)) => {
                drop(state);
                functions.cancel(complete)
            }
        }
    }
}
