//! Words in shared memory that all ranks of a host may read and write: what they have measured of
//! the host together.
//!
//! A word is written whole, and bounds nothing: whatever another rank stores there, it changes a
//! choice between correct paths only.

use std::sync::Arc;

use crate::sync::{AtomicU64, Ordering};

/// The number of 64-bit words that the ranks of a host share: a page.
pub const HOST_WORDS: usize = 512;

/// The words of a host, zero at the start of a job.
pub(crate) type Words = [AtomicU64; HOST_WORDS];

/// A rank's access to the words that the ranks of its host share.
#[derive(Clone)]
pub struct HostWords {
    words: *const Words,
    /// The owner of the mapping, which stays mapped as long as this value exists.
    _memory: Arc<dyn Send + Sync>,
}

// SAFETY: the pointer leads to atomics, which stay as long as the value.
unsafe impl Send for HostWords {}
// SAFETY: as for `Send`.
unsafe impl Sync for HostWords {}

impl HostWords {
    /// # Safety
    /// `memory` keeps the words mapped.
    pub(crate) unsafe fn new(words: *const Words, memory: Arc<dyn Send + Sync>) -> HostWords {
        HostWords {
            words,
            _memory: memory,
        }
    }

    /// The words of a rank that shares them with no other.
    pub fn alone() -> HostWords {
        let words: Arc<Words> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
        // SAFETY: the value owns a share of the words.
        unsafe { HostWords::new(Arc::as_ptr(&words), words) }
    }

    /// The value of a word. The reader then also sees what the writer stored in other words before.
    ///
    /// # Panics
    /// If `at` is not less than [`HOST_WORDS`].
    #[inline]
    pub fn get(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    /// Replaces the bits of `mask` in a word by those of `value`.
    ///
    /// # Panics
    /// If `at` is not less than [`HOST_WORDS`].
    pub fn set(&self, at: usize, mask: u64, value: u64) {
        let word = self.word(at);
        let mut seen = word.load(Ordering::Relaxed);
        while let Err(now) = word.compare_exchange_weak(
            seen,
            seen & !mask | value & mask,
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            seen = now;
        }
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the words stay mapped as long as this value.
        unsafe { &(&*self.words)[at] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_writers_of_a_word_lose_nothing() {
        const LOW: u64 = u32::MAX as u64;
        let words = HostWords::alone();
        std::thread::scope(|scope| {
            for (mask, shift) in [(LOW, 0), (!LOW, 32)] {
                let words = words.clone();
                scope.spawn(move || (1..=1000).for_each(|at| words.set(7, mask, at << shift)));
            }
        });
        assert_eq!((words.get(7), words.get(8)), (1000 << 32 | 1000, 0));
    }
}
