//! The piece counter of a cooperative copy: the receiver of one long message reads pieces of it
//! while the sender writes other pieces.
//!
//! Each side claims the next unclaimed piece from a counter in shared memory. So the side with more
//! time moves more pieces, and a sender that never polls does not delay the receiver. A pair of
//! ranks has one counter in each direction, which its messages use one after the other. By the
//! generation a late helper finds that its message is complete.

use std::ops::Range;

use crate::sync::{AtomicU64, Ordering};

/// The state of a cooperative copy that sender and receiver share.
#[repr(C, align(128))]
#[derive(Default)]
pub struct PieceCounter {
    /// The generation in the upper half, the next unclaimed piece in the lower.
    next: AtomicU64,
    /// The generation in the upper half, the number of pieces moved in the lower.
    moved: AtomicU64,
}

impl PieceCounter {
    /// Starts the copy of a message, called by its receiver, and returns the message's generation.
    /// The copy of the previous message must be complete.
    pub fn open(&self) -> u32 {
        let generation = ((self.next.load(Ordering::Relaxed) >> 32) as u32).wrapping_add(1);
        self.moved
            .store(u64::from(generation) << 32, Ordering::Relaxed);
        self.next
            .store(u64::from(generation) << 32, Ordering::Release);
        generation
    }

    /// True if the counter belongs to the message of this generation.
    pub fn is_of(&self, generation: u32) -> bool {
        (self.next.load(Ordering::Acquire) >> 32) as u32 == generation
    }

    /// Claims the next of the message's `pieces` pieces, up to `most` consecutive ones. `None`: no
    /// piece is left, or the message of this generation is complete.
    pub fn claim(&self, generation: u32, pieces: u32, most: u32) -> Option<Range<u32>> {
        let mut seen = self.next.load(Ordering::Acquire);
        loop {
            let piece = seen as u32;
            if (seen >> 32) as u32 != generation || piece >= pieces {
                return None;
            }
            let run = most.min(pieces - piece);
            match self.next.compare_exchange_weak(
                seen,
                seen + u64::from(run),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(piece..piece + run),
                Err(now) => seen = now,
            }
        }
    }

    /// Records that `pieces` claimed pieces have been moved.
    pub fn moved(&self, pieces: u32) {
        self.moved.fetch_add(pieces.into(), Ordering::AcqRel);
    }

    /// True if all of the message's `pieces` pieces have been moved.
    pub fn is_complete(&self, pieces: u32) -> bool {
        self.moved.load(Ordering::Acquire) as u32 == pieces
    }
}
