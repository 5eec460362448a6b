//! Messages of the library's own: a few bytes that belong to it on both sides, for ranks that agree on something.
//!
//! They need no receive: they wait among the unexpected messages until somebody takes them, and wake tasks when they
//! come. Each piece fits a packet.

use channel::{Router, Transport};

use super::{Body, Messages};
use crate::Result;
use crate::matching::Key;
use crate::packet::{Eager, Envelope};
use crate::request::{Operation, RequestId};

impl Messages {
    /// Sends a copy of `bytes`; the request completes when the channel has taken all of it.
    pub fn send_owned(
        &mut self,
        router: &mut Router,
        peer: usize,
        key: Key,
        bytes: &[u8],
    ) -> Result<RequestId> {
        let last = self.requests.add(Operation::NOBODYS)?;
        let mut pieces = bytes.chunks(router.longest_packet(peer)).peekable();
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

    /// The next piece that has come.
    pub fn take_owned(&mut self, key: &Key) -> Option<Box<[u8]>> {
        let (_, message) = self.unexpected.take(key)?;
        let Body::Here { bytes, .. } = message.body else {
            return None;
        };
        self.let_go(message.peer, bytes.len());
        Some(bytes.into())
    }
}
