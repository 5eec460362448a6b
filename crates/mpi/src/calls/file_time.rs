//! The virtual time of files on a modelled machine that has a storage.
//!
//! Accesses touch real files at once. Then they hand the number of their requests and bytes to the
//! storage, which all ranks share, and wait until it has moved them. A machine without a storage
//! keeps nothing here, and file calls take no time.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use ::files::{CountedStorage, Requests, Storage};

use crate::Result;
use crate::rank::{Rank, State};
use crate::request::Waiting;

/// A moment for which a task waits, by the rank's clock. It ends when it is dropped.
struct Moment<'a> {
    rank: &'a Rank,
    at: u64,
}

impl<'a> Moment<'a> {
    fn new(rank: &'a Rank, at: u64) -> Moment<'a> {
        rank.lock().files.moments.push(at);
        Moment { rank, at }
    }
}

impl Drop for Moment<'_> {
    fn drop(&mut self) {
        let moments = &mut self.rank.lock().files.moments;
        if let Some(place) = moments.iter().position(|at| *at == self.at) {
            moments.swap_remove(place);
        }
    }
}

impl State {
    /// The storage that files are opened in. On a machine with a storage it counts requests.
    pub(super) fn storage(&mut self) -> Arc<dyn Storage> {
        let storage = self.files.storage();
        // Nothing is handed over, so this asks only whether there is one.
        if self.router.machine().store(0, 0).is_none() {
            return storage;
        }
        let requests: &Arc<Requests> = self.files.requests.get_or_insert_default();
        Arc::new(CountedStorage::new(storage, requests.clone()))
    }

    /// Hands requests that have been made to the machine's storage. The result is the time of
    /// their end.
    fn hand_over_requests(&mut self) -> Option<u64> {
        let (count, bytes) = self.files.requests.as_ref()?.take();
        match count {
            0 => None,
            _ => self.router.machine().store(count, bytes),
        }
    }
}

impl Rank {
    /// Waits for the requests that a blocking call has made.
    pub(super) fn pass_storage_time(&self, operation: &'static str) -> Result<()> {
        let Some(end) = self.lock().hand_over_requests() else {
            return Ok(());
        };
        let _moment = Moment::new(self, end);
        self.wait_until(&Waiting::in_call(operation), |state| {
            Ok((state.router.machine().now() >= end).then_some(()))
        })
    }

    /// Waits for the requests that a task has made.
    pub(super) async fn await_storage(&self) {
        let Some(end) = self.lock().hand_over_requests() else {
            return;
        };
        let _moment = Moment::new(self, end);
        poll_fn(|_| {
            let mut state = self.lock();
            if state.router.machine().now() >= end {
                return Poll::Ready(());
            }
            // Only the time changes.
            state.tasks.make_due();
            Poll::Pending
        })
        .await;
    }
}
