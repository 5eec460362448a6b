//! Streams: announced messages that leave in pieces, because their receiver asked for packets. They
//! leave behind the queue of their peer: their order against other messages does not matter.

use std::collections::VecDeque;

use channel::{Put, Router, ShortPath, Transport};

use super::message_source::MessageSource;
use crate::Result;
use crate::packet::{Control, Rendezvous};
use crate::request::RequestId;

/// The announced messages that leave in pieces for one peer, in order.
#[derive(Default)]
pub(super) struct Streams {
    messages: VecDeque<Stream>,
}

struct Stream {
    request: RequestId,
    /// The number of the receiver's request for the message.
    receive: u32,
    position: usize,
}

impl Streams {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds the message of a send, for the receiver's request `receive`.
    pub(super) fn push(&mut self, request: RequestId, receive: u32) {
        self.messages.push_back(Stream {
            request,
            receive,
            position: 0,
        });
    }

    pub(super) fn clear(&mut self) {
        self.messages.clear();
    }

    /// Sends pieces of one message after the other, as far as the peer has room.
    pub(super) fn flush(
        &mut self,
        router: &mut Router,
        source: &mut impl MessageSource,
        peer: usize,
        moved: &mut bool,
    ) -> Result<()> {
        while let Some(stream) = self.messages.front_mut() {
            let Some(send) = source.send(stream.request) else {
                self.messages.pop_front();
                continue;
            };
            let left = send.buffer.len() - stream.position;
            let piece = left.min(router.piece(peer));
            let head = Control::about(Rendezvous::Data, stream.receive).encode();
            let stores = router.stores(peer, piece);
            let begun = stores.begin();
            let put = router.put(peer, head, piece, |room| {
                stores.fill(&send.buffer, stream.position, room)
            })?;
            router.stored((peer, piece), begun, put);
            if put == Put::Full {
                return Ok(());
            }
            *moved = true;
            stream.position += piece;
            if piece == left {
                let done = stream.request;
                self.messages.pop_front();
                source.sent(done, put);
            }
            if put == Put::AcceptedPollNow {
                return Ok(());
            }
        }
        Ok(())
    }
}
