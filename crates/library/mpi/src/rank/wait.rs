//! Waits of a rank's calls, which the transports' waiter carries out, and what it needs from the
//! rank.

use channel::lock::Guard;
use channel::{Helper, Party, Router};

use crate::rank::Rank;
use crate::request::{Finished, RequestId, Waiting};
use crate::state::State;
use crate::{Error, Result, Status};

/// A rank in a call that waits or polls.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    rank: &'a Rank,
    operation: &'static str,
    requests: &'a [RequestId],
}

impl Rank {
    /// Waits for the receive of a blocking call. If the wait has only reported a loss, the receive
    /// is cancelled: no other call will wait for it.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    #[inline]
    pub fn wait_blocked(&self, operation: &'static str, id: RequestId) -> Result<Status> {
        let finished = self.wait_request(operation, id)?;
        if !finished.gone {
            let state = &mut *self.lock();
            state.engine.cancel(&state.objects.comms, id)?;
            state.engine.messages.requests.detach(id)?;
        }
        Ok(finished.status)
    }

    /// Waits until a request is complete, finishes it, and returns its status.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    #[inline]
    pub fn wait(&self, operation: &'static str, id: RequestId) -> Result<Status> {
        Ok(self.wait_request(operation, id)?.status)
    }

    /// Waits until a request is complete and finishes it: `MPI_Wait`, and the wait of every
    /// blocking call.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    #[inline]
    pub fn wait_request(&self, operation: &'static str, id: RequestId) -> Result<Finished> {
        let waiting = Waiting {
            operation,
            requests: &[id],
        };
        self.wait_until(&waiting, |state| state.engine.messages.requests.finish(id))
    }

    /// Makes progress until `done` returns a result. No lock is held while tasks run or the rank
    /// sleeps.
    ///
    /// # Errors
    /// Progress failed, the launcher is gone, or all ranks of a modelled machine wait.
    #[inline]
    pub fn wait_until<T>(
        &self,
        waiting: &Waiting,
        done: impl FnMut(&mut State) -> Result<Option<T>>,
    ) -> Result<T> {
        let call = Call {
            rank: self,
            operation: waiting.operation,
            requests: waiting.requests,
        };
        self.waiter.wait_until(&call, done)
    }

    /// Polls for a nonblocking call: once, and again after a pass of progress.
    ///
    /// # Errors
    /// Progress failed.
    #[inline(always)]
    pub fn poll_for<T>(
        &self,
        operation: &'static str,
        done: impl FnMut(&mut State) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let call = Call {
            rank: self,
            operation,
            requests: &[],
        };
        self.waiter.poll(call, done)
    }
}

impl<'a> Call<'a> {
    fn waiting(&self) -> Waiting<'a> {
        Waiting {
            operation: self.operation,
            requests: self.requests,
        }
    }
}

impl Party for Call<'_> {
    type State = State;
    type Error = Error;

    #[inline(always)]
    fn lock(&self) -> Guard<'_, State> {
        self.rank.lock()
    }

    #[inline(always)]
    fn has_threads(&self) -> bool {
        self.rank.threads()
    }

    #[inline(always)]
    fn router(state: &mut State) -> &mut Router {
        &mut state.engine.router
    }

    #[inline(always)]
    fn progress(state: &mut State) -> Result<bool> {
        state.progress()
    }

    fn needs_room(state: &State) -> bool {
        state.engine.messages.has_work()
    }

    #[inline(always)]
    fn has_tasks(state: &State) -> bool {
        !state.engine.tasks.is_empty()
    }

    fn run_tasks(&self) -> bool {
        self.rank.run_tasks()
    }

    fn helper(state: &State) -> Helper {
        match &state.objects.files.worker {
            None => Helper::Absent,
            Some(worker) if worker.has_results() => Helper::HasResults,
            Some(_) => Helper::Works,
        }
    }

    fn deadline(state: &State) -> Option<u64> {
        state.objects.files.moments.iter().copied().min()
    }

    fn attend(&self) -> Result<()> {
        self.rank.attend(&self.waiting())
    }

    fn contact_awaited(state: &mut State) -> Result<()> {
        state.engine.contact_awaited(&state.objects.comms)
    }

    fn contain(state: &mut State, error: channel::Error) -> Result<()> {
        state.engine.contain(&state.objects.comms, error.into())
    }

    fn deadlock(&self, state: &mut State) -> Error {
        state.engine.deadlock(&state.objects.comms, &self.waiting())
    }
}
