//! One entry of a table in shared memory by which a rank exposes memory to the ranks of its host.
//!
//! Only the owner writes, but for the claim. A remote key names an entry and a generation; a reader
//! gets the words of this generation or nothing. So a forged key, or one that has outlived its
//! exposure, gives no access.
//!
//! An entry can be *shared*: its owner copies the exposed bytes to memory of its own, from the
//! front, until a reader claims all that is left (`claim`).

use crate::claim::Claim;
use crate::sync::{AtomicU64, Ordering};

/// The number of words by which a peer finds exposed memory.
pub(crate) const WORDS: usize = 3;

/// An entry in shared memory, which is zero at first. It has a cache line of its own, so that
/// changes of other entries do not disturb its readers.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct ExposedEntry {
    /// The generation of the exposure; each exposure has a new one. Zero: nothing is exposed.
    generation: AtomicU64,
    words: [AtomicU64; WORDS],
    /// The address of the owner's copy in the owner's process, once the owner copies.
    copy: AtomicU64,
    claim: Claim,
}

impl ExposedEntry {
    /// Exposes the memory that `words` describe, in this entry of the caller, which must be closed.
    pub(crate) fn open(&self, generation: u64, words: [u64; WORDS]) {
        // Release: a reader that gets one of these words also sees that the entry was closed
        // before.
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Release);
        }
        self.claim.open(generation);
        self.generation.store(generation, Ordering::Release);
    }

    /// Sets the address of the copy to which the owner copies the exposed bytes. Only the owner
    /// calls this, before the first [`advance`](ExposedEntry::advance).
    pub(crate) fn copy_to(&self, address: u64) {
        self.copy.store(address, Ordering::Relaxed);
    }

    /// Records that the copy contains the first `copied` bytes. Only the owner calls this. False: a
    /// reader has claimed them, or those from an earlier byte on.
    pub(crate) fn advance(&self, copied: u32) -> bool {
        self.claim.advance(copied)
    }

    /// True if a reader has claimed all bytes that were not copied. Only the owner calls this.
    pub(crate) fn is_claimed(&self) -> bool {
        self.claim.is_taken()
    }

    /// Claims the bytes of this exposure that are not copied, as its reader. False: the exposure
    /// has ended, or its bytes are claimed.
    pub(crate) fn claim(&self, generation: u64) -> bool {
        self.is_open(generation) && self.claim.take(generation)
    }

    /// The address of the copy, and the number of bytes in it that the reader who has claimed the
    /// rest may read. Zero bytes: this exposure is not claimed, or nothing was copied.
    pub(crate) fn copied(&self, generation: u64) -> (u64, u32) {
        let copied = self.claim.copied(generation);
        (self.copy.load(Ordering::Relaxed), copied)
    }

    /// Ends the exposure of the memory. Only the owner calls this.
    pub(crate) fn close(&self) {
        self.generation.store(0, Ordering::Release);
    }

    /// The words that [`open`](ExposedEntry::open) has stored with this generation. `None`: that
    /// exposure has ended.
    pub(crate) fn find(&self, generation: u64) -> Option<[u64; WORDS]> {
        if self.generation.load(Ordering::Acquire) != generation {
            return None;
        }
        let words = self.words.each_ref();
        let words = words.map(|word| word.load(Ordering::Acquire));
        self.is_open(generation).then_some(words)
    }

    /// True if the exposure with this generation has not ended.
    pub(crate) fn is_open(&self, generation: u64) -> bool {
        generation != 0 && self.generation.load(Ordering::Acquire) == generation
    }
}
