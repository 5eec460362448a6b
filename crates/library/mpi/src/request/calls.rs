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
    /// Starts a generalised request, whose operation the user carries out (`MPI_Grequest_start`).
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

    /// Completes a generalised request (`MPI_Grequest_complete`), and wakes the threads that wait
    /// for it.
    ///
    /// # Errors
    /// The request is no generalised one, or is complete already. Or its handle was freed before,
    /// and its free function, called here, gave an error code.
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

    /// Calls the query function, then the free function, of a generalised request that has been
    /// finished with this status. If both fail, the result has the error of the free function.
    #[cold]
    pub fn end_generalized(&self, finished: Status) -> Answer {
        let ended = self.lock().engine.messages.requests.take_ended(finished);
        let Some(functions) = ended else {
            // Cannot happen: only this function takes the functions of a finished request.
            return Answer::new(Status::EMPTY, Ok(()));
        };
        let answer = functions.query();
        match functions.free() {
            Ok(()) => answer,
            error => Answer::new(answer.status, error),
        }
    }

    /// Calls the query function of a complete generalised request without finishing the request.
    /// `peeked`: the status that the table has for it.
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
            // Another thread has finished the request meanwhile.
            None => Answer::new(Status::EMPTY, Ok(())),
        }
    }

    /// Begins to cancel an operation (`MPI_Cancel`). For a generalised request it calls the user's
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
