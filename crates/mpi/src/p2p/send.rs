//! Starting sends.

use channel::{Channel, Channels, Head, Put};
use datatype::{Buffer, Direction};

use super::send_queue::Mark;
use super::{Messages, Mode};
use crate::Result;
use crate::matching::Key;
use crate::packet::{Envelope, Kind};
use crate::request::{Operation, RequestId, Send};

/// Messages from this size on may be written past the cache.
const NOT_SHORT: usize = 512;
/// From where on a message goes past the cache if the peer shares it: never.
const NEAR: usize = usize::MAX;
/// Bodies up to this long are written backward where the peer shares a cache, which takes a tenth of the time less; longer
/// ones go faster forward.
const AT_ONCE: usize = 4 << 10;

impl Messages {
    /// Starts a send. The answer is `requests.done()` if it was complete at once.
    #[inline(always)]
    pub fn send(
        &mut self,
        channels: &mut Channels,
        mode: Mode,
        buffer: &Buffer,
        peer: usize,
        key: Key,
    ) -> Result<RequestId> {
        let len = buffer.len();
        if len <= self.limits.whole && mode != Mode::Synchronous && self.is_plain(peer) {
            let put = self.put_eager(channels, buffer, peer, key)?;
            match put {
                Put::Accepted => return Ok(self.requests.done()),
                Put::AcceptedPollNow => {
                    self.listen(channels)?;
                    return Ok(self.requests.done());
                }
                Put::Full => {}
            }
        }
        self.send_otherwise(channels, mode, buffer, peer, key)
    }

    /// Puts a whole message that asks for no answer.
    #[inline(always)]
    pub(super) fn put_eager(
        &self,
        channels: &mut Channels,
        buffer: &Buffer,
        peer: usize,
        key: Key,
    ) -> Result<Put> {
        let envelope = Envelope {
            kind: Kind::Eager,
            key,
            token: 0,
        };
        if buffer.len() >= NOT_SHORT {
            return put_long(channels, &envelope, buffer, peer);
        }
        Ok(channels.put(
            peer,
            envelope.encode(),
            buffer.len(),
            #[inline(always)]
            |room| {
                buffer.pack(0, room);
            },
        )?)
    }

    /// A program may send for long without a call that makes progress; what its peers have to say must reach it.
    #[cold]
    #[inline(never)]
    pub(super) fn listen(&mut self, channels: &mut Channels) -> Result<()> {
        if self.round(channels)?
            && let Some(shm) = channels.shm()
        {
            // Another thread of this rank may sleep for what has just come.
            shm.bell().ring();
        }
        Ok(())
    }

    /// Whatever is not a short message with room before it.
    #[inline(never)]
    fn send_otherwise(
        &mut self,
        channels: &mut Channels,
        mode: Mode,
        buffer: &Buffer,
        peer: usize,
        key: Key,
    ) -> Result<RequestId> {
        let is_tracked = self.is_tracked(peer);
        if is_tracked && let Some(id) = self.send_tracked(channels, mode, buffer, peer, key)? {
            return Ok(id);
        }
        let limit = match mode == Mode::Synchronous || channels.by_device(peer) {
            true => self.limits.whole,
            false => self.limits.eager,
        };
        let offered = buffer.len() > limit || self.peer(peer).is(Mark::HeadersOnly);
        let kind = match (offered, mode) {
            (true, _) => Kind::RequestToSend,
            (false, Mode::Synchronous) => Kind::EagerSync,
            (false, _) if buffer.len() > self.limits.whole => Kind::EagerPieces,
            (false, _) => Kind::Eager,
        };
        let send = Send {
            buffer: buffer.clone(),
            peer,
            envelope: Envelope {
                kind,
                key,
                token: 0,
            },
            streaming: false,
            buffered: 0,
            cancelling: false,
        };
        let id = self.requests.add(Operation::Send(Box::new(send)))?;
        let Some(send) = self.requests.send_mut(id) else {
            unreachable!("added above")
        };
        send.envelope.token = id.0;
        let envelope = send.envelope;
        if offered {
            let offer = self.offer(channels, peer, id, buffer)?;
            self.queue_short(peer, envelope, &offer.encode());
        } else {
            self.queue_eager(peer, id);
        }
        self.flush(channels)?;
        if is_tracked {
            self.has_left(channels, peer, &key);
        }
        if !self.is_clear(peer) {
            self.listen(channels)?;
        }
        Ok(id)
    }

    /// Begins to take a message back (MPI 5.0 §3.8.4). Whether that worked shows in its status when it completes.
    pub(super) fn cancel_send(&mut self, channels: &mut Channels, id: RequestId) -> Result<()> {
        let Some(send) = self.requests.send_mut(id) else {
            return Ok(());
        };
        if send.streaming || send.cancelling {
            return Ok(());
        }
        send.cancelling = true;
        let (peer, envelope) = (send.peer, send.envelope);
        if self.unqueue_eager(peer, id) {
            self.requests.complete(id, crate::Status::CANCELLED);
            return Ok(());
        }
        self.queue_short(
            peer,
            Envelope {
                kind: Kind::Cancel,
                ..envelope
            },
            &[],
        );
        self.flush(channels)?;
        Ok(())
    }
}

/// A whole message that is long enough to ask how it is best written.
#[inline(never)]
fn put_long(
    channels: &mut Channels,
    envelope: &Envelope,
    buffer: &Buffer,
    peer: usize,
) -> Result<Put> {
    let past = channels.past_cache(peer, buffer.len());
    Ok(channels.put(
        peer,
        head(envelope, past),
        buffer.len(),
        #[inline(always)]
        |room| fill(past, buffer, 0, room),
    )?)
}

/// The head of a packet whose body [`fill`] writes.
#[inline(always)]
pub(super) fn head(envelope: &Envelope, past_cache: usize) -> Head {
    match past_cache {
        NEAR => envelope.encode_near(),
        _ => envelope.encode(),
    }
}

/// Writes the bytes of a message from `position` on into a packet. From `past_cache` on they go past the cache.
#[inline(always)]
pub(super) fn fill(past_cache: usize, buffer: &Buffer, position: usize, room: &mut [u8]) {
    if room.len() >= past_cache {
        buffer.pack_past_cache(position, room);
    } else if past_cache == NEAR && room.len() <= AT_ONCE {
        buffer.pack_in(Direction::Backward, position, room);
    } else {
        buffer.pack(position, room);
    }
}
