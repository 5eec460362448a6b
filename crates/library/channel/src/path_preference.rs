//! The word in shared memory by which the receiver of a ring informs the sender how messages of
//! medium length should come: it can read the sender's memory or not, and for each class of
//! messages reads or packets have proved faster.
//!
//! Only the receiver writes the word. It bounds nothing: whatever it contains, the sender may take
//! either path.

use crate::sync::{AtomicU64, Ordering};

/// The receiver's preferences for the messages of one sender.
#[repr(C, align(64))]
#[derive(Default)]
pub struct PathPreference(AtomicU64);

/// Number of classes of messages.
pub const PREFERENCE_CLASSES: usize = 20;
/// Bit 63: the receiver has read memory of the sender. Two bits a class below: known, and reads.
const READABLE: u64 = 1 << 63;

impl PathPreference {
    /// Records that the receiver can read the sender's memory, or that it cannot.
    pub fn set_readable(&self, readable: bool) {
        match readable {
            true => self.0.fetch_or(READABLE, Ordering::Relaxed),
            false => self.0.fetch_and(!READABLE, Ordering::Relaxed),
        };
    }

    /// True if the receiver has proved that it can read the sender's memory.
    #[inline]
    pub fn is_readable(&self) -> bool {
        self.0.load(Ordering::Relaxed) & READABLE != 0
    }

    /// Records that messages of a class arrive faster by reads (true) or by packets (false).
    pub fn prefer(&self, class: usize, reads: bool) {
        let bits = 0b11 << (2 * class);
        let value = (u64::from(reads) << 1 | 1) << (2 * class);
        let seen = self.0.load(Ordering::Relaxed);
        self.0.store(seen & !bits | value, Ordering::Relaxed);
    }

    /// True if messages of a class should be read; false if they should be sent in packets. `None`:
    /// the receiver has no preference yet.
    #[inline]
    pub fn of(&self, class: usize) -> Option<bool> {
        let bits = self.0.load(Ordering::Relaxed) >> (2 * class);
        (bits & 1 != 0).then_some(bits & 2 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_preference() {
        let word = PathPreference::default();
        assert!(!word.is_readable() && word.of(0).is_none());
        word.set_readable(true);
        word.prefer(0, true);
        word.prefer(PREFERENCE_CLASSES - 1, false);
        assert_eq!((word.of(0), word.of(1)), (Some(true), None));
        assert_eq!(word.of(PREFERENCE_CLASSES - 1), Some(false));
        word.prefer(0, false);
        word.set_readable(false);
        assert_eq!((word.of(0), word.is_readable()), (Some(false), false));
    }
}
