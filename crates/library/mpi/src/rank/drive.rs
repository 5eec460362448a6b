//! The execution of operations with several steps, which are futures.
//!
//! A blocking call drives a future on its own stack ([`Rank::block_on`]). A nonblocking call leaves
//! it to progress as a task ([`Rank::spawn`]). Thus one description of an algorithm serves both.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::rank::Rank;
use crate::request::task::{Task, Work};
use crate::request::{Operation, RequestId, Waiting};
use crate::state::State;
use crate::{Result, Status};

impl Rank {
    /// Leaves `work` to progress and returns its request. `context` is that of the communicator
    /// whose error handler receives a failure.
    ///
    /// # Errors
    /// Too many requests are active.
    pub fn spawn(
        &self,
        context: Option<u64>,
        work: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Result<RequestId> {
        self.spawn_with_status(context, async move { work.await.map(|()| Status::EMPTY) })
    }

    /// Leaves `work`, whose result is the status of its request, to progress and returns the
    /// request. `context` is that of the communicator whose error handler receives a failure.
    ///
    /// # Errors
    /// Too many requests are active.
    pub fn spawn_with_status(
        &self,
        context: Option<u64>,
        work: impl Future<Output = Result<Status>> + Send + 'static,
    ) -> Result<RequestId> {
        let operation = Operation::Collective { context };
        let request = self.lock().engine.messages.requests.add(operation)?;
        let work = Work::Future(Box::pin(work));
        if let Some(unfinished) = self.drive(Task { request, work }) {
            self.lock().engine.tasks.add(unfinished);
        }
        Ok(request)
    }

    /// Drives every task once, if something has completed since the last drive. True if something
    /// has completed that no earlier call reported, by these tasks or before them: the condition of
    /// a wait may hold now, although no task has ended.
    pub(crate) fn run_tasks(&self) -> bool {
        let mut state = self.lock();
        let completions = state.engine.messages.requests.completions;
        let rounds = state.engine.lanes.may_go_on();
        if !state.engine.tasks.are_due(completions) && !rounds {
            return false;
        }
        for at in 0..state.engine.tasks.len() {
            let Some(task) = state.engine.tasks.start(at) else {
                continue;
            };
            let Work::Future(_) = task.work else {
                let State { engine, objects } = &mut *state;
                let unfinished = engine.advance_round(&objects.comms, task);
                engine.tasks.stop(at, unfinished);
                continue;
            };
            // The user's functions run here, so no lock may be held.
            drop(state);
            let unfinished = self.drive(task);
            state = self.lock();
            state.engine.tasks.stop(at, unfinished);
            if state.engine.messages.requests.completions != completions {
                // Another thread may have completed what this task waits for, and found its entry
                // empty.
                state.engine.tasks.make_due();
            }
        }
        state.engine.tasks.tidy();
        let completions = state.engine.messages.requests.completions;
        state.engine.tasks.have_news(completions)
    }

    /// Drives a task to its next wait. The result is the task, unless it ended.
    fn drive(&self, mut task: Task) -> Option<Task> {
        let Work::Future(work) = &mut task.work else {
            let state = &mut *self.lock();
            return state.engine.advance_round(&state.objects.comms, task);
        };
        let mut state = self.lock();
        if state.engine.has_losses()
            && let Some(context) = state.engine.messages.requests.context(task.request)
            && let Err(error) = state.engine.check_collective(&state.objects.comms, context)
        {
            let State { engine, objects } = &mut *state;
            engine.end_task(&objects.comms, task.request, Err(error));
            // The drop of the task gives up its messages, and needs the lock for that.
            drop(state);
            return None;
        }
        drop(state);
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Some(task),
            Poll::Ready(result) => {
                let state = &mut *self.lock();
                let comms = &state.objects.comms;
                state.engine.end_task(comms, task.request, result);
                None
            }
        }
    }

    /// Drives a future on this stack until it ends. `among`: the context of the communicator whose
    /// members all take part, for a collective operation.
    ///
    /// # Errors
    /// Those of the future, those of progress, and the loss of a member.
    pub fn block_on<T>(
        &self,
        waiting: &Waiting,
        among: Option<u64>,
        future: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let result = self.drive_here(waiting, among, future);
        if let (Some(context), Err(error)) = (among, &result) {
            let state = &mut *self.lock();
            let comms = &state.objects.comms;
            state.engine.leave_collective(comms, context, error);
        }
        result
    }

    #[inline(always)]
    fn drive_here<T>(
        &self,
        waiting: &Waiting,
        among: Option<u64>,
        future: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut future = std::pin::pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let state = self.lock();
            let before = state.engine.messages.requests.completions;
            if state.engine.has_losses()
                && let Some(among) = among
            {
                state.engine.check_collective(&state.objects.comms, among)?;
            }
            drop(state);
            if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
                return result;
            }
            self.wait_until(waiting, |state| {
                let due = state.engine.messages.requests.completions != before;
                Ok((due || state.engine.lanes.may_go_on()).then_some(()))
            })?;
            // The lane that can go on may be used by a task.
            if !self.lock().engine.tasks.is_empty() {
                self.run_tasks();
            }
        }
    }
}

/// A future that ends when a request completes, with the status of the request.
pub struct Completion {
    /// The rank to which the request belongs.
    pub rank: Arc<Rank>,
    /// The request whose completion is awaited.
    pub request: RequestId,
}

impl Future for Completion {
    type Output = Result<Status>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.rank.lock();
        match state.engine.messages.requests.take(self.request) {
            Ok(Some(status)) => Poll::Ready(status.into_result(&mut state.engine)),
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
