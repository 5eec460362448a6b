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

/// The greatest number of announcements in a packet. On modelled QDR and NDR machines, in windows
/// of 64 messages of 2 to 64 KiB, the bandwidth grows by up to two thirds from 1 to 8, by up to 4 %
/// from 8 to 16, and by less than 2 % beyond, where short messages on QDR lose 1 % in one
/// direction. 16 announcements with one envelope take 456 bytes over one rail and 904 over eight,
/// less than the shortest chunk.
const MOST: usize = 16;

/// The announcements of receives that have not left, by peer.
#[derive(Default)]
pub(super) struct Batches {
    /// The batches by peer, in an order that is equal in every run.
    peers: BTreeMap<usize, Batch>,
    /// The number of announcements in the batches of all peers.
    gathered: usize,
}

/// An announced receive whose announcement has not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) receive: RequestId,
    pub(super) key: Key,
    /// The number of the notice that ends the write to the receive's buffer.
    pub(super) notice: u32,
}

#[derive(Default)]
struct Batch {
    gathered: Vec<Announced>,
    /// The number of receives in the present burst until now.
    burst: usize,
    /// The number of receives in the last complete burst.
    last_burst: usize,
    /// The number of operations that had completed when the burst of receives began.
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
    /// True if an announcement has not left yet.
    #[inline(always)]
    pub(super) fn is_gathering(&self) -> bool {
        self.gathered > 0
    }

    /// Adds an announcement to the batch of a peer. `completed`: number of operations that have
    /// completed. True: the batch is full and has to leave.
    pub(super) fn add(&mut self, peer: usize, announced: Announced, completed: u64) -> bool {
        let batch = self.peers.entry(peer).or_default();
        if batch.completed != completed {
            // Receives whose announcements have not left count among the new burst.
            (batch.last_burst, batch.burst) = (batch.burst, batch.gathered.len());
            batch.completed = completed;
        }
        batch.burst += 1;
        batch.gathered.push(announced);
        self.gathered += 1;
        batch.is_full()
    }

    /// Removes and returns the announcements gathered for a peer.
    pub(super) fn take(&mut self, peer: usize) -> Vec<Announced> {
        let batch = self.peers.get_mut(&peer);
        let taken = batch.map_or(Vec::new(), |batch| std::mem::take(&mut batch.gathered));
        self.gathered -= taken.len();
        taken
    }

    /// The first peer whose batch is not empty.
    pub(super) fn next_peer(&self) -> Option<usize> {
        let mut peers = self.peers.iter();
        let gathering = peers.find(|(_, batch)| !batch.gathered.is_empty());
        gathering.map(|(peer, _)| *peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(number: u32) -> Announced {
        Announced {
            receive: RequestId(number),
            key: Key {
                context: 1,
                source: 0,
                tag: 0,
            },
            notice: number,
        }
    }

    /// The sizes of the batches in which a burst of receives leaves, the last one when the rank
    /// waits.
    fn sizes(batches: &mut Batches, receives: u32, completed: u64) -> Vec<usize> {
        let mut sizes = Vec::new();
        for number in 0..receives {
            if batches.add(3, announced(number), completed) {
                sizes.push(batches.take(3).len());
            }
        }
        let rest = batches.take(3).len();
        sizes.extend((rest > 0).then_some(rest));
        assert!(!batches.is_gathering() && batches.next_peer().is_none());
        sizes
    }

    #[test]
    fn a_burst_leaves_in_as_few_packets_as_the_last_one_lets_expect() {
        let mut batches = Batches::default();
        assert_eq!(sizes(&mut batches, 1, 0), [1]);
        assert_eq!(sizes(&mut batches, 1, 1), [1]);
        assert_eq!(sizes(&mut batches, 40, 2), [1, 1, 2, 4, 8, 16, 8]);
        assert_eq!(sizes(&mut batches, 40, 3), [16, 16, 8]);
        assert_eq!(sizes(&mut batches, 3, 4), [3]);
        assert_eq!(sizes(&mut batches, 5, 5), [3, 2]);
    }

    #[test]
    fn the_last_receive_of_a_known_burst_waits_for_nothing() {
        let mut batches = Batches::default();
        sizes(&mut batches, 2, 0);
        assert!(!batches.add(3, announced(0), 1));
        assert!(batches.add(3, announced(1), 1));
    }

    #[test]
    fn receives_that_have_not_left_join_the_next_burst() {
        let mut batches = Batches::default();
        sizes(&mut batches, 5, 0);
        assert!(!batches.add(3, announced(0), 1) && !batches.add(3, announced(1), 1));
        assert!(
            batches.add(3, announced(2), 2),
            "a burst of three, after one of two"
        );
        assert_eq!(batches.take(3).len(), 3);
    }

    #[test]
    fn peers_have_batches_of_their_own_in_the_order_of_posting() {
        let mut batches = Batches::default();
        sizes(&mut batches, 9, 0);
        for number in 0..4 {
            batches.add(3, announced(number), 1);
        }
        assert!(batches.add(5, announced(9), 1));
        assert_eq!(batches.next_peer(), Some(3));
        let numbers = batches.take(3).into_iter().map(|one| one.notice);
        assert!(numbers.eq(0..4));
        assert_eq!(batches.next_peer(), Some(5));
        assert_eq!((batches.take(5).len(), batches.take(7).len()), (1, 0));
        assert!(!batches.is_gathering());
    }
}
