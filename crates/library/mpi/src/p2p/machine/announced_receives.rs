//! The sender's knowledge of announced receives (ready to receive, RTR), by peer and envelope.
//!
//! Messages with one envelope are numbered in the order in which they are sent. The announcement of
//! a receive states how many posted receives with its envelope precede it, and how many packets the
//! receiver had processed then. So the number of the message that matches the receive is the count
//! of messages among those packets plus the count of receives before it.
//!
//! Invariants:
//! - A buffer is kept for exactly one message, the one that matches its receive, and is given to no
//!   other. So a buffer may be dropped at any time: its message takes its usual path.
//! - The number of the message is known only if the receiver, when it announced, had processed
//!   every message that was sent before this rank began to number them, and had processed no packet
//!   in part that may hold a numbered message.

use std::collections::{HashMap, VecDeque};

use crate::matching::Key;
use crate::packet::{Progress, Run, Target};

/// The greatest number of envelopes of a peer that are tracked.
const KEYS: usize = 1024;
/// The greatest number of announced buffers of a peer that are kept for one envelope.
const OPEN: usize = 64;
/// Numbers of polls for announcements that may be in vain: after an announcement that arrived too
/// late, and after one that was used.
const POLLS: [u32; 2] = [8, 64];
/// The greatest number of messages with one envelope that the peer has not reported as processed.
const UNSEEN: usize = 1024;

/// The receives that peers have announced to this rank, by peer and envelope.
#[derive(Default)]
pub(super) struct AnnouncedReceives {
    peers: HashMap<usize, HashMap<Key, Track>>,
}

/// The state of this rank's packets to one peer, for its announcements.
#[derive(Clone, Copy)]
pub(super) struct Departures {
    /// The number of packets that have left for the peer.
    pub(super) sent: u64,
    /// True if further packets for the peer are queued.
    pub(super) waits: bool,
}

/// The count of sent messages, and the announced buffers, for one peer and one envelope.
struct Track {
    /// The number of packets that had left when the counting of these messages began.
    from: u64,
    /// The number of messages with this envelope that have been sent since then.
    count: u64,
    /// The latest sent messages, which the peer has not reported as processed. For each, the number
    /// of packets that had left when the message had. `None`: the message is queued.
    unseen: VecDeque<Option<u64>>,
    /// Announced buffers, each with the number of the future message that it is for.
    targets: VecDeque<(u64, Target)>,
    /// Number of further messages before which a poll for announcements is worth its time.
    polls: u32,
}

impl Track {
    fn new(from: u64) -> Track {
        Track {
            from,
            count: 0,
            unseen: VecDeque::new(),
            targets: VecDeque::new(),
            polls: 0,
        }
    }

    /// Keeps those buffers of a run (announced receives with one envelope) whose messages have not
    /// been sent.
    fn on_announcement(&mut self, progress: Progress, run: &Run) {
        let Progress { seen, amid } = progress;
        while let Some(Some(packet)) = self.unseen.front()
            && *packet <= seen
        {
            self.unseen.pop_front();
        }
        let is_unsure = amid && self.unseen.front() == Some(&Some(seen + 1));
        if seen < self.from || is_unsure {
            return;
        }
        let first = self.count - self.unseen.len() as u64 + run.behind as u64;
        if first < self.count {
            self.polls = self.polls.max(POLLS[0]);
        }
        for (number, target) in (first..).zip(&run.targets) {
            let last = self.targets.back().map(|(last, _)| *last);
            let is_next = number >= self.count && last.is_none_or(|last| last < number);
            if is_next && self.targets.len() < OPEN {
                self.targets.push_back((number, *target));
            }
        }
    }
}

impl AnnouncedReceives {
    fn track(&mut self, peer: usize, key: &Key) -> Option<&mut Track> {
        self.peers.get_mut(&peer)?.get_mut(key)
    }

    /// Records an announcement of a peer.
    pub(super) fn on_announcement(
        &mut self,
        peer: usize,
        progress: Progress,
        run: &Run,
        departures: Departures,
    ) {
        let keys = self.peers.entry(peer).or_default();
        if !keys.contains_key(&run.key) {
            // Messages with this envelope may be among the queued packets, uncounted.
            if departures.waits || keys.len() >= KEYS {
                return;
            }
            keys.insert(run.key, Track::new(departures.sent));
        }
        if let Some(track) = keys.get_mut(&run.key) {
            track.on_announcement(progress, run);
        }
    }

    /// Records that the peer revokes the announcement of a receive. Drops the buffers of later
    /// receives, too, because their message numbers are no longer right.
    pub(super) fn revoke(&mut self, peer: usize, key: &Key, receive: u32) {
        if let Some(track) = self.track(peer, key) {
            let of_it = |(_, target): &(u64, Target)| target.receive == receive;
            let at = track.targets.iter().position(of_it).unwrap_or(0);
            track.targets.truncate(at);
        }
    }

    /// True if a poll for announcements before the next message with this envelope is worth its
    /// time: no buffer is known, and recent announcements were of use or nearly so.
    pub(super) fn is_worth_hearing(&mut self, peer: usize, key: &Key) -> bool {
        match self.track(peer, key) {
            Some(track) if track.polls > 0 && track.targets.is_empty() => {
                track.polls -= 1;
                true
            }
            _ => false,
        }
    }

    /// Counts the next message with this envelope, which is about to be sent. Returns the buffer of
    /// its receive, if that is known.
    pub(super) fn consume(&mut self, peer: usize, key: &Key) -> Option<Target> {
        let track = self.track(peer, key)?;
        if track.unseen.len() >= UNSEEN {
            self.forget(peer, key);
            return None;
        }
        let number = track.count;
        track.count += 1;
        track.unseen.push_back(None);
        let (first, _) = track.targets.front()?;
        if *first != number {
            return None;
        }
        let (_, target) = track.targets.pop_front()?;
        track.polls = POLLS[1];
        Some(target)
    }

    /// Records that the earliest queued message with this envelope has left, among the first `sent`
    /// packets.
    pub(super) fn departed(&mut self, peer: usize, key: &Key, sent: u64) {
        if let Some(track) = self.track(peer, key)
            && let Some(queued) = track.unseen.iter_mut().find(|packet| packet.is_none())
        {
            *queued = Some(sent);
        }
    }

    /// Removes the announcements of a lost peer.
    pub(super) fn forget_peer(&mut self, peer: usize) {
        self.peers.remove(&peer);
    }

    /// Begins the count for this envelope anew, because a message was counted that will not be
    /// sent.
    pub(super) fn forget(&mut self, peer: usize, key: &Key) {
        if let Some(keys) = self.peers.get_mut(&peer) {
            keys.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use channel::RemoteKey;
    use proptest::prelude::*;

    use super::*;

    const KEY: Key = Key {
        context: 1,
        source: 2,
        tag: 3,
    };
    const PEER: usize = 1;

    fn run(behind: usize, receives: impl IntoIterator<Item = u32>) -> Run {
        let target = |receive| Target {
            len: 1 << 20,
            notice: receive,
            receive,
            key: RemoteKey::NONE,
        };
        Run {
            key: KEY,
            behind,
            targets: receives.into_iter().map(target).collect(),
        }
    }

    fn seen(seen: u64) -> Progress {
        Progress { seen, amid: false }
    }

    fn left(sent: u64) -> Departures {
        let waits = false;
        Departures { sent, waits }
    }

    fn next(announced: &mut AnnouncedReceives) -> Option<u32> {
        announced.consume(PEER, &KEY).map(|target| target.receive)
    }

    #[test]
    fn messages_consume_the_oldest_rtr_of_their_key() {
        let mut announced = AnnouncedReceives::default();
        announced.on_announcement(PEER, seen(10), &run(0, [5, 6, 7]), left(10));
        assert!(announced.consume(0, &KEY).is_none(), "another peer");
        assert_eq!(next(&mut announced), Some(5));
        announced.revoke(PEER, &KEY, 7);
        assert_eq!(next(&mut announced), Some(6));
        assert_eq!(next(&mut announced), None);
    }

    #[test]
    fn messages_that_left_before_an_announcement_was_heard_take_its_first_receives() {
        let mut announced = AnnouncedReceives::default();
        announced.on_announcement(PEER, seen(10), &run(0, []), left(10));
        for sent in 11..14 {
            assert_eq!(next(&mut announced), None);
            announced.departed(PEER, &KEY, sent);
        }
        assert_eq!(next(&mut announced), None, "and one is queued");
        // The receiver had seen the first of them.
        announced.on_announcement(PEER, seen(11), &run(0, 20..25), left(13));
        assert_eq!(next(&mut announced), Some(23));
        announced.on_announcement(PEER, seen(11), &run(5, [25]), left(13));
        assert_eq!(next(&mut announced), Some(24));
        assert_eq!(next(&mut announced), Some(25));
    }

    #[test]
    fn an_announcement_whose_message_is_not_known_is_dropped() {
        let mut announced = AnnouncedReceives::default();
        // Twelve packets have left, of which the receiver had seen ten.
        announced.on_announcement(PEER, seen(10), &run(0, [1]), left(12));
        assert_eq!(next(&mut announced), None);
        announced.departed(PEER, &KEY, 13);
        // It has seen part of the packet with that message.
        let amid = Progress {
            seen: 12,
            amid: true,
        };
        announced.on_announcement(PEER, amid, &run(1, [2]), left(13));
        assert_eq!(next(&mut announced), None);
        announced.departed(PEER, &KEY, 14);
        announced.on_announcement(PEER, seen(13), &run(2, [3, 4]), left(14));
        assert_eq!(next(&mut announced), None, "receives 1 and 2 come first");
        assert_eq!(next(&mut announced), Some(3));
        // The first message is not among the counted ones.
        let mut announced = AnnouncedReceives::default();
        let waits = Departures {
            sent: 3,
            waits: true,
        };
        announced.on_announcement(PEER, seen(3), &run(0, [1]), waits);
        assert_eq!(next(&mut announced), None);
    }

    #[test]
    fn a_message_that_does_not_leave_ends_the_count() {
        let mut announced = AnnouncedReceives::default();
        announced.on_announcement(PEER, seen(3), &run(0, [1, 2]), left(3));
        assert_eq!(next(&mut announced), Some(1));
        announced.forget(PEER, &KEY);
        assert_eq!(next(&mut announced), None);
    }

    #[test]
    fn memory_is_bounded_whatever_a_peer_announces() {
        let mut announced = AnnouncedReceives::default();
        for tag in 0..2 * KEYS as i32 {
            let key = Key { tag, ..KEY };
            let run = Run {
                key,
                ..run(7, 0..2 * OPEN as u32)
            };
            announced.on_announcement(PEER, seen(9), &run, left(9));
        }
        let keys = &announced.peers[&PEER];
        assert_eq!(keys.len(), KEYS);
        assert!(keys.values().all(|track| track.targets.len() == OPEN));
        for _ in 0..2 * UNSEEN {
            let _ = next(&mut announced);
        }
        let track = announced.track(PEER, &KEY);
        assert!(track.is_none_or(|track| track.unseen.len() <= UNSEEN));
    }

    proptest! {
        /// A receiver posts and announces receives, a sender sends messages, each at any time; both
        /// learn of it late. Each message that is given a buffer matches the receive of that
        /// buffer.
        #[test]
        fn a_message_is_given_the_buffer_that_it_would_meet(
            steps in prop::collection::vec(0u8..5, 1..200),
        ) {
            let mut announced = AnnouncedReceives::default();
            // Messages in flight, by the buffer that they were given; announcements in flight.
            let mut messages: VecDeque<Option<u32>> = VecDeque::new();
            let mut announcements: VecDeque<(u64, Run)> = VecDeque::new();
            // The receiver: posted receives, and those among them that have not been announced.
            let (mut posted, mut fresh) = (VecDeque::new(), Vec::new());
            let (mut unexpected, mut taken, mut sent, mut number) = (0, 0u64, 0u64, 0u32);
            for step in steps {
                match step {
                    0 if unexpected > 0 => unexpected -= 1,
                    0 => {
                        posted.push_back(number);
                        fresh.push(number);
                        number += 1;
                    }
                    1 => {
                        fresh.retain(|receive| posted.contains(receive));
                        let behind = posted.len() - fresh.len();
                        announcements.push_back((taken, run(behind, fresh.drain(..))));
                    }
                    2 => {
                        let given = next(&mut announced);
                        sent += 1;
                        announced.departed(PEER, &KEY, sent);
                        messages.push_back(given);
                    }
                    3 => if let Some((taken, run)) = announcements.pop_front() {
                        announced.on_announcement(PEER, seen(taken), &run, left(sent));
                    },
                    _ => if let Some(given) = messages.pop_front() {
                        taken += 1;
                        match posted.pop_front() {
                            Some(met) => prop_assert!(given.is_none_or(|given| given == met)),
                            None => {
                                prop_assert_eq!(given, None);
                                unexpected += 1;
                            }
                        }
                    },
                }
            }
        }
    }
}
