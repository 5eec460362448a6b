//! Batches of announcements (ready to receive, RTR): the announced receives whose announcement has
//! not left, by peer.
//!
//! A batch leaves when it is full, and when the rank sends something else to the peer, waits, or
//! polls. Receives come in bursts: several that are posted with no operation completed between
//! them. A batch is also full when the burst has as many receives as the last one had, so a single
//! receive is announced at once. Beyond that number a batch grows with its burst.
//!
//! Invariant: receives leave in the order in which they were gathered.

use std::collections::BTreeMap;

use crate::matching::Key;
use crate::request::RequestId;

/// Most announcements in a packet. On modelled machines, of 1 to 64, this gives the highest
/// bandwidth of windows.
const MOST: usize = 16;

/// The announcements that have not left.
#[derive(Default)]
pub(super) struct Batches {
    /// By peer, in an order that is equal in every run.
    peers: BTreeMap<usize, Batch>,
    /// Number of announcements in all batches.
    gathered: usize,
}

/// An announced receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) receive: RequestId,
    pub(super) key: Key,
    /// The number that ends the write to it.
    pub(super) notice: u32,
}

#[derive(Default)]
struct Batch {
    gathered: Vec<Announced>,
    /// Receives of this burst, and of the last one.
    burst: usize,
    last_burst: usize,
    /// Operations that had completed when the burst began.
    completed: u64,
}

impl Batch {
    fn is_full(&self) -> bool {
        let gathered = self.gathered.len();
        let left = self.burst - gathered;
        let room = match self.burst < self.last_burst {
            true => MOST,
            false if self.burst == self.last_burst => 1,
            false => left.clamp(1, MOST),
        };
        gathered >= room
    }
}

impl Batches {
    /// True if an announcement has not left.
    #[inline(always)]
    pub(super) fn is_gathering(&self) -> bool {
        self.gathered > 0
    }

    /// Adds an announcement to the batch of a peer. `completed`: number of operations that have
    /// completed. True: the batch is full and has to leave.
    pub(super) fn add(&mut self, peer: usize, announced: Announced, completed: u64) -> bool {
        let batch = self.peers.entry(peer).or_default();
        if batch.completed != completed {
            (batch.last_burst, batch.burst) = (batch.burst, 0);
            batch.completed = completed;
        }
        batch.burst += 1;
        batch.gathered.push(announced);
        self.gathered += 1;
        batch.is_full()
    }

    /// Takes the batch of a peer.
    pub(super) fn take(&mut self, peer: usize) -> Vec<Announced> {
        let batch = self.peers.get_mut(&peer);
        let taken = batch.map_or(Vec::new(), |batch| std::mem::take(&mut batch.gathered));
        self.gathered -= taken.len();
        taken
    }

    /// A peer whose batch is not empty.
    pub(super) fn next_peer(&self) -> Option<usize> {
        let mut peers = self.peers.iter();
        let gathering = peers.find(|(_, batch)| !batch.gathered.is_empty());
        gathering.map(|(peer, _)| *peer)
    }
}
