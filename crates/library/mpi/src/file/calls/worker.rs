//! Accesses that the worker thread makes while the rank continues.
//!
//! A rank has no worker before its first nonblocking access, and none after the last file with such
//! an access is closed. On a modelled machine there is never a worker, because the order of its
//! completions would depend on real time: accesses are made at once.
//!
//! Functions of the user, allocations and messages stay on the rank's own threads: a job gets
//! memory that is allocated already, and its result completes the request in the rank's next
//! progress.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use ::file_io::{Ticket, Worker};

use crate::Result;
use crate::file::SharedFile;
use crate::rank::Rank;
use crate::request::Waiting;

/// Marks a file as in use by a nonblocking access until it is dropped.
pub(super) struct Unfinished(Arc<SharedFile>);

impl Unfinished {
    pub(super) fn of(file: &Arc<SharedFile>) -> Unfinished {
        file.unfinished.begin();
        Unfinished(file.clone())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.unfinished.end();
    }
}

impl Rank {
    /// Runs a job on the worker, or at once if the rank has no worker.
    pub(super) async fn by_worker<T, F>(self: &Arc<Rank>, file: &SharedFile, job: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let Some(worker) = self.file_worker(file) else {
            return job();
        };
        let (mut waiting, mut ticket) = (Some(job), None);
        poll_fn(|_| {
            if let Some(job) = waiting.take() {
                match worker.hand_over(job) {
                    Ok(new) => ticket = Some(new),
                    Err(refused) => waiting = Some(refused),
                }
            }
            match ticket.as_mut().and_then(Ticket::take) {
                Some(result) => Poll::Ready(result),
                None => {
                    // The result changes no counter of the rank, so the task must be polled.
                    self.lock().engine.tasks.make_due();
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The worker thread, which the first call starts. `None`: the rank has none.
    fn file_worker(self: &Arc<Rank>, file: &SharedFile) -> Option<Arc<Worker>> {
        let mut state = self.lock();
        if !state.engine.router.machine().abilities().runs_threads {
            return None;
        }
        file.unfinished.uses_worker();
        if let Some(worker) = &state.objects.files.worker {
            return Some(worker.clone());
        }
        let rank: Weak<Rank> = Arc::downgrade(self);
        let ring = move || {
            if let Some(rank) = rank.upgrade() {
                rank.waiter.wake_threads();
            }
        };
        let worker = Arc::new(Worker::start(ring).ok()?);
        state.objects.files.worker = Some(worker.clone());
        Some(worker)
    }

    /// Waits until no nonblocking access to a file is in progress; the program may have freed the
    /// requests of some.
    pub(super) fn finish_file_accesses(
        &self,
        operation: &'static str,
        file: &SharedFile,
    ) -> Result<()> {
        self.wait_until(&Waiting::in_call(operation), |_| {
            Ok((!file.unfinished.is_any()).then_some(()))
        })
    }
}
