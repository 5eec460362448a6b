//! The send queue: packets that found no room, and messages on their way in several packets.
//!
//! Invariants:
//! - packets to one peer leave in the order in which they were queued;
//! - a message in eager pieces leaves with nothing between its pieces; pieces of announced messages
//!   leave behind the queue, because their order against other messages does not matter.

use std::collections::VecDeque;

use channel::{Head, NotifiedWrite, PeerTable, Put, Router, ShortPath, Transport};

use crate::Result;
use crate::matching::Key;
use crate::packet::{Control, Eager, Envelope, Kind, ReadyToReceive, Rendezvous, copied_out};
use crate::request::{RequestId, Send};

/// The packets that wait, and the peers that need more than a `put`.
pub(super) struct SendQueue {
    /// For each peer, messages shorter than this, in bytes, are one put at this moment.
    one_put: Box<[u32]>,
    /// `one_put` while it is 0 for every peer, so that nothing takes the short path.
    hidden: Option<Box<[u32]>>,
    /// The state of peers for which something was queued or set.
    special: PeerTable<Box<Special>>,
    /// Peers with queued packets or gathered announcements.
    waiting: VecDeque<usize>,
}

struct Special {
    /// As `one_put` of this peer while nothing is queued and no state is set.
    one_put: u32,
    /// Packets in the order in which they must leave.
    queue: VecDeque<Outgoing>,
    /// Announced messages that leave in pieces, behind the queue.
    streams: VecDeque<Stream>,
    /// The states that are set, as bits of [`PeerState`].
    states: u8,
}

/// A reason why messages to a peer are more than put.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum PeerState {
    /// The peer has no room for unexpected bytes: announce every message.
    HeadersOnly = 1,
    /// The peer has announced buffers.
    HasRtrs = 2,
    /// Announcements for the peer have been gathered and have not left.
    Gathers = 4,
    /// The peer cannot be reached any more.
    Lost = 8,
}

enum Outgoing {
    /// A packet with a body of its own, and the request that is complete when the packet has left.
    Packet {
        head: Head,
        body: Box<[u8]>,
        completes: Option<RequestId>,
    },
    /// An eager message in the user's buffer, from `position` on.
    Message { request: RequestId, position: usize },
}

struct Stream {
    request: RequestId,
    /// The receiver's request.
    receive: u32,
    position: usize,
}

/// The messages that the queue sends, as their owner keeps them.
pub(super) trait MessageSource {
    /// The send of a request; `None` if it is gone.
    fn send(&mut self, request: RequestId) -> Option<&mut Send>;
    /// The body of the announcement of a message, which may expose the message.
    fn announce(&mut self, router: &mut Router, peer: usize, request: RequestId)
    -> Result<Vec<u8>>;
    /// The last packet of a message was accepted, with this answer: its send is complete once that
    /// has left.
    fn sent(&mut self, request: RequestId, put: Put);
    /// The last packet of an operation of the library was accepted, with this answer.
    fn left(&mut self, request: RequestId, put: Put);
    /// The first packet of a message to a peer that has announced buffers has left, among the first
    /// `sent` packets for it.
    fn departed(&mut self, peer: usize, key: &Key, sent: u64);
}

/// The progress of one queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flushed {
    /// The peer has no more room.
    Full,
    /// This rank should poll before it sends more.
    PollNow,
    /// The queue is empty.
    Empty,
}

/// The bound below which messages are one put, where those of up to `whole` bytes fit one packet.
fn shorter_than(whole: usize) -> u32 {
    u32::try_from(whole).unwrap_or(u32::MAX).saturating_add(1)
}

impl Special {
    fn idle(one_put: u32) -> Special {
        Special {
            one_put,
            queue: VecDeque::new(),
            streams: VecDeque::new(),
            states: 0,
        }
    }
}

impl Outgoing {
    /// The key of the message whose first packet this is.
    fn begins(&self, source: &mut impl MessageSource) -> Option<Key> {
        match self {
            Outgoing::Packet { head, .. } => {
                let envelope = Envelope::decode(*head)?;
                let begins = matches!(
                    envelope.kind,
                    Kind::Rendezvous(Rendezvous::RequestToSend)
                        | Kind::ReadyToReceive(ReadyToReceive::Start)
                );
                begins.then_some(envelope.key)
            }
            Outgoing::Message {
                request,
                position: 0,
            } => source.send(*request).map(|send| send.envelope.key),
            Outgoing::Message { .. } => None,
        }
    }
}

impl Special {
    fn is(&self, state: PeerState) -> bool {
        self.states & state as u8 != 0
    }

    #[inline(always)]
    fn is_clear(&self) -> bool {
        self.queue.is_empty() && !self.is(PeerState::HeadersOnly)
    }

    fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.streams.is_empty() && !self.is(PeerState::Gathers)
    }
}

impl SendQueue {
    /// The queues to peers, for each of which the longest message is given that fits one packet.
    pub(super) fn new(whole: impl Iterator<Item = usize>) -> SendQueue {
        let one_put: Box<[u32]> = whole.map(shorter_than).collect();
        SendQueue {
            special: PeerTable::new(one_put.len()),
            one_put,
            hidden: None,
            waiting: VecDeque::new(),
        }
    }

    /// A message of `len` bytes to this peer is one put.
    #[inline(always)]
    pub(super) fn is_one_put(&self, peer: usize, len: usize) -> bool {
        len < self.one_put[peer] as usize
    }

    /// [`is_one_put`](SendQueue::is_one_put) is false from now on, and
    /// [`is_hidden_one_put`](SendQueue::is_hidden_one_put) has its answer.
    pub(super) fn hide_one_puts(&mut self) {
        if self.hidden.is_none() {
            let none = vec![0; self.one_put.len()].into();
            self.hidden = Some(std::mem::replace(&mut self.one_put, none));
        }
    }

    /// A message of `len` bytes to this peer would be one put.
    pub(super) fn is_hidden_one_put(&self, peer: usize, len: usize) -> bool {
        let hidden = self.hidden.as_deref();
        hidden.is_some_and(|bounds| len < bounds[peer] as usize)
    }

    /// A message of `len` bytes to this peer fits one packet.
    pub(super) fn takes_whole(&self, peer: usize, len: usize) -> bool {
        let usual = match self.special.get(peer) {
            Some(special) => special.one_put,
            None => self.bound(peer),
        };
        len < usual as usize
    }

    /// No packet is queued for this peer, and it has room for unexpected bytes.
    pub(super) fn is_clear(&self, peer: usize) -> bool {
        let special = self.special.get(peer);
        special.is_none_or(|special| special.is_clear())
    }

    pub(super) fn is(&self, peer: usize, state: PeerState) -> bool {
        let special = self.special.get(peer);
        special.is_some_and(|special| special.is(state))
    }

    pub(super) fn set(&mut self, peer: usize, state: PeerState, on: bool) {
        let special = self.special_of(peer);
        let was_idle = special.is_idle();
        special.states = special.states & !(state as u8) | if on { state as u8 } else { 0 };
        match (was_idle, special.is_idle()) {
            (true, false) => self.waiting.push_back(peer),
            (false, true) => self.waits_no_more(peer),
            _ => {}
        }
        self.changed(peer);
    }

    /// Nothing is left that waits for this peer.
    fn waits_no_more(&mut self, peer: usize) {
        self.waiting.retain(|other| *other != peer);
    }

    /// The queue or the states of a peer have changed.
    fn changed(&mut self, peer: usize) {
        if let Some(special) = self.special.get(peer) {
            let bound = match special.queue.is_empty() && special.states == 0 {
                true => special.one_put,
                false => 0,
            };
            let hidden = self.hidden.as_deref_mut();
            hidden.unwrap_or(&mut self.one_put)[peer] = bound;
        }
    }

    /// Messages to this peer shorter than this, in bytes, fit one packet. Nothing is queued for it.
    fn bound(&self, peer: usize) -> u32 {
        self.hidden.as_deref().unwrap_or(&self.one_put)[peer]
    }

    fn special_of(&mut self, peer: usize) -> &mut Special {
        let one_put = self.bound(peer);
        let special = self.special.entry(peer);
        special.get_or_insert_with(|| Box::new(Special::idle(one_put)))
    }

    /// Packets wait for room, or announcements for the next round.
    #[inline(always)]
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The peer cannot be reached any more: nothing is queued for it. Returns the requests of the
    /// library's operations that were to complete with a packet.
    pub(super) fn lose(&mut self, peer: usize) -> Vec<RequestId> {
        self.set(peer, PeerState::Gathers, false);
        self.set(peer, PeerState::Lost, true);
        self.waits_no_more(peer);
        let special = self.special_of(peer);
        special.streams.clear();
        let queue = std::mem::take(&mut special.queue).into_iter();
        let completes = queue.filter_map(|outgoing| match outgoing {
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

    /// Adds a packet that ends an operation of the library.
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
        self.special(peer).queue.push_back(outgoing);
        self.changed(peer);
    }

    /// Adds an announced message that its receiver asked for as packets.
    pub(super) fn push_stream(&mut self, peer: usize, request: RequestId, receive: u32) {
        if self.is(peer, PeerState::Lost) {
            return;
        }
        self.special(peer).streams.push_back(Stream {
            request,
            receive,
            position: 0,
        });
    }

    /// The queue of a peer that gets something queued.
    fn special(&mut self, peer: usize) -> &mut Special {
        if self.special_of(peer).is_idle() {
            self.waiting.push_back(peer);
        }
        self.special_of(peer)
    }

    /// Takes a queued eager message back. False: part of it has left, or it was not queued.
    pub(super) fn withdraw(&mut self, peer: usize, request: RequestId) -> bool {
        let Some(special) = self.special.get_mut(peer) else {
            return false;
        };
        let is_it = |outgoing: &Outgoing| matches!(outgoing, Outgoing::Message { request: queued, position: 0 } if *queued == request);
        let found = special.queue.iter().position(is_it);
        let withdrawn = found.and_then(|at| special.queue.remove(at));
        if withdrawn.is_some() && special.is_idle() {
            self.waits_no_more(peer);
        }
        self.changed(peer);
        withdrawn.is_some()
    }

    /// Sends as much as there is room for. True if a packet left.
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
            let Some(special) = self.special.get_mut(peer) else {
                continue;
            };
            let flushed = special.flush(router, source, peer, &mut moved);
            if !special.is_idle() {
                self.waiting.push_back(peer);
            }
            self.changed(peer);
            flushed?;
        }
        Ok(moved)
    }
}

impl Special {
    /// Sends at most as many packets as fill the ring once: then it is time to hear whether the
    /// peer has enough.
    fn flush(
        &mut self,
        router: &mut Router,
        source: &mut impl MessageSource,
        peer: usize,
        moved: &mut bool,
    ) -> Result<()> {
        match self.flush_queue(router, source, peer, moved)? {
            Flushed::Empty => self.flush_streams(router, source, peer, moved),
            Flushed::Full | Flushed::PollNow => Ok(()),
        }
    }

    fn flush_queue(
        &mut self,
        router: &mut Router,
        source: &mut impl MessageSource,
        peer: usize,
        moved: &mut bool,
    ) -> Result<Flushed> {
        let headers_only = self.is(PeerState::HeadersOnly);
        let is_tracked = self.is(PeerState::HasRtrs);
        while let Some(next) = self.queue.front_mut() {
            let begins = is_tracked.then(|| next.begins(source)).flatten();
            let (put, whole) = match next {
                Outgoing::Packet {
                    head,
                    body,
                    completes,
                } => {
                    let put =
                        router.put(peer, *head, body.len(), |room| room.copy_from_slice(body))?;
                    if put != Put::Full
                        && let Some(request) = completes
                    {
                        source.left(*request, put);
                    }
                    (put, true)
                }
                Outgoing::Message { request, position } => {
                    let Some(send) = source.send(*request) else {
                        self.queue.pop_front();
                        continue;
                    };
                    match send.envelope.kind {
                        _ if *position == 0 && headers_only => {
                            (put_announcement(router, source, peer, *request)?, true)
                        }
                        Kind::Eager(Eager::FirstPiece) => {
                            put_piece(router, source, peer, *request, position)?
                        }
                        _ => (put_message(router, source, peer, *request)?, true),
                    }
                }
            };
            if put == Put::Full {
                return Ok(Flushed::Full);
            }
            *moved = true;
            if let Some(key) = begins {
                source.departed(peer, &key, router.packets_sent(peer));
            }
            if whole {
                self.queue.pop_front();
            }
            if put == Put::AcceptedPollNow {
                return Ok(Flushed::PollNow);
            }
        }
        Ok(Flushed::Empty)
    }

    fn flush_streams(
        &mut self,
        router: &mut Router,
        source: &mut impl MessageSource,
        peer: usize,
        moved: &mut bool,
    ) -> Result<()> {
        while let Some(stream) = self.streams.front_mut() {
            let Some(send) = source.send(stream.request) else {
                self.streams.pop_front();
                continue;
            };
            let left = send.buffer.len() - stream.position;
            let piece = left.min(router.piece(peer));
            let head = Control::about(Rendezvous::Data, stream.receive).encode();
            let stores = router.stores(peer, piece);
            let put = router.put(peer, head, piece, |room| {
                stores.fill(&send.buffer, stream.position, room)
            })?;
            if put == Put::Full {
                return Ok(());
            }
            *moved = true;
            stream.position += piece;
            if piece == left {
                let done = stream.request;
                self.streams.pop_front();
                source.sent(done, put);
            }
            if put == Put::AcceptedPollNow {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Announces a queued message, because its receiver has no room for it.
fn put_announcement(
    router: &mut Router,
    source: &mut impl MessageSource,
    peer: usize,
    request: RequestId,
) -> Result<Put> {
    let body = source.announce(router, peer, request)?;
    let Some(send) = source.send(request) else {
        return Ok(Put::Accepted);
    };
    let kind = Kind::Rendezvous(Rendezvous::RequestToSend);
    let envelope = Envelope {
        kind,
        ..send.envelope
    };
    let put = router.put(peer, envelope.encode(), body.len(), |room| {
        room.copy_from_slice(&body);
    })?;
    // If there is no room, the peer may have some for the message itself by the time there is.
    if put != Put::Full {
        send.envelope.kind = kind;
    }
    Ok(put)
}

/// Sends the next piece of an eager message. The second answer: it was the last one.
fn put_piece(
    router: &mut Router,
    source: &mut impl MessageSource,
    peer: usize,
    request: RequestId,
    position: &mut usize,
) -> Result<(Put, bool)> {
    let Some(send) = source.send(request) else {
        return Ok((Put::Accepted, true));
    };
    let (len, mut envelope) = (send.buffer.len(), send.envelope);
    match *position {
        0 => envelope.token = len as u32,
        _ => envelope.kind = Eager::NextPiece.into(),
    }
    let left = len - *position;
    let piece = left.min(router.piece(peer));
    let stores = router.stores(peer, piece);
    let head = copied_out(envelope.encode(), stores.copy_out());
    let put = router.put(peer, head, piece, |room| {
        stores.fill(&send.buffer, *position, room)
    })?;
    let is_last = piece == left;
    if put != Put::Full {
        *position += piece;
        if is_last {
            source.sent(request, put);
        }
    }
    Ok((put, is_last))
}

/// Sends a whole eager message.
fn put_message(
    router: &mut Router,
    source: &mut impl MessageSource,
    peer: usize,
    request: RequestId,
) -> Result<Put> {
    let Some(send) = source.send(request) else {
        return Ok(Put::Accepted);
    };
    let (buffer, envelope) = (&send.buffer, send.envelope);
    let stores = router.stores(peer, buffer.len());
    let head = copied_out(envelope.encode(), stores.copy_out());
    let put = router.put(peer, head, buffer.len(), |room| {
        stores.fill(buffer, 0, room)
    })?;
    if put != Put::Full && envelope.kind == Kind::Eager(Eager::Whole) {
        source.sent(request, put);
    }
    Ok(put)
}

#[cfg(test)]
mod tests {
    use channel::More;
    use datatype::{Pool, Predefined};

    use super::*;

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
            let made = (0..3).filter(|peer| queue.special.get(*peer).is_some());
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
