//! Operations with several steps, written as futures: a blocking call drives one on its own stack, a nonblocking one
//! leaves it to the progress function. So an algorithm is described once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::rank::{Rank, State};
use crate::request::{Operation, RequestId};
use crate::wait::Waiting;
use crate::{Error, Result, Status};

type Work = Pin<Box<dyn Future<Output = Result<Status>> + Send>>;

/// The operations under way that nobody's stack holds.
#[derive(Default)]
pub struct Tasks {
    /// A place is empty while some thread drives its task.
    places: Vec<Option<Task>>,
    /// How many threads drive one; places keep their order until there is none.
    driving: usize,
    /// The count of completions when they were last driven.
    seen: u64,
}

struct Task {
    request: RequestId,
    work: Work,
}

impl Tasks {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Something may have completed unseen: drive them at the next opportunity.
    fn look_again(&mut self) {
        self.seen = u64::MAX;
    }

    /// Has anything completed since they were last driven?
    #[inline]
    fn are_due(&mut self, completions: u64) -> bool {
        std::mem::replace(&mut self.seen, completions) != completions
    }
}

impl Rank {
    /// Leaves `work` to progress; the request completes when it ends. `context`: of the communicator that hears of
    /// errors.
    pub fn spawn(
        &self,
        context: Option<u64>,
        work: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Result<RequestId> {
        self.spawn_with_status(context, async move { work.await.map(|()| Status::EMPTY) })
    }

    /// The same for work whose request is to have a status of its own.
    pub fn spawn_with_status(
        &self,
        context: Option<u64>,
        work: impl Future<Output = Result<Status>> + Send + 'static,
    ) -> Result<RequestId> {
        let operation = Operation::Collective { context };
        let request = self.lock().messages.requests.add(operation)?;
        let work = Box::pin(work);
        if let Some(unfinished) = self.drive(Task { request, work }) {
            let mut state = self.lock();
            state.tasks.places.push(Some(unfinished));
            state.tasks.look_again();
        }
        Ok(request)
    }

    /// Drives every task once if something has completed since the last time. True if one ended.
    pub fn run_tasks(&self) -> bool {
        let mut ended = false;
        let mut state = self.lock();
        let completions = state.messages.requests.completions;
        if !state.tasks.are_due(completions) {
            return false;
        }
        for at in 0..state.tasks.places.len() {
            let Some(task) = state.tasks.places.get_mut(at).and_then(Option::take) else {
                continue;
            };
            state.tasks.driving += 1;
            // The user's functions run here, so nothing may be held.
            drop(state);
            let unfinished = self.drive(task);
            state = self.lock();
            state.tasks.driving -= 1;
            if state.messages.requests.completions != completions {
                // Another thread may have completed what this task waits for, and found its place empty.
                state.tasks.look_again();
            }
            ended |= unfinished.is_none();
            state.tasks.places[at] = unfinished;
        }
        if state.tasks.driving == 0 {
            state.tasks.places.retain(Option::is_some);
        }
        ended
    }

    /// One step of a task; gives it back unless it ended.
    fn drive(&self, mut task: Task) -> Option<Task> {
        match task
            .work
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Pending => Some(task),
            Poll::Ready(result) => {
                let mut state = self.lock();
                let status = result.unwrap_or_else(|error| {
                    let class = error.class;
                    state.last_error = Some(error);
                    Status {
                        error: class,
                        ..Status::EMPTY
                    }
                });
                state.messages.requests.complete(task.request, status);
                None
            }
        }
    }

    /// Drives a future on this stack until it ends.
    pub fn block_on<T>(
        &self,
        waiting: &Waiting,
        future: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut future = std::pin::pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let before = self.lock().messages.requests.completions;
            if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
                return result;
            }
            self.wait_until(waiting, |state| {
                Ok((state.messages.requests.completions != before).then_some(()))
            })?;
        }
    }
}

/// Completes when a request does.
pub struct Completion {
    pub rank: Arc<Rank>,
    pub request: RequestId,
}

impl Future for Completion {
    type Output = Result<Status>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.rank.lock();
        match state.messages.requests.take(self.request) {
            Ok(Some(status)) => Poll::Ready(status.into_result(&mut state)),
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Status {
    /// The error that a status carries, as one.
    pub fn into_result(self, state: &mut State) -> Result<Status> {
        if self.error == crate::Class::SUCCESS {
            return Ok(self);
        }
        let last = state
            .last_error
            .take()
            .filter(|error| error.class == self.error);
        Err(last.unwrap_or_else(|| {
            let what = match self.dropped {
                0 => "the operation ended with an error".to_string(),
                dropped => format!(
                    "the message from rank {} with tag {} was truncated: it has {} bytes, the buffer room for {}",
                    self.source,
                    self.tag,
                    self.bytes + dropped,
                    self.bytes
                ),
            };
            Error::new(self.error, what)
        }))
    }
}
