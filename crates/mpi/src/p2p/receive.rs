//! Starting receives, and meeting messages with them.

use channel::{Bulk, Channel, Channels};
use datatype::Buffer;

use super::{Body, Fetch, Message, Messages};
use crate::matching::Key;
use crate::packet::{Envelope, Kind, Offer};
use crate::request::{Operation, Receive, RequestId};
use crate::{Class, Result, Status};

/// How much of a message is fetched before packets are looked at again.
const FETCH_BYTES: usize = 1 << 20;
/// How much of it is held in between when the receiver's buffer is not in one piece.
const UNPACK_BYTES: usize = 64 << 10;

impl Messages {
    /// Starts a receive: takes the earliest unexpected message that fits, or waits for one.
    #[inline(always)]
    pub fn receive(&mut self, buffer: Buffer, key: Key) -> Result<RequestId> {
        let receive = Receive {
            buffer,
            key,
            announced: 0,
            arrived: 0,
        };
        let id = self.requests.add(Operation::Receive(receive))?;
        match self.unexpected.take(&key) {
            None => self.posted.post(key, id.0),
            Some((sent, message)) => self.meet_unexpected(id, sent, message),
        }
        Ok(id)
    }

    /// Receives a message that a probe has taken out (MPI 5.0 §3.8.2).
    pub fn receive_message(
        &mut self,
        buffer: Buffer,
        sent: Key,
        message: Message,
    ) -> Result<RequestId> {
        let receive = Receive {
            buffer,
            key: sent,
            announced: 0,
            arrived: 0,
        };
        let id = self.requests.add(Operation::Receive(receive))?;
        self.meet_unexpected(id, sent, message);
        Ok(id)
    }

    fn meet_unexpected(&mut self, id: RequestId, sent: Key, message: Message) {
        match message.body {
            Body::Here { bytes, sync } => {
                self.let_go(message.peer, bytes.len());
                if let Some(request) = sync {
                    self.queue_short(message.peer, Envelope::about(Kind::Finished, request), &[]);
                }
                self.deliver(id, sent, &bytes);
            }
            Body::Offered { request, offer } => self.accept(id, message.peer, sent, request, offer),
        }
    }

    /// A whole message has met its receive.
    #[inline(always)]
    pub(super) fn deliver(&mut self, id: RequestId, sent: Key, bytes: &[u8]) {
        let Some(receive) = self.requests.receive_mut(id) else {
            return;
        };
        receive.buffer.unpack(0, bytes);
        let status = received(&receive.buffer, sent, bytes.len());
        self.requests.complete(id, status);
    }

    /// An offer has met its receive: fetch it.
    pub(super) fn accept(
        &mut self,
        id: RequestId,
        peer: usize,
        sent: Key,
        request: u32,
        offer: Offer,
    ) {
        let Some(receive) = self.requests.receive_mut(id) else {
            return;
        };
        receive.key = sent;
        receive.announced = offer.len as usize;
        self.fetches.push_back(Fetch {
            peer,
            receive: id,
            sender: request,
            address: offer.address,
        });
    }

    /// Moves the next offered message. True if anything moved.
    #[inline]
    pub fn fetch(&mut self, channels: &mut Channels) -> Result<bool> {
        if self.fetches.is_empty() {
            Ok(false)
        } else {
            self.fetch_next(channels)
        }
    }

    #[inline(never)]
    fn fetch_next(&mut self, channels: &mut Channels) -> Result<bool> {
        let Some(fetch) = self.fetches.pop_front() else {
            return Ok(false);
        };
        let single_copy = self.limits.single_copy;
        let Some(receive) = self.requests.receive_mut(fetch.receive) else {
            return Ok(true);
        };
        let wanted = receive.announced.min(receive.buffer.len());
        let piece = (wanted - receive.arrived).min(FETCH_BYTES);
        let bulk = if piece == 0 {
            Bulk::Done
        } else if fetch.address == 0 || wanted < single_copy || !channels.can_read(fetch.peer) {
            Bulk::Refused
        } else {
            read_into(&receive.buffer, receive.arrived, piece, |position, room| {
                channels.read(fetch.peer, fetch.address + position as u64, room)
            })?
        };
        if bulk == Bulk::Refused {
            receive.arrived = 0;
            let body = fetch.receive.0.to_ne_bytes();
            self.queue_short(
                fetch.peer,
                Envelope::about(Kind::ClearToSend, fetch.sender),
                &body,
            );
            return Ok(true);
        }
        receive.arrived += piece;
        if receive.arrived < wanted {
            self.fetches.push_front(fetch);
        } else {
            let status = received(&receive.buffer, receive.key, receive.announced);
            self.queue_short(
                fetch.peer,
                Envelope::about(Kind::Finished, fetch.sender),
                &[],
            );
            self.requests.complete(fetch.receive, status);
        }
        Ok(true)
    }

    /// The next piece of a message that comes in packets.
    pub(super) fn take_piece(
        &mut self,
        id: RequestId,
        bytes: &[u8],
    ) -> std::result::Result<(), &'static str> {
        let Some(receive) = self.requests.receive_mut(id) else {
            return Err("a piece for a receive that is not there");
        };
        if bytes.len() > receive.announced - receive.arrived.min(receive.announced) {
            return Err("more bytes than it announced");
        }
        if receive.arrived < receive.buffer.len() {
            receive.buffer.unpack(receive.arrived, bytes);
        }
        receive.arrived += bytes.len();
        if receive.arrived == receive.announced {
            let status = received(&receive.buffer, receive.key, receive.announced);
            self.requests.complete(id, status);
        }
        Ok(())
    }

    /// Takes back a receive that has not been matched.
    pub(super) fn cancel_receive(&mut self, id: RequestId) {
        let Some(receive) = self.requests.receive_mut(id) else {
            return;
        };
        let key = receive.key;
        if self.posted.withdraw(&key, id.0) {
            self.requests.complete(
                id,
                Status {
                    cancelled: true,
                    ..Status::EMPTY
                },
            );
        }
    }
}

/// Reads bytes `position..position + len` of a message to where they belong in `buffer`.
fn read_into(
    buffer: &Buffer,
    position: usize,
    len: usize,
    mut read: impl FnMut(usize, &mut [u8]) -> channel::Result<Bulk>,
) -> Result<Bulk> {
    if let Some(answer) = buffer.with_dense_mut(position, len, |room| read(position, room)) {
        return Ok(answer?);
    }
    let mut room = vec![0; len.min(UNPACK_BYTES)];
    let mut done = 0;
    while done < len {
        let piece = room.len().min(len - done);
        if read(position + done, &mut room[..piece])? == Bulk::Refused {
            return Ok(Bulk::Refused);
        }
        done += buffer.unpack(position + done, &room[..piece]);
    }
    Ok(Bulk::Done)
}

/// The status of a receive; a message longer than the buffer is an error that the status carries.
#[inline(always)]
pub(super) fn received(buffer: &Buffer, sent: Key, len: usize) -> Status {
    let fits = len <= buffer.len();
    Status {
        source: sent.source,
        tag: sent.tag,
        error: if fits {
            Class::SUCCESS
        } else {
            Class::TRUNCATE
        },
        bytes: len.min(buffer.len()) as u64,
        dropped: len.saturating_sub(buffer.len()) as u64,
        cancelled: false,
    }
}
