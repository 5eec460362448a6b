//! The messages of a send queue, as their owner keeps them: the queue itself holds requests only.

use channel::{Put, Router};

use crate::Result;
use crate::matching::Key;
use crate::request::{RequestId, Send};

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
