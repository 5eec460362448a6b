//! Starting receives, and meeting messages with them.

use datatype::Buffer;

use super::{Body, Message, Messages};
use crate::matching::Key;
use crate::packet::{Envelope, Kind};
use crate::request::{Operation, Receive, RequestId};
use crate::{Class, Result, Status};

impl Messages {
    /// Starts a receive: takes the earliest unexpected message that fits, or waits for one.
    #[inline(always)]
    pub fn receive(&mut self, buffer: Buffer, key: Key) -> Result<RequestId> {
        let id = self.add_receive(buffer, key)?;
        if !self.unexpected.is_some() || !self.receive_unexpected(id, key) {
            self.posted.post(key, id.0);
        }
        Ok(id)
    }

    /// Takes the earliest unexpected message that fits; false if there is none.
    #[inline(never)]
    fn receive_unexpected(&mut self, id: RequestId, key: Key) -> bool {
        match self.unexpected.take(&key) {
            None => false,
            Some((sent, message)) => {
                self.meet_unexpected(id, sent, message);
                true
            }
        }
    }

    /// Receives a message that a probe has taken out (MPI 5.0 §3.8.2).
    pub fn receive_message(
        &mut self,
        buffer: Buffer,
        sent: Key,
        message: Message,
    ) -> Result<RequestId> {
        let id = self.add_receive(buffer, sent)?;
        self.meet_unexpected(id, sent, message);
        Ok(id)
    }

    #[inline(always)]
    fn add_receive(&mut self, buffer: Buffer, key: Key) -> Result<RequestId> {
        self.requests.add_with(|| {
            Operation::Receive(Receive {
                buffer,
                key,
                announced: 0,
                arrived: 0,
            })
        })
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
        self.met_otherwise(id, 2);
        self.requests.complete_receive(id, |receive| {
            receive.buffer.unpack(0, bytes);
            received(&receive.buffer, sent, bytes.len())
        });
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
            self.release(id);
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
        if self.revoke(id, key) {
            return;
        }
        if self.posted.withdraw(&key, id.0) {
            self.requests.complete(id, Status::CANCELLED);
        }
    }
}

/// The status of a receive; a message longer than the buffer is an error that the status carries.
#[inline(always)]
pub(super) fn received(buffer: &Buffer, sent: Key, len: usize) -> Status {
    let dropped = len.saturating_sub(buffer.len());
    let mut status = Status {
        source: sent.source,
        tag: sent.tag,
        error: Class::SUCCESS,
        bytes: len as u64,
        dropped: 0,
        cancelled: false,
    };
    if dropped > 0 {
        status.error = Class::TRUNCATE;
        status.bytes = buffer.len() as u64;
        status.dropped = dropped as u64;
    }
    status
}
