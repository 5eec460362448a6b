//! Tasks: operations with several steps that run without a waiting call.
//!
//! A task is a future, or an operation on a lane: a collective buffer for nonblocking and
//! persistent collectives. Progress drives it until its request completes; see
//! [`drive`](crate::rank::drive).

use std::future::Future;
use std::pin::Pin;

use crate::coll::lanes::Round;
use crate::request::RequestId;
use crate::{Result, Status};

/// The work of a task: a future, or a round on a lane.
pub(crate) enum Work {
    /// A future, whose result is the status of the request.
    Future(Pin<Box<dyn Future<Output = Result<Status>> + Send>>),
    /// A collective operation on a lane.
    Round(Round),
}

/// The unfinished operations of a rank that progress drives.
#[derive(Default)]
pub(crate) struct Tasks {
    /// The tasks. An entry is empty while a thread drives its task.
    entries: Vec<Option<Task>>,
    /// Number of threads that are driving a task. Until it is zero, entries keep their positions.
    driving: usize,
    /// Number of tasks that serve other ranks, so that no operation of the program waits for them.
    background: usize,
    /// The number of completions at the last drive of the tasks.
    seen: u64,
    /// The count of completions at the last call of `have_news`.
    reported: u64,
}

/// An unfinished operation that progress drives.
pub(crate) struct Task {
    /// The request that completes with the task.
    pub(crate) request: RequestId,
    pub(crate) work: Work,
}

impl Tasks {
    /// True if no operation is unfinished.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if an operation of the program waits for a task, so that progress must run soon.
    #[inline(always)]
    pub(crate) fn are_waited_for(&self) -> bool {
        self.entries.len() > self.background
    }

    /// Sets the number of tasks that serve other ranks. No operation of the program waits for them,
    /// so they do not make progress urgent.
    pub(crate) fn have_background(&mut self, count: usize) {
        self.background = count;
    }

    /// Number of entries, including those whose tasks are being driven.
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

    /// Records that a thread no longer drives the task of an entry, and puts the task back:
    /// `unfinished`, or none if it has ended.
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

    /// Makes the next call of progress drive all tasks.
    pub(crate) fn make_due(&mut self) {
        self.seen = u64::MAX;
    }

    /// True if the count of completions has changed since the last drive.
    #[inline]
    pub(crate) fn are_due(&mut self, completions: u64) -> bool {
        std::mem::replace(&mut self.seen, completions) != completions
    }

    /// True if the count of completions has changed since the last call. Each change is reported
    /// once, so tasks that only wait do not keep the rank awake.
    pub(crate) fn have_news(&mut self, completions: u64) -> bool {
        std::mem::replace(&mut self.reported, completions) != completions
    }
}
