//! The sender's knowledge of announced receives (ready to receive, RTR), by peer and key.
//!
//! Messages with one key are numbered in the order in which they are sent. A receiver says of a
//! receive how many posted receives with its key stand before it, and which packets it had seen
//! then. So the number of the message that meets the receive is that of the messages among those
//! packets plus that of the receives before it.
//!
//! Invariants:
//! - A buffer is kept for exactly one message, the one that meets its receive, and is given to no
//!   other. So a buffer may be dropped at any time: its message takes its usual path.
//! - A number is known only of receives whose receiver had seen every message from before the
//!   count, and no part of a packet that may hold a counted message.

use std::collections::{HashMap, VecDeque};

use crate::matching::Key;
use crate::packet::{Progress, Run, Target};

/// Most keys of a peer that are remembered.
const KEYS: usize = 1024;
/// Most buffers with one key.
const OPEN: usize = 64;
/// Most messages with one key that the peer has not reported as seen.
const UNSEEN: usize = 1024;

/// The announced receives of all peers.
#[derive(Default)]
pub(super) struct AnnouncedReceives {
    peers: HashMap<usize, HashMap<Key, Track>>,
}

/// The packets that have left for a peer.
#[derive(Clone, Copy)]
pub(super) struct Departures {
    /// Their number.
    pub(super) sent: u64,
    /// Further ones are queued.
    pub(super) waits: bool,
}

/// The messages and the buffers with one key.
struct Track {
    /// Packets that had left when the count began.
    from: u64,
    /// Messages that have been sent since.
    count: u64,
    /// For each of the latest of these messages, of which the peer has not reported to have seen
    /// them, the number of packets that had left with it. `None`: it is queued.
    unseen: VecDeque<Option<u64>>,
    /// Buffers for further messages, by the numbers of these.
    targets: VecDeque<(u64, Target)>,
}

impl Track {
    fn new(from: u64) -> Track {
        Track {
            from,
            count: 0,
            unseen: VecDeque::new(),
            targets: VecDeque::new(),
        }
    }

    /// Keeps the buffers of a run that are for messages that have not been sent.
    fn hear(&mut self, progress: Progress, run: &Run) {
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

    /// Notes an announcement of a peer.
    pub(super) fn hear(
        &mut self,
        peer: usize,
        progress: Progress,
        run: &Run,
        departures: Departures,
    ) {
        let keys = self.peers.entry(peer).or_default();
        if !keys.contains_key(&run.key) {
            // Messages with this key may be among the queued packets, uncounted.
            if departures.waits || keys.len() >= KEYS {
                return;
            }
            keys.insert(run.key, Track::new(departures.sent));
        }
        if let Some(track) = keys.get_mut(&run.key) {
            track.hear(progress, run);
        }
    }

    /// The peer takes back the announcement of a receive. The receives behind it will meet other
    /// messages than was known.
    pub(super) fn revoke(&mut self, peer: usize, key: &Key, receive: u32) {
        if let Some(track) = self.track(peer, key) {
            let of_it = |(_, target): &(u64, Target)| target.receive == receive;
            let at = track.targets.iter().position(of_it).unwrap_or(0);
            track.targets.truncate(at);
        }
    }

    /// The next message with this key is sent. The result is the buffer of its receive.
    pub(super) fn consume(&mut self, peer: usize, key: &Key) -> Option<Target> {
        let track = self.track(peer, key)?;
        if track.unseen.len() >= UNSEEN {
            self.forget(peer, key);
            return None;
        }
        let number = track.count;
        track.count += 1;
        track.unseen.push_back(None);
        let (_, target) = track.targets.pop_front_if(|(first, _)| *first == number)?;
        Some(target)
    }

    /// The earliest queued message with this key has left, among the first `sent` packets.
    pub(super) fn departed(&mut self, peer: usize, key: &Key, sent: u64) {
        if let Some(track) = self.track(peer, key)
            && let Some(queued) = track.unseen.iter_mut().find(|packet| packet.is_none())
        {
            *queued = Some(sent);
        }
    }

    /// A message with this key was counted and will not be sent: the count begins anew.
    pub(super) fn forget(&mut self, peer: usize, key: &Key) {
        if let Some(keys) = self.peers.get_mut(&peer) {
            keys.remove(key);
        }
    }
}
