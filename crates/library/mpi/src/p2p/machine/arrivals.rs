//! Arrivals from each peer: the message that is arriving in pieces, and the unexpected bytes.
//!
//! Invariant: the unexpected bytes of one peer are bounded, because a peer beyond its
//! limit is asked to announce every message.

use channel::PeerTable;

use super::learned_costs::Measured;
use super::message::Message;
use crate::matching::Key;
use crate::request::RequestId;

/// The messages that are arriving from each peer.
pub(super) struct Arrivals {
    peers: PeerTable<Arrival>,
}

#[derive(Default)]
struct Arrival {
    /// The message of the peer that is arriving in eager pieces, if there is one.
    coming: Option<Coming>,
    /// Number of unexpected bytes from the peer that this rank holds.
    held: usize,
    /// True if the peer has been asked to announce every message.
    stopped: bool,
}

/// A message that is arriving in eager pieces.
pub(super) struct Coming {
    pub(super) key: Key,
    /// The number of bytes of the message that have not arrived.
    pub(super) left: usize,
    /// The receive that the message has matched; or, if it has matched none, the bytes that have
    /// arrived.
    pub(super) to: std::result::Result<RequestId, Vec<u8>>,
    /// The measurement of the message, if this rank learns costs from it.
    pub(super) measured: Option<Measured>,
}

/// A change in the room for unexpected bytes of a peer, to be reported to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Exhausted,
    Regained,
}

impl Arrivals {
    pub(super) fn new(ranks: usize) -> Arrivals {
        Arrivals {
            peers: PeerTable::new(ranks),
        }
    }

    /// Adds peers, so that they are the ranks 0 to `ranks` - 1.
    pub(super) fn grow(&mut self, ranks: usize) {
        self.peers.grow(ranks);
    }

    fn of(&mut self, peer: usize) -> &mut Arrival {
        self.peers.entry(peer).get_or_insert_default()
    }

    /// True if a message from this peer is arriving in pieces.
    #[inline]
    pub(super) fn is_coming(&self, peer: usize) -> bool {
        let arrival = self.peers.get(peer);
        arrival.is_some_and(|arrival| arrival.coming.is_some())
    }

    /// Takes the message that is arriving in pieces from this peer.
    pub(super) fn take_coming(&mut self, peer: usize) -> Option<Coming> {
        self.of(peer).coming.take()
    }

    /// Drops the incomplete message of a lost peer.
    pub(super) fn forget_peer(&mut self, peer: usize) {
        if let Some(arrival) = self.peers.get_mut(peer) {
            arrival.coming = None;
        }
    }

    /// Sets the message that is arriving in pieces from this peer. False: another one is arriving
    /// already.
    pub(super) fn set_coming(&mut self, peer: usize, coming: Coming) -> bool {
        self.of(peer).coming.replace(coming).is_none()
    }

    /// Counts an unexpected message of `bytes` bytes that this rank holds. Returns the change to be
    /// reported to the peer, if its unexpected bytes now exceed their limit.
    pub(super) fn hold(&mut self, peer: usize, bytes: usize, limit: usize) -> Option<Room> {
        let arrival = self.of(peer);
        arrival.held += bytes + size_of::<Message>();
        let exhausted = arrival.held > limit && !arrival.stopped;
        arrival.stopped |= exhausted;
        exhausted.then_some(Room::Exhausted)
    }

    /// Subtracts an unexpected message of `bytes` bytes that has been received. Returns the change
    /// to be reported to the peer, if it has room for unexpected bytes again.
    pub(super) fn let_go(&mut self, peer: usize, bytes: usize, limit: usize) -> Option<Room> {
        let arrival = self.of(peer);
        arrival.held = arrival.held.saturating_sub(bytes + size_of::<Message>());
        let regained = arrival.stopped && arrival.held <= limit / 2;
        arrival.stopped &= !regained;
        regained.then_some(Room::Regained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_hears_of_its_limit_once_and_of_room_at_half_of_it() {
        let mut arrivals = Arrivals::new(2);
        let (limit, len) = (10_000, 4_000);
        assert_eq!(arrivals.hold(1, len, limit), None);
        assert_eq!(arrivals.hold(1, len, limit), None);
        assert_eq!(arrivals.hold(1, len, limit), Some(Room::Exhausted));
        assert_eq!(arrivals.hold(1, len, limit), None);
        assert_eq!(arrivals.let_go(1, len, limit), None);
        assert_eq!(arrivals.let_go(1, len, limit), None);
        assert_eq!(arrivals.let_go(1, len, limit), Some(Room::Regained));
        assert_eq!(arrivals.let_go(1, len, limit), None);
        assert_eq!(arrivals.let_go(0, len, limit), None, "another peer");
    }
}
