//! One entry of the table in which a rank shows the memory that it exposes to the ranks of its
//! host.
//!
//! The owner alone writes. A key names an entry and its generation; a reader gets the words of this
//! generation or nothing. So a key that is made up, or that outlives its exposure, leads nowhere.

use crate::sync::{AtomicU64, Ordering};

/// An entry in shared memory, which is zero at first. It has a cache line to itself, so that a
/// reader of one entry is not disturbed by changes of another.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct ExposedEntry {
    /// Zero while nothing is exposed. Every exposure has a new one.
    generation: AtomicU64,
    words: [AtomicU64; 2],
}

impl ExposedEntry {
    /// The owner exposes what `words` describe, by an entry that is closed.
    pub(crate) fn open(&self, generation: u64, words: [u64; 2]) {
        // Release: a reader that gets one of these words sees that the entry was closed before.
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Release);
        }
        self.generation.store(generation, Ordering::Release);
    }

    /// The owner ends the exposure.
    pub(crate) fn close(&self) {
        self.generation.store(0, Ordering::Release);
    }

    /// The words of the exposure with this generation, if it has not ended.
    pub(crate) fn find(&self, generation: u64) -> Option<[u64; 2]> {
        if self.generation.load(Ordering::Acquire) != generation {
            return None;
        }
        let words = [0, 1].map(|at: usize| self.words[at].load(Ordering::Acquire));
        self.is_open(generation).then_some(words)
    }

    /// The exposure with this generation has not ended.
    pub(crate) fn is_open(&self, generation: u64) -> bool {
        generation != 0 && self.generation.load(Ordering::Acquire) == generation
    }
}
