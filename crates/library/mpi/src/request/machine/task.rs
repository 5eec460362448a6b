//! Tasks: operations with several steps that run without a waiting call.
//!
//! A task is a future, or a round of a lane. Progress drives it until its request completes; see
//! [`drive`](crate::rank::drive).

use std::future::Future;
use std::pin::Pin;

use crate::coll::lanes::Round;
use crate::request::RequestId;
use crate::{Result, Status};

/// The steps of a task.
pub(crate) enum Work {
    /// A future. Its status completes the request.
    Future(Pin<Box<dyn Future<Output = Result<Status>> + Send>>),
    /// A round of a lane.
    Round(Round),
}

/// The unfinished tasks of a rank.
#[derive(Default)]
pub(crate) struct Tasks {
    /// An entry is empty while a thread drives its task.
    entries: Vec<Option<Task>>,
    /// Number of threads that drive a task. Entries keep their order until it is zero.
    driving: usize,
    /// Number of tasks that serve others.
    background: usize,
    /// Count of completions at the last drive.
    seen: u64,
    /// Count of completions at the last answer of `have_news`.
    reported: u64,
}

/// An unfinished operation.
pub(crate) struct Task {
    /// The request that completes with the task.
    pub(crate) request: RequestId,
    pub(crate) work: Work,
}

impl Tasks {
    /// No task is unfinished.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Some operation of the program waits for a task, which needs a round of progress soon.
    #[inline(always)]
    pub(crate) fn are_waited_for(&self) -> bool {
        self.entries.len() > self.background
    }

    /// So many tasks serve others and end with no operation: they can wait for the next round.
    pub(crate) fn have_background(&mut self, count: usize) {
        self.background = count;
    }

    /// Number of entries, those that are being driven included.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a task. The next progress drives it.
    pub(crate) fn add(&mut self, task: Task) {
        self.entries.push(Some(task));
        self.make_due();
    }

    /// Takes a task out of its entry to drive it. `None`: another thread drives it, or it has
    /// ended.
    pub(crate) fn start(&mut self, at: usize) -> Option<Task> {
        let task = self.entries.get_mut(at)?.take()?;
        self.driving += 1;
        Some(task)
    }

    /// Ends the drive of an entry, with its task if that is unfinished.
    pub(crate) fn stop(&mut self, at: usize, unfinished: Option<Task>) {
        self.driving -= 1;
        self.entries[at] = unfinished;
    }

    /// Removes the entries of finished tasks, unless another thread drives a task.
    pub(crate) fn tidy(&mut self) {
        if self.driving == 0 {
            self.entries.retain(Option::is_some);
        }
    }

    /// Makes the next progress drive all tasks.
    pub(crate) fn make_due(&mut self) {
        self.seen = u64::MAX;
    }

    /// True if the count of completions has changed since the last drive.
    #[inline]
    pub(crate) fn are_due(&mut self, completions: u64) -> bool {
        std::mem::replace(&mut self.seen, completions) != completions
    }

    /// True if the count of completions has changed since the last answer. Each change is answered
    /// once, so tasks that only wait keep no rank awake.
    pub(crate) fn have_news(&mut self, completions: u64) -> bool {
        std::mem::replace(&mut self.reported, completions) != completions
    }
}
