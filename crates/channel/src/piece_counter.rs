//! One long message, moved by two: its receiver reads pieces of it while its sender writes others.
//!
//! Each takes the next piece that nobody has taken, by a counter that both see, so the one who has more time does more
//! and a sender who never looks costs nothing. A pair has one share in each direction, used by one message after the
//! other; the generation tells a late helper that its message is done.

use std::ops::Range;

use crate::sync::{AtomicU64, Ordering};

#[repr(C, align(128))]
#[derive(Default)]
pub struct PieceCounter {
    /// Generation (upper half) and the next piece to be taken.
    next: AtomicU64,
    /// Generation and how many pieces have been moved.
    moved: AtomicU64,
}

impl PieceCounter {
    /// The receiver begins a message; the answer is its generation. The one before must be complete.
    pub fn open(&self) -> u32 {
        let generation = ((self.next.load(Ordering::Relaxed) >> 32) as u32).wrapping_add(1);
        self.moved
            .store(u64::from(generation) << 32, Ordering::Relaxed);
        self.next
            .store(u64::from(generation) << 32, Ordering::Release);
        generation
    }

    /// It is used by the message of this generation.
    pub fn is_of(&self, generation: u32) -> bool {
        (self.next.load(Ordering::Acquire) >> 32) as u32 == generation
    }

    /// Takes the next of `pieces` pieces, and up to `most` in a row, if one is left and the message is still that one.
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

    /// So many pieces that were taken have been moved.
    pub fn moved(&self, pieces: u32) {
        self.moved.fetch_add(pieces.into(), Ordering::AcqRel);
    }

    /// All pieces have been moved.
    pub fn is_complete(&self, pieces: u32) -> bool {
        self.moved.load(Ordering::Acquire) as u32 == pieces
    }
}
