//! The send queue: packets that found no room, and messages that are being sent in several packets.
//! Each peer has a queue of its own (`peer_queue`), once something is queued for it.

use std::collections::VecDeque;

use channel::{Head, PeerTable, Router};

use super::message_source::MessageSource;
use super::peer_queue::{Outgoing, PeerQueue, PeerState, PeerStates};
use super::short_path::ShortPaths;
use crate::Result;
use crate::packet::{Control, Kind};
use crate::request::RequestId;

/// The packets that wait to be sent, and the states of peers that close the short path to them.
pub(super) struct SendQueue {
    short_paths: ShortPaths,
    /// The queues of peers for which something was queued or set.
    queues: PeerTable<Box<PeerQueue>>,
    /// Peers for which packets are queued or announcements gathered.
    waiting: VecDeque<usize>,
}

/// The next step of a send that did not take the short path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The message leaves in one put, as on the short path. That path is closed because messages
    /// are counted, or because blocking sends have limits of their own.
    Put,
    /// The send fails, because the peer is lost.
    Fail,
    /// Announcements that were gathered for the peer must leave before the message.
    SendGathered,
    /// The protocol table must choose a protocol for the message.
    Choose,
}

impl SendQueue {
    /// The empty queues to peers. `whole`: for each peer, the length in bytes of the longest
    /// message that is sent eagerly in one packet.
    pub(super) fn new(whole: impl Iterator<Item = usize>) -> SendQueue {
        let short_paths = ShortPaths::new(whole);
        SendQueue {
            queues: PeerTable::new(short_paths.peers()),
            short_paths,
            waiting: VecDeque::new(),
        }
    }

    /// Adds the empty queues to further peers. `whole`: see [`new`](SendQueue::new).
    pub(super) fn add(&mut self, whole: impl Iterator<Item = usize>) {
        self.short_paths.add(whole);
        self.queues.grow(self.short_paths.peers());
    }

    /// True if a message of `len` bytes to this peer is one put.
    #[inline(always)]
    pub(super) fn is_one_put(&self, peer: usize, len: usize) -> bool {
        self.short_paths.takes(peer, len)
    }

    /// Makes [`is_one_put`](SendQueue::is_one_put) false from now on. Where it would be true,
    /// [`next_step`](SendQueue::next_step) returns [`Step::Put`].
    pub(super) fn hide_one_puts(&mut self) {
        self.short_paths.hide();
    }

    /// The next step of a message of `len` bytes to this peer that did not take the short path.
    pub(super) fn next_step(&self, peer: usize, len: usize) -> Step {
        let states = match self.queues.get(peer) {
            Some(queue) => queue.states,
            None => PeerStates::default(),
        };
        match states {
            _ if self.short_paths.takes_hidden(peer, len) => Step::Put,
            _ if states.has(PeerState::Lost) => Step::Fail,
            _ if states.has(PeerState::Gathers) => Step::SendGathered,
            _ => Step::Choose,
        }
    }

    /// True if a message of `len` bytes to this peer is short enough to be sent eagerly in one
    /// packet.
    pub(super) fn takes_whole(&self, peer: usize, len: usize) -> bool {
        let usual = match self.queues.get(peer) {
            Some(queue) => queue.one_put,
            None => self.short_paths.bound(peer),
        };
        len < usual as usize
    }

    /// True if no packet is queued for this peer and it has room for unexpected bytes.
    pub(super) fn is_clear(&self, peer: usize) -> bool {
        let queue = self.queues.get(peer);
        queue.is_none_or(|queue| queue.is_clear())
    }

    pub(super) fn is(&self, peer: usize, state: PeerState) -> bool {
        let queue = self.queues.get(peer);
        queue.is_some_and(|queue| queue.states.has(state))
    }

    pub(super) fn set(&mut self, peer: usize, state: PeerState, on: bool) {
        let queue = self.queue_of(peer);
        let was_idle = queue.is_idle();
        queue.states.set(state, on);
        match (was_idle, queue.is_idle()) {
            (true, false) => self.waiting.push_back(peer),
            (false, true) => self.waits_no_more(peer),
            _ => {}
        }
        self.changed(peer);
    }

    /// Removes the peer from the list of peers for which something is queued.
    fn waits_no_more(&mut self, peer: usize) {
        self.waiting.retain(|other| *other != peer);
    }

    /// Opens or closes the short path to a peer after a change of its queue or states.
    fn changed(&mut self, peer: usize) {
        if let Some(queue) = self.queues.get(peer) {
            let bound = match queue.queue.is_empty() && queue.states.is_empty() {
                true => queue.one_put,
                false => 0,
            };
            self.short_paths.set_bound(peer, bound);
        }
    }

    fn queue_of(&mut self, peer: usize) -> &mut PeerQueue {
        let one_put = self.short_paths.bound(peer);
        let queue = self.queues.entry(peer);
        queue.get_or_insert_with(|| Box::new(PeerQueue::idle(one_put)))
    }

    /// True if packets wait for room, or gathered announcements for the next progress.
    #[inline(always)]
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Drops all that is queued for a lost peer, and whatever is queued for it later. Returns the
    /// requests of the library's operations that were to complete with a packet.
    pub(super) fn lose(&mut self, peer: usize) -> Vec<RequestId> {
        self.set(peer, PeerState::Gathers, false);
        self.set(peer, PeerState::Lost, true);
        self.waits_no_more(peer);
        let queue = self.queue_of(peer);
        queue.streams.clear();
        let packets = std::mem::take(&mut queue.queue).into_iter();
        let completes = packets.filter_map(|outgoing| match outgoing {
            Outgoing::Packet { completes, .. } => completes,
            Outgoing::Message { .. } => None,
        });
        let completes = completes.collect();
        self.changed(peer);
        completes
    }

    /// Adds a packet. It leaves with the next progress, after all that was queued before.
    pub(super) fn push(&mut self, peer: usize, head: impl Into<Head>, body: Vec<u8>) {
        self.push_last(peer, head, body.into(), None);
    }

    /// Adds a control packet about a request, without a body.
    pub(super) fn push_control(&mut self, peer: usize, kind: impl Into<Kind>, token: u32) {
        self.push(peer, Control::about(kind, token), Vec::new());
    }

    /// Adds a packet. `completes`: the request that completes once the packet has left.
    pub(super) fn push_last(
        &mut self,
        peer: usize,
        head: impl Into<Head>,
        body: Box<[u8]>,
        completes: Option<RequestId>,
    ) {
        let head = head.into();
        self.queue(
            peer,
            Outgoing::Packet {
                head,
                body,
                completes,
            },
        );
    }

    /// Adds an eager message.
    pub(super) fn push_message(&mut self, peer: usize, request: RequestId) {
        let position = 0;
        self.queue(peer, Outgoing::Message { request, position });
    }

    fn queue(&mut self, peer: usize, outgoing: Outgoing) {
        if self.is(peer, PeerState::Lost) {
            return;
        }
        self.queue_with_more(peer).queue.push_back(outgoing);
        self.changed(peer);
    }

    /// Adds an announced message that its receiver asked for as packets.
    pub(super) fn push_stream(&mut self, peer: usize, request: RequestId, receive: u32) {
        if self.is(peer, PeerState::Lost) {
            return;
        }
        self.queue_with_more(peer).streams.push(request, receive);
    }

    /// The queue of a peer for which something is about to be queued.
    fn queue_with_more(&mut self, peer: usize) -> &mut PeerQueue {
        if self.queue_of(peer).is_idle() {
            self.waiting.push_back(peer);
        }
        self.queue_of(peer)
    }

    /// Removes a queued eager message. False: part of it has left, or it was not queued.
    pub(super) fn withdraw(&mut self, peer: usize, request: RequestId) -> bool {
        let Some(queue) = self.queues.get_mut(peer) else {
            return false;
        };
        let withdrawn = queue.withdraw(request);
        if withdrawn && queue.is_idle() {
            self.waits_no_more(peer);
        }
        self.changed(peer);
        withdrawn
    }

    /// Sends queued packets as far as peers have room. True if a packet left.
    #[inline(never)]
    pub(super) fn flush(
        &mut self,
        router: &mut Router,
        source: &mut impl MessageSource,
    ) -> Result<bool> {
        let mut moved = false;
        for _ in 0..self.waiting.len() {
            let Some(peer) = self.waiting.pop_front() else {
                break;
            };
            let Some(queue) = self.queues.get_mut(peer) else {
                continue;
            };
            let flushed = queue.flush(router, source, peer, &mut moved);
            if !queue.is_idle() {
                self.waiting.push_back(peer);
            }
            self.changed(peer);
            flushed?;
        }
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use channel::{More, Transport};
    use datatype::{Pool, Predefined};

    use channel::Put;

    use super::*;
    use crate::matching::Key;
    use crate::packet::{Eager, Envelope, Rendezvous, RunClass};
    use crate::request::Send;

    /// One message of a test, and the calls of the queue.
    struct One {
        send: Send,
        sent: usize,
    }

    impl MessageSource for One {
        fn send(&mut self, request: RequestId) -> Option<&mut Send> {
            (request == RequestId(1)).then_some(&mut self.send)
        }

        fn announce(&mut self, _: &mut Router, _: usize, _: RequestId) -> Result<Vec<u8>> {
            Ok(b"offer".to_vec())
        }

        fn sent(&mut self, _: RequestId, _: Put) {
            self.sent += 1;
        }

        fn left(&mut self, _: RequestId, _: Put) {}

        fn departed(&mut self, _: usize, _: &Key, _: u64) {}
    }

    fn message(bytes: &[u8]) -> One {
        let elements = Pool::default().elements(bytes.len(), &Predefined::BYTE.into());
        let buffer = elements.unwrap().buffer();
        buffer.unpack(0, bytes);
        let key = Key {
            context: 3,
            source: 0,
            tag: 4,
        };
        let envelope = Envelope {
            kind: Eager::Whole.into(),
            key,
            token: 1,
        };
        let send = Send {
            buffer,
            peer: 0,
            envelope,
            streaming: false,
            buffered: 0,
            cancelling: false,
            users: None,
            runs: RunClass::ONE,
        };
        One { send, sent: 0 }
    }

    fn queue() -> SendQueue {
        SendQueue::new([64].into_iter())
    }

    #[test]
    fn a_peer_has_no_queue_before_something_is_queued_for_it() {
        let mut queue = SendQueue::new([64; 3].into_iter());
        let made = |queue: &SendQueue| {
            let made = (0..3).filter(|peer| queue.queues.get(*peer).is_some());
            made.collect::<Vec<usize>>()
        };
        assert!((0..3).all(|peer| queue.takes_whole(peer, 64) && !queue.takes_whole(peer, 65)));
        assert_eq!(made(&queue), []);
        queue.push_message(1, RequestId(1));
        assert!(!queue.is_one_put(1, 8) && queue.is_one_put(2, 8));
        assert!(queue.withdraw(1, RequestId(1)));
        assert!(queue.is_one_put(1, 8));
        assert_eq!(made(&queue), [1]);
    }

    fn arrived(router: &mut Router) -> Vec<(Head, Vec<u8>)> {
        let mut all = Vec::new();
        router
            .poll(|_, head, body| {
                all.push((head, body.to_vec()));
                More::Wanted
            })
            .unwrap();
        all
    }

    #[test]
    fn packets_leave_in_order_and_streams_behind_them() {
        let (mut queue, mut router) = (queue(), Router::alone());
        let mut source = message(b"message");
        assert!(queue.is_one_put(0, 64) && !queue.is_one_put(0, 65));
        queue.push_stream(0, RequestId(1), 9);
        queue.push_control(0, Rendezvous::Finished, 5);
        queue.push_message(0, RequestId(1));
        assert!(!queue.is_one_put(0, 8) && queue.is_waiting());
        assert!(queue.flush(&mut router, &mut source).unwrap());
        let packets = arrived(&mut router);
        let kinds: Vec<Kind> = packets
            .iter()
            .map(|(head, _)| Envelope::decode(*head).unwrap().kind)
            .collect();
        let expected: [Kind; 3] = [
            Rendezvous::Finished.into(),
            Eager::Whole.into(),
            Rendezvous::Data.into(),
        ];
        assert_eq!(kinds, expected);
        assert!(packets[1].1 == b"message" && packets[2].1 == b"message");
        assert_eq!((source.sent, queue.is_waiting()), (2, false));
        assert!(queue.is_one_put(0, 8));
    }

    #[test]
    fn a_peer_without_room_gets_announcements() {
        let (mut queue, mut router) = (queue(), Router::alone());
        let mut source = message(b"message");
        queue.set(0, PeerState::HeadersOnly, true);
        assert!(!queue.is_clear(0) && !queue.is_one_put(0, 1));
        queue.push_message(0, RequestId(1));
        queue.flush(&mut router, &mut source).unwrap();
        assert_eq!(arrived(&mut router)[0].1, b"offer");
        assert_eq!(source.send.envelope.kind, Rendezvous::RequestToSend.into());
        queue.set(0, PeerState::HeadersOnly, false);
        assert!(queue.is_clear(0) && source.sent == 0);
    }

    #[test]
    fn a_peer_waits_once_whatever_waits_for_it() {
        let mut queue = queue();
        queue.set(0, PeerState::Gathers, true);
        assert!(queue.is_waiting());
        queue.push_message(0, RequestId(1));
        queue.set(0, PeerState::Gathers, false);
        assert_eq!(queue.waiting, [0]);
        assert!(queue.withdraw(0, RequestId(1)) && !queue.is_waiting());
        queue.set(0, PeerState::Gathers, true);
        queue.set(0, PeerState::Gathers, false);
        assert!(!queue.is_waiting());
    }

    #[test]
    fn a_message_is_withdrawn_only_whole() {
        let mut queue = queue();
        assert!(!queue.withdraw(0, RequestId(1)));
        queue.push_message(0, RequestId(1));
        assert!(queue.withdraw(0, RequestId(1)));
        assert!(!queue.withdraw(0, RequestId(1)));
    }
}
