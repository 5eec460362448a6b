//! The interface by which a send queue reaches the messages that it sends: the queue itself holds
//! requests only.

use channel::{Put, Router};

use crate::Result;
use crate::matching::Key;
use crate::request::{RequestId, Send};

/// Gives a send queue access to the messages that it sends, for which it holds requests only.
pub(super) trait MessageSource {
    /// The send of a request; `None` if it is gone.
    fn send(&mut self, request: RequestId) -> Option<&mut Send>;
    /// The body of the announcement of a message, which may expose the message.
    fn announce(&mut self, router: &mut Router, peer: usize, request: RequestId)
    -> Result<Vec<u8>>;
    /// Records that the transport has accepted the last packet of a message, with the result `put`.
    /// The send is complete once that packet has left.
    fn sent(&mut self, request: RequestId, put: Put);
    /// Records that the transport has accepted the last packet of an operation of the library, with
    /// the result `put`.
    fn left(&mut self, request: RequestId, put: Put);
    /// Records that the first packet of a message has left for a peer that has announced buffers.
    /// It is among the first `sent` packets to that peer.
    fn departed(&mut self, peer: usize, key: &Key, sent: u64);
}
