//! The virtual time of files on a modelled machine.
//!
//! Accesses use real files at once. Then they report the number of their requests and bytes to the
//! modelled storage, which all ranks share, and wait in virtual time until it has moved them. On a
//! machine without a storage file calls take no time, and only the rank's profile counts their
//! bytes.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use ::file_io::{CountedStorage, Requests, Storage};

use crate::Result;
use crate::rank::Rank;
use crate::request::Waiting;
use crate::state::State;

/// A point in virtual time for which a task waits, by the rank's clock. Dropping it ends the wait.
struct Moment<'a> {
    rank: &'a Rank,
    at: u64,
}

impl<'a> Moment<'a> {
    fn new(rank: &'a Rank, at: u64) -> Moment<'a> {
        rank.lock().objects.files.moments.push(at);
        Moment { rank, at }
    }
}

impl Drop for Moment<'_> {
    fn drop(&mut self) {
        let moments = &mut self.rank.lock().objects.files.moments;
        if let Some(place) = moments.iter().position(|at| *at == self.at) {
            moments.swap_remove(place);
        }
    }
}

impl State {
    /// The storage in which files are opened. On a modelled machine it counts requests.
    pub(super) fn storage(&mut self) -> Arc<dyn Storage> {
        let storage = self.objects.files.storage();
        if self.engine.router.machine().virtual_time().is_none() {
            return storage;
        }
        let requests: &Arc<Requests> = self.objects.files.requests.get_or_insert_default();
        Arc::new(CountedStorage::new(storage, requests.clone()))
    }

    /// Reports the counted requests to the machine's storage. Returns the time at which they end.
    fn hand_over_requests(&mut self) -> Option<u64> {
        let moved = self.objects.files.requests.as_ref()?.take();
        if moved.requests == 0 {
            return None;
        }
        let bytes = moved.read + moved.written;
        let end = self.engine.router.machine().store(moved.requests, bytes);
        if end.is_none() {
            self.engine
                .messages
                .count_free_files(moved.read, moved.written);
        }
        end
    }
}

impl Rank {
    /// Waits in virtual time for the requests that a blocking call has made.
    pub(super) fn pass_storage_time(&self, operation: &'static str) -> Result<()> {
        let Some(end) = self.lock().hand_over_requests() else {
            return Ok(());
        };
        let _moment = Moment::new(self, end);
        self.wait_until(&Waiting::in_call(operation), |state| {
            Ok((state.engine.router.machine().now() >= end).then_some(()))
        })
    }

    /// Waits in virtual time for the storage requests of a task.
    pub(super) async fn await_storage(&self) {
        let Some(end) = self.lock().hand_over_requests() else {
            return;
        };
        let _moment = Moment::new(self, end);
        poll_fn(|_| {
            let mut state = self.lock();
            if state.engine.router.machine().now() >= end {
                // The task continues, though no request has completed.
                state.engine.messages.requests.completions += 1;
                return Poll::Ready(());
            }
            // Only the time will change, so the task must be polled.
            state.engine.tasks.make_due();
            Poll::Pending
        })
        .await;
    }
}
