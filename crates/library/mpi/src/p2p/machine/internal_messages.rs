//! Internal messages: a few bytes with which ranks agree on a fact, in memory of the library on
//! both sides.
//!
//! They need no receive: they stay among the unexpected messages until a task takes them, and their
//! arrival makes tasks due. Each piece fits a packet.

use channel::{Router, Transport};

use super::{Body, Found, Messages, Taken};
use crate::Result;
use crate::matching::Key;
use crate::packet::{Eager, Envelope};
use crate::request::{Operation, RequestId};

impl Messages {
    /// Sends a copy of `bytes`. The request completes when the transport has accepted all of it.
    pub(crate) fn send_owned(
        &mut self,
        router: &mut Router,
        peer: usize,
        key: Key,
        bytes: &[u8],
    ) -> Result<RequestId> {
        if let Some(error) = self.losses.error_of(peer) {
            return Err(error.clone());
        }
        let last = self.requests.add(Operation::NOBODYS)?;
        let whole = bytes.is_empty().then_some(bytes);
        let pieces = bytes.chunks(router.longest_packet(peer));
        let mut pieces = pieces.chain(whole).peekable();
        while let Some(piece) = pieces.next() {
            let completes = pieces.peek().is_none().then_some(last);
            let envelope = Envelope {
                kind: Eager::Whole.into(),
                key,
                token: 0,
            };
            self.send_queue
                .push_last(peer, envelope, piece.into(), completes);
        }
        self.flush(router)?;
        Ok(last)
    }

    /// Takes the next piece that has arrived with this envelope.
    pub(crate) fn take_owned(&mut self, key: &Key) -> Option<Box<[u8]>> {
        let (_, message) = self.unexpected.take(key)?;
        let Body::Here { bytes, .. } = message.body else {
            return None;
        };
        self.let_go(message.peer, bytes.len());
        Some(bytes.into())
    }

    /// Takes the next message that has arrived whole, or that its sender has announced.
    pub(crate) fn take_whole(&mut self, key: &Key) -> Option<Taken> {
        let (key, message) = self.unexpected.take(key)?;
        match message.body {
            Body::Here { bytes, .. } => {
                self.let_go(message.peer, bytes.len());
                Some(Taken::Here(message.peer, key.source, bytes.into()))
            }
            Body::Offered(_) => Some(Taken::Announced(Found { key, message })),
        }
    }
}
