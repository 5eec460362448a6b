//! The queue of shared sends that are to be copied, and the choice of the messages that are shared.
//!
//! Invariants: the copies of a rank have a bound in bytes; a send whose call waits is copied before
//! all others.

use std::collections::VecDeque;

use channel::{PeerTable, Preferred};
use datatype::Pool;

use super::copy_out::CopyOut;
use super::cost_classes::{Class, SHAPES};
use super::trials::Trials;
use crate::request::RequestId;

/// Number of passes of progress in which a receiver claims nothing before a send whose call does
/// not wait is copied: the time of a short read.
const PATIENCE: u32 = 128;

/// The shared sends of this rank that their receivers do not have yet.
pub(super) struct ShareQueue {
    /// The requests of shared sends to be copied now.
    at_once: VecDeque<RequestId>,
    /// The requests of shared sends to be copied after some calls of progress.
    later: VecDeque<RequestId>,
    /// Number of passes that the first of `later` still waits.
    patience: u32,
    /// True while an [`Action::CopyOut`] is deferred.
    is_scheduled: bool,
    /// The pool of memory for copies of shared messages.
    pub(super) pool: Pool,
    /// Bytes of all shared messages, for each of which a copy may be needed.
    held: usize,
    /// For each peer, by [`Class::shape`].
    sent: PeerTable<Box<[Sent; SHAPES]>>,
}

/// The choice between reads and packets for messages of one class to one peer.
#[derive(Clone, Copy, Default)]
struct Sent {
    trials: Trials,
    /// The last preference of the peer that was followed: true for reads.
    reads: Option<bool>,
}

impl ShareQueue {
    pub(super) fn new(ranks: usize) -> ShareQueue {
        ShareQueue {
            at_once: VecDeque::new(),
            later: VecDeque::new(),
            patience: 0,
            is_scheduled: false,
            pool: Pool::default(),
            held: 0,
            sent: PeerTable::new(ranks),
        }
    }

    /// Adds peers, so that they are the ranks 0 to `ranks` - 1.
    pub(super) fn grow(&mut self, ranks: usize) {
        self.sent.grow(ranks);
    }

    /// True if the next message of a class to `peer` should be shared, by the preference of the
    /// peer. From time to time some messages take the other path, so that the peer can compare both
    /// again. Without a preference both paths take turns.
    pub(super) fn is_next(
        &mut self,
        peer: usize,
        class: Class,
        preferred: Option<Preferred>,
    ) -> bool {
        let new = || Box::new([Sent::default(); SHAPES]);
        let sent = &mut self.sent.entry(peer).get_or_insert_with(new)[class.shape()];
        let Some(Preferred { reads, pause }) = preferred else {
            return !sent.trials.next_by_turns();
        };
        match sent.reads.replace(reads) {
            None => sent.trials = Trials::of_known(),
            Some(last) if last != reads => sent.trials.replaced(),
            Some(_) => {}
        }
        reads ^ sent.trials.next(|since| since >= pause)
    }

    /// Records that a message is not shared any more.
    pub(super) fn ended(&mut self, copy: &CopyOut) {
        self.held -= copy.len();
        self.is_claimed();
    }

    /// The next send to be copied, and true if its call waits.
    pub(super) fn next(&self) -> Option<(RequestId, bool)> {
        let at_once = self.at_once.front().map(|id| (*id, true));
        at_once.or_else(|| self.later.front().map(|id| (*id, false)))
    }

    /// Takes the next send from its queue: nothing of it is to be copied any more.
    pub(super) fn pass(&mut self) {
        if self.at_once.pop_front().is_none() {
            self.later.pop_front();
        }
    }

    /// Records that a receiver has claimed a shared message.
    pub(super) fn is_claimed(&mut self) {
        self.patience = PATIENCE;
    }

    /// True while sends whose calls do not wait should not be copied yet. Each call uses up one
    /// pass of the patience.
    pub(super) fn waits(&mut self) -> bool {
        let waits = self.patience > 0;
        self.patience -= u32::from(waits);
        waits
    }

    /// True if a further message of `len` bytes keeps the copies within `most` bytes.
    pub(super) fn has_room(&self, len: usize, most: usize) -> bool {
        self.held.checked_add(len).is_some_and(|held| held <= most)
    }

    /// Adds a message of `len` bytes. `is_at_once`: its call waits. True: the next pass of progress
    /// must begin to copy.
    pub(super) fn add(&mut self, id: RequestId, len: usize, is_at_once: bool) -> bool {
        self.held += len;
        match is_at_once {
            true => self.at_once.push_back(id),
            false => self.later.push_back(id),
        }
        let begins = !std::mem::replace(&mut self.is_scheduled, true);
        if begins {
            self.patience = PATIENCE;
        }
        begins
    }

    /// True if a further pass of progress is needed. Must be called once in each pass that copies.
    pub(super) fn goes_on(&mut self) -> bool {
        self.is_scheduled = self.next().is_some();
        self.is_scheduled
    }
}

#[cfg(test)]
mod tests {
    use super::super::path_cost::TRIED;
    use super::*;
    use crate::packet::RunClass;

    #[test]
    fn a_send_whose_call_waits_is_first_and_others_after_the_patience() {
        let mut queue = ShareQueue::new(1);
        assert!(queue.add(RequestId(1), 100, false) && !queue.add(RequestId(2), 50, true));
        assert!(queue.has_room(50, 200) && !queue.has_room(51, 200));
        assert!(!queue.has_room(usize::MAX, usize::MAX));
        assert_eq!(queue.next(), Some((RequestId(2), true)));
        queue.pass();
        assert_eq!(
            (queue.next(), queue.goes_on()),
            (Some((RequestId(1), false)), true)
        );
        assert_eq!(
            (0..1000).filter(|_| queue.waits()).count(),
            PATIENCE as usize
        );
        queue.ended(&CopyOut::of(100));
        assert!(queue.waits() && queue.has_room(150, 200));
        queue.pass();
        assert!(!queue.goes_on() && queue.add(RequestId(3), 1, false));
    }

    #[test]
    fn the_receivers_preference_decides_but_for_trials() {
        let mut sends = ShareQueue::new(3);
        let class = Class::at_once(64 << 10, true, RunClass::ONE).unwrap();
        let by_turns = (0..8 * TRIED).filter(|_| sends.is_next(2, class, None));
        assert_eq!(by_turns.count() as u32, 4 * TRIED);
        for pause in [256, 512] {
            let preferred = Some(Preferred::new(true, 1));
            let shared = (0..pause + TRIED).filter(|_| sends.is_next(2, class, preferred));
            assert_eq!(shared.count() as u32, pause);
        }
        // The preference changes, and trials wait for their loss.
        let preferred = Some(Preferred::new(false, 2048));
        let shared = (0..2048 + TRIED).filter(|_| sends.is_next(2, class, preferred));
        assert_eq!(shared.count() as u32, TRIED);
    }
}
