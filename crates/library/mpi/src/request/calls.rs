//! Generalised requests (MPI 5.0 §13.2): start, completion, cancellation, end.
//!
//! Invariants: nothing is locked while a user's function runs; the free function runs once, when
//! the operation is complete and the request has been waited for or freed.

use std::sync::Arc;

use crate::rank::Rank;
use crate::request::RequestId;
use crate::request::generalized::{Answer, Functions};
use crate::state::State;
use crate::{Result, Status};

impl Rank {
    /// Starts an operation of the user's (`MPI_Grequest_start`).
    ///
    /// # Errors
    /// Too many requests are active.
    pub fn start_generalized(&self, functions: Arc<dyn Functions>) -> Result<RequestId> {
        self.lock()
            .engine
            .messages
            .requests
            .add_generalized(functions)
    }

    /// Completes an operation of the user's (`MPI_Grequest_complete`), and wakes threads that wait
    /// for it.
    ///
    /// # Errors
    /// The request is no generalised one, or complete already; or it was freed before, and its free
    /// function gave an error code.
    pub fn complete_generalized(&self, id: RequestId) -> Result<()> {
        let freed = self
            .lock()
            .engine
            .messages
            .requests
            .complete_generalized(id)?;
        if self.threads() {
            self.waiter.wake_threads();
        }
        freed.map_or(Ok(()), |functions| functions.free())
    }

    /// Ends a generalised request that has been finished with this status: query, then free. The
    /// last error counts.
    #[cold]
    pub fn end_generalized(&self, finished: Status) -> Answer {
        let ended = self.lock().engine.messages.requests.take_ended(finished);
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
        let found = state
            .engine
            .messages
            .requests
            .generalized(peeked.generalized());
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
        match state.engine.messages.requests.generalized(id) {
            None => {
                let State { engine, objects } = &mut *state;
                engine.cancel(&objects.comms, id)
            }
            Some((functions, complete)) => {
                drop(state);
                functions.cancel(complete)
            }
        }
    }
}
