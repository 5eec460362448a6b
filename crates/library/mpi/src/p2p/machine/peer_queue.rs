//! The packets that wait for one peer, and its states.
//!
//! Invariants:
//! - packets leave in the order in which they were queued;
//! - a message in eager pieces leaves with nothing between its pieces.

use std::collections::VecDeque;

use channel::{Head, NotifiedWrite, Put, Router, ShortPath, Transport};

use super::message_source::MessageSource;
use super::streams::Streams;
use crate::Result;
use crate::matching::Key;
use crate::packet::{Eager, Envelope, Kind, ReadyToReceive, Rendezvous, copied_out, in_runs};
use crate::request::RequestId;

/// The packets that wait for one peer.
pub(super) struct PeerQueue {
    /// The length in bytes below which a message is sent eagerly in one packet.
    pub(super) one_put: u32,
    /// The packets of the queue in the order in which they must leave.
    pub(super) queue: VecDeque<Outgoing>,
    /// Announced messages that leave in pieces, behind the queue.
    pub(super) streams: Streams,
    pub(super) states: PeerStates,
}

/// A reason why a message to a peer takes more than one put.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum PeerState {
    /// The peer has no room for unexpected bytes, so every message to it must be announced.
    HeadersOnly = 1,
    /// The peer has announced buffers.
    HasRtrs = 2,
    /// Announcements for the peer have been gathered and have not left.
    Gathers = 4,
    /// The peer cannot be reached any more.
    Lost = 8,
}

/// The states that are set for a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PeerStates(u8);

impl PeerStates {
    pub(super) fn has(self, state: PeerState) -> bool {
        self.0 & state as u8 != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn set(&mut self, state: PeerState, on: bool) {
        self.0 = self.0 & !(state as u8) | if on { state as u8 } else { 0 };
    }
}

/// A packet, or a message of which packets still have to leave.
pub(super) enum Outgoing {
    /// A packet with a body of its own, and the request that is complete when the packet has left.
    Packet {
        head: Head,
        body: Box<[u8]>,
        completes: Option<RequestId>,
    },
    /// An eager message in the user's buffer, from `position` on.
    Message { request: RequestId, position: usize },
}

/// The reason why no more of a queue was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flushed {
    /// The peer has no room for another packet.
    Full,
    /// This rank should poll before it sends more.
    PollNow,
    /// The queue of the peer is empty.
    Empty,
}

impl PeerQueue {
    /// A queue with nothing in it.
    pub(super) fn idle(one_put: u32) -> PeerQueue {
        PeerQueue {
            one_put,
            queue: VecDeque::new(),
            streams: Streams::default(),
            states: PeerStates::default(),
        }
    }

    /// True if no packet is queued and the peer has room for unexpected bytes.
    #[inline(always)]
    pub(super) fn is_clear(&self) -> bool {
        self.queue.is_empty() && !self.states.has(PeerState::HeadersOnly)
    }

    /// True if nothing waits to be sent to the peer.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.streams.is_empty() && !self.states.has(PeerState::Gathers)
    }

    /// Removes a queued message. False: part of it has left, or it was not queued.
    pub(super) fn withdraw(&mut self, request: RequestId) -> bool {
        let is_it = |outgoing: &Outgoing| matches!(outgoing, Outgoing::Message { request: queued, position: 0 } if *queued == request);
        let found = self.queue.iter().position(is_it);
        found.and_then(|at| self.queue.remove(at)).is_some()
    }
}

impl PeerQueue {
    /// Sends at most as many packets as fill the ring once. Then this rank polls, because the peer
    /// may have asked it to stop.
    pub(super) fn flush(
        &mut self,
        router: &mut Router,
        source: &mut impl MessageSource,
        peer: usize,
        moved: &mut bool,
    ) -> Result<()> {
        match self.flush_queue(router, source, peer, moved)? {
            Flushed::Empty => self.streams.flush(router, source, peer, moved),
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
        let headers_only = self.states.has(PeerState::HeadersOnly);
        let is_tracked = self.states.has(PeerState::HasRtrs);
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
}

impl Outgoing {
    /// The envelope of the message whose first packet this is. `None`: it is no first packet of a
    /// message.
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
    // If the announcement finds no room now, the peer may have room for the message itself later.
    if put != Put::Full {
        send.envelope.kind = kind;
    }
    Ok(put)
}

/// Sends the next piece of an eager message. True: it was the last piece.
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
    let head = match *position {
        0 => in_runs(head, send.runs),
        _ => head,
    };
    let begun = stores.begin();
    let put = router.put(peer, head, piece, |room| {
        stores.fill(&send.buffer, *position, room)
    })?;
    router.stored((peer, piece), begun, put);
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
    let begun = stores.begin();
    let put = router.put(peer, head, buffer.len(), |room| {
        stores.fill(buffer, 0, room)
    })?;
    router.stored((peer, buffer.len()), begun, put);
    if put != Put::Full && envelope.kind == Kind::Eager(Eager::Whole) {
        source.sent(request, put);
    }
    Ok(put)
}
