//! Packets that found no room in the channel, and long messages on their way in pieces.

use std::collections::VecDeque;

use channel::{Channel, Channels, Put};

use super::receive::Coming;
use super::send::{fill, head};
use super::{Messages, ready_to_receive};
use crate::packet::{Envelope, Kind};
use crate::request::RequestId;
use crate::{Result, Status};

/// What is special about a peer.
#[derive(Default)]
pub struct Peer {
    /// Packets in the order in which they must leave.
    queue: VecDeque<Outgoing>,
    /// Messages that leave in pieces, behind the queue: their order against messages of their own does not matter.
    streams: VecDeque<Stream>,
    /// Why messages to it are more than put, by [`Mark`].
    marks: u8,
    /// Unexpected bytes of the peer that we hold, and whether we told it to stop.
    pub held: usize,
    pub told: bool,
    /// A message of the peer that is coming in pieces.
    pub(super) coming: Option<Coming>,
    /// Where the peer wants messages, once it has told any ahead.
    pub(super) sender: Option<Box<ready_to_receive::Sender>>,
}

/// What is special about messages to a peer.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Mark {
    /// The peer has no room for our unexpected bytes: offer everything.
    HeadersOnly = 1,
    /// It tells where it wants messages, before they are offered.
    Tells = 2,
}

enum Outgoing {
    /// A short packet with a body of its own.
    Short { envelope: Envelope, body: Box<[u8]> },
    /// An eager message still in the user's buffer, from `position` on.
    Eager { request: RequestId, position: usize },
}

struct Stream {
    request: RequestId,
    /// The receiver's request.
    receive: u32,
    position: usize,
}

impl Peer {
    #[inline(always)]
    pub fn is_clear(&self) -> bool {
        self.queue.is_empty() && self.marks & Mark::HeadersOnly as u8 == 0
    }

    pub fn is(&self, mark: Mark) -> bool {
        self.marks & mark as u8 != 0
    }

    pub fn mark(&mut self, mark: Mark, on: bool) {
        self.marks = self.marks & !(mark as u8) | if on { mark as u8 } else { 0 };
    }

    /// And nothing is known of it beyond that.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.queue.is_empty() && self.marks == 0
    }

    fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.streams.is_empty()
    }
}

impl Messages {
    /// Nothing stands in the way of a packet to this peer.
    #[inline(always)]
    pub(super) fn is_clear(&self, peer: usize) -> bool {
        self.peers[peer].as_ref().is_none_or(|peer| peer.is_clear())
    }

    /// The same, and the peer has not told where it wants messages.
    #[inline(always)]
    pub(super) fn is_plain(&self, peer: usize) -> bool {
        self.peers[peer].as_ref().is_none_or(|peer| peer.is_plain())
    }

    /// The peer has told where it wants messages.
    pub(super) fn is_tracked(&self, peer: usize) -> bool {
        let peer = self.peers[peer].as_ref();
        peer.is_some_and(|peer| peer.is(Mark::Tells))
    }

    pub(super) fn peer(&mut self, peer: usize) -> &mut Peer {
        self.peers[peer].get_or_insert_default()
    }

    fn queue(&mut self, peer: usize, outgoing: Outgoing) {
        if self.peer(peer).is_idle() {
            self.waiting.push_back(peer);
        }
        self.peer(peer).queue.push_back(outgoing);
    }

    /// Queues a short packet; it leaves with the next progress, after all that was queued before.
    pub(super) fn queue_short(&mut self, peer: usize, envelope: Envelope, body: &[u8]) {
        self.queue(
            peer,
            Outgoing::Short {
                envelope,
                body: body.into(),
            },
        );
    }

    pub(super) fn queue_eager(&mut self, peer: usize, request: RequestId) {
        let position = 0;
        self.queue(peer, Outgoing::Eager { request, position });
    }

    pub(super) fn queue_stream(&mut self, peer: usize, request: RequestId, receive: u32) {
        if self.peer(peer).is_idle() {
            self.waiting.push_back(peer);
        }
        self.peer(peer).streams.push_back(Stream {
            request,
            receive,
            position: 0,
        });
    }

    /// Takes a queued eager message back before anything of it has left.
    pub(super) fn unqueue_eager(&mut self, peer: usize, request: RequestId) -> bool {
        let queue = &mut self.peer(peer).queue;
        let is_it = |outgoing: &Outgoing| matches!(outgoing, Outgoing::Eager { request: queued, position: 0 } if *queued == request);
        let found = queue.iter().position(is_it);
        found.map(|at| queue.remove(at)).is_some()
    }

    /// Sends what there is room for. True if anything left.
    #[inline]
    pub fn flush(&mut self, channels: &mut Channels) -> Result<bool> {
        if self.waiting.is_empty() {
            Ok(false)
        } else {
            self.flush_waiting(channels)
        }
    }

    #[inline(never)]
    fn flush_waiting(&mut self, channels: &mut Channels) -> Result<bool> {
        let mut moved = false;
        for _ in 0..self.waiting.len() {
            let Some(at) = self.waiting.pop_front() else {
                break;
            };
            let Some(mut peer) = self.peers[at].take() else {
                continue;
            };
            let sent = self.flush_peer(channels, at, &mut peer);
            if !peer.is_idle() {
                self.waiting.push_back(at);
            }
            self.peers[at] = Some(peer);
            moved |= sent?;
        }
        Ok(moved)
    }

    /// At most a lap: then it is time to hear whether the peer has enough. `peer` is out of the table meanwhile, so nothing
    /// called from here may queue for it.
    fn flush_peer(&mut self, channels: &mut Channels, at: usize, peer: &mut Peer) -> Result<bool> {
        let mut moved = false;
        while let Some(next) = peer.queue.front_mut() {
            let put = match next {
                Outgoing::Short { envelope, body } => {
                    let put = channels.put(at, envelope.encode(), body.len(), |room| {
                        room.copy_from_slice(body)
                    })?;
                    // The end of a message of the library's own.
                    if put != Put::Full && envelope.kind == Kind::Eager && envelope.token != 0 {
                        self.requests
                            .complete(RequestId(envelope.token), Status::EMPTY);
                    }
                    put
                }
                Outgoing::Eager { request, position } => {
                    let request = *request;
                    let Some(send) = self.requests.send_mut(request) else {
                        peer.queue.pop_front();
                        continue;
                    };
                    if *position == 0 && peer.marks & Mark::HeadersOnly as u8 != 0 {
                        let envelope = Envelope {
                            kind: Kind::RequestToSend,
                            ..send.envelope
                        };
                        let buffer = send.buffer.clone();
                        let offer = self.offer(channels, at, request, &buffer)?.encode();
                        let put = channels.put(at, envelope.encode(), offer.len(), |room| {
                            room.copy_from_slice(&offer);
                        })?;
                        // If there is no room, the peer may have some for the message itself by the time there is.
                        if put != Put::Full
                            && let Some(send) = self.requests.send_mut(request)
                        {
                            send.envelope.kind = Kind::RequestToSend;
                        }
                        put
                    } else if send.envelope.kind == Kind::EagerPieces {
                        let (len, mut envelope) = (send.buffer.len(), send.envelope);
                        match *position {
                            0 => envelope.token = len as u32,
                            _ => envelope.kind = Kind::Piece,
                        }
                        let left = len - *position;
                        let piece = left.min(channels.piece(at));
                        let past = channels.past_cache(at, piece);
                        let put = channels.put(at, head(&envelope, past), piece, |room| {
                            fill(past, &send.buffer, *position, room)
                        })?;
                        if put != Put::Full && piece < left {
                            *position += piece;
                            moved = true;
                            match put {
                                Put::AcceptedPollNow => return Ok(moved),
                                _ => continue,
                            }
                        }
                        if put != Put::Full {
                            self.release(request);
                            self.requests.complete(request, Status::EMPTY);
                        }
                        put
                    } else {
                        let buffer = &send.buffer;
                        let past = channels.past_cache(at, buffer.len());
                        let put =
                            channels.put(at, head(&send.envelope, past), buffer.len(), |room| {
                                fill(past, buffer, 0, room)
                            })?;
                        if put != Put::Full && send.envelope.kind == Kind::Eager {
                            // It may have been about to be offered.
                            self.release(request);
                            self.requests.complete(request, Status::EMPTY);
                        }
                        put
                    }
                }
            };
            if put == Put::Full {
                return Ok(moved);
            }
            peer.queue.pop_front();
            moved = true;
            if put == Put::AcceptedPollNow {
                return Ok(moved);
            }
        }
        while let Some(stream) = peer.streams.front_mut() {
            let Some(send) = self.requests.send_mut(stream.request) else {
                peer.streams.pop_front();
                continue;
            };
            let left = send.buffer.len() - stream.position;
            let piece = left.min(channels.piece(at));
            let envelope = Envelope::about(Kind::Data, stream.receive);
            let past = channels.past_cache(at, piece);
            let put = channels.put(at, envelope.encode(), piece, |room| {
                fill(past, &send.buffer, stream.position, room)
            })?;
            if put == Put::Full {
                return Ok(moved);
            }
            moved = true;
            stream.position += piece;
            if piece == left {
                let done = stream.request;
                peer.streams.pop_front();
                self.release(done);
                self.requests.complete(done, Status::EMPTY);
            }
            if put == Put::AcceptedPollNow {
                return Ok(moved);
            }
        }
        Ok(moved)
    }
}
