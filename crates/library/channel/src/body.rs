//! Copies of a message into and out of packets: by vectors or string moves, through the cache or
//! past it, forward or backward.

use datatype::{Buffer, Direction, HANDED_OVER_BY_VECTORS, HandOver};

use crate::string_moves::Next;

/// Longest body that is written backward for a peer that shares a cache, in bytes: that takes a
/// tenth less time; longer bodies are faster forward.
const BACKWARD_UP_TO: usize = 4 << 10;

/// Bytes of a long vector that are copied out by one copy: as many as vectors move, in the
/// direction that the caches prefer.
const COPIED_OUT: usize = 32 << 10;

/// Longest body of which all kinds of stores through the cache are alike: none is compared with
/// another, so [`BodyStores::begin`] returns `None`.
pub const ALIKE_UP_TO: usize = HANDED_OVER_BY_VECTORS;

/// The kind of stores with which the next body for a peer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyStores {
    /// Shortest body to write with non-temporal stores, in bytes, an even number. The greatest
    /// values have no such stores: bit [`NEAR`] tells that the peer shares a cache, bit [`STRINGS`]
    /// that string moves write long bodies, bit [`USUAL`] that no comparison needs the time of the
    /// body. One word, because short messages pass it in a register.
    non_temporal_from: usize,
}

const NEAR: usize = 1 << 0;
const STRINGS: usize = 1 << 1;
const USUAL: usize = 1 << 2;
/// The least of the values that stand for stores through the cache.
const THROUGH_CACHE: usize = usize::MAX - NEAR - STRINGS - USUAL;

impl BodyStores {
    /// Stores through the cache.
    pub(crate) const CACHED: BodyStores =
        BodyStores::non_temporal_from(THROUGH_CACHE | NEAR | STRINGS | USUAL);

    /// Stores through the cache, forward.
    pub(crate) const FORWARD: BodyStores =
        BodyStores::non_temporal_from(THROUGH_CACHE | STRINGS | USUAL);

    /// Non-temporal stores for bodies of at least `non_temporal_from` bytes.
    #[inline(always)]
    pub(crate) const fn non_temporal_from(non_temporal_from: usize) -> BodyStores {
        BodyStores { non_temporal_from }
    }

    /// The stores of a long body, with string moves or vectors unless they are non-temporal.
    pub(crate) fn long(self, next: Next) -> BodyStores {
        if self.non_temporal_from < THROUGH_CACHE {
            return self;
        }
        let (by_strings, without) = match next {
            Next::Chosen { by_strings } => (by_strings, 0),
            Next::Compared { by_strings } => (by_strings, USUAL),
        };
        let without = without | if by_strings { 0 } else { STRINGS };
        BodyStores::non_temporal_from(self.non_temporal_from & !without)
    }

    /// The present time if a comparison needs the time of the body.
    #[inline(always)]
    pub fn begin(self) -> Option<u64> {
        match self.non_temporal_from & USUAL == 0 && self.non_temporal_from >= THROUGH_CACHE {
            true => Some(crate::now()),
            false => None,
        }
    }

    /// These stores, but through the cache for bodies of every length.
    pub(crate) fn through_cache(self) -> BodyStores {
        BodyStores::non_temporal_from(self.non_temporal_from.max(Self::FORWARD.non_temporal_from))
    }

    #[inline(always)]
    fn shares_cache(self) -> bool {
        self.non_temporal_from & NEAR != 0
    }

    /// The copy of a body that goes through the cache.
    #[inline(always)]
    fn hand_over(self, direction: Direction) -> HandOver {
        HandOver {
            direction,
            by_strings: self.non_temporal_from & STRINGS != 0
                || self.non_temporal_from < THROUGH_CACHE,
        }
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

    /// Copies a long vector of a peer to `to`.
    #[inline(never)]
    pub(crate) fn copy_long_out(self, to: &Buffer, vector: &[u8]) {
        for (at, piece) in vector.chunks(COPIED_OUT).enumerate() {
            to.unpack_in(self.copy_out(), at * COPIED_OUT, piece);
        }
    }

    /// Writes the bytes of `message` from `position` on into the body of a packet.
    #[inline(always)]
    pub fn fill(self, message: &Buffer, position: usize, body: &mut [u8]) {
        if body.len() >= self.non_temporal_from {
            message.pack_past_cache(position, body);
        } else if self.shares_cache() && body.len() <= BACKWARD_UP_TO {
            message.hand_over(self.hand_over(Direction::Backward), position, body);
        } else {
            message.hand_over(self.hand_over(Direction::Forward), position, body);
        }
    }
}
