//! Registration of the messages for which a call waits without a request: messages of the library,
//! and probed ones.

use crate::matching::Key;
use crate::rank::Rank;

/// A wait for a message without a request. It ends when it is dropped.
///
/// Invariant: whoever waits for a message has a request or an `Awaited`, so that a peer that no
/// network reaches is noticed, even if nothing was ever sent to it.
pub(crate) struct Awaited<'a> {
    rank: &'a Rank,
    key: Key,
}

impl<'a> Awaited<'a> {
    /// Begins the wait for the next message with this envelope. Must be called without the rank's
    /// lock.
    pub(crate) fn new(rank: &'a Rank, key: Key) -> Awaited<'a> {
        rank.lock().engine.messages.awaited.push(key);
        Awaited { rank, key }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let awaited = &mut self.rank.lock().engine.messages.awaited;
        if let Some(at) = awaited.iter().position(|key| *key == self.key) {
            awaited.swap_remove(at);
        }
    }
}
