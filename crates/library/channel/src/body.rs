//! Copies of a message into and out of packets: by vectors or string moves, through the cache or
//! past it, forward or backward.

use datatype::{Buffer, Direction};

/// Longest body that is written backward for a peer that shares a cache, in bytes: that takes a
/// tenth less time; longer bodies are faster forward.
const BACKWARD_UP_TO: usize = 4 << 10;

/// The kind of stores with which the next body for a peer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyStores {
    /// Shortest body to write with non-temporal stores, in bytes. `usize::MAX`: the peer shares a
    /// cache. `usize::MAX - 1`: it does not, and the stores go through the cache nevertheless.
    non_temporal_from: usize,
}

impl BodyStores {
    /// Stores through the cache.
    pub(crate) const CACHED: BodyStores = BodyStores::non_temporal_from(usize::MAX);

    /// Non-temporal stores for bodies of at least `non_temporal_from` bytes.
    #[inline(always)]
    pub(crate) const fn non_temporal_from(non_temporal_from: usize) -> BodyStores {
        BodyStores { non_temporal_from }
    }

    /// The same kind with stores through the cache for bodies of every length.
    pub(crate) fn through_cache(self) -> BodyStores {
        BodyStores::non_temporal_from(self.non_temporal_from.max(usize::MAX - 1))
    }

    #[inline(always)]
    fn shares_cache(self) -> bool {
        self.non_temporal_from == usize::MAX
    }

    /// The direction in which the peer should copy the body out. A core that shares the writer's
    /// cache copies backward: a forward copy prefetches lines that the writer is about to write.
    #[inline(always)]
    pub fn copy_out(self) -> Direction {
        match self.shares_cache() {
            true => Direction::Backward,
            false => Direction::Forward,
        }
    }

    /// Writes the bytes of `message` from `position` on into the body of a packet.
    #[inline(always)]
    pub fn fill(self, message: &Buffer, position: usize, body: &mut [u8]) {
        if body.len() >= self.non_temporal_from {
            message.pack_past_cache(position, body);
        } else if self.shares_cache() && body.len() <= BACKWARD_UP_TO {
            message.hand_over(Direction::Backward, position, body);
        } else {
            message.hand_over(Direction::Forward, position, body);
        }
    }
}
