//! The bytes in shared memory by which the receiver of a ring informs the sender how messages that
//! do not wait for their receive should come: it can read the sender's memory or not, and for each
//! class of messages reads or packets have proved faster.
//!
//! Only the receiver writes the bytes. They bound nothing: whatever they contain, the sender may
//! take either path.

use crate::sync::{AtomicU8, Ordering};

/// The receiver's preferences for the messages of one sender.
#[repr(C, align(64))]
pub struct PathPreference {
    readable: AtomicU8,
    classes: [AtomicU8; PREFERENCE_CLASSES],
}

/// Number of classes of messages: with the byte for all classes, a cache line.
pub const PREFERENCE_CLASSES: usize = 63;

/// The preference for the messages of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preferred {
    /// True if messages arrive faster by reads; false if they do by packets.
    pub reads: bool,
    /// The least number of messages by the faster path between two trials of the other one: a power
    /// of two.
    pub pause: u32,
}

impl Preferred {
    /// A preference with at least `pause` messages between two trials.
    pub fn new(reads: bool, pause: u32) -> Preferred {
        let pause = pause.checked_next_power_of_two().unwrap_or(1 << 31);
        Preferred { reads, pause }
    }

    /// Bit 0 is set, bit 1 is for reads, and the others are the binary logarithm of the pause.
    fn code(self) -> u8 {
        1 | u8::from(self.reads) << 1 | (self.pause.ilog2() as u8) << 2
    }

    fn from_code(code: u8) -> Option<Preferred> {
        (code & 1 != 0).then_some(Preferred {
            reads: code & 2 != 0,
            pause: 1 << (code >> 2).min(31),
        })
    }
}

impl PathPreference {
    /// Records that the receiver can read the sender's memory, or that it cannot.
    pub fn set_readable(&self, readable: bool) {
        self.readable.store(readable.into(), Ordering::Relaxed);
    }

    /// True if the receiver has proved that it can read the sender's memory.
    #[inline]
    pub fn is_readable(&self) -> bool {
        self.readable.load(Ordering::Relaxed) != 0
    }

    /// Records the preference for messages of a class. `None`: there is none any more.
    pub fn prefer(&self, class: usize, preferred: Option<Preferred>) {
        let code = preferred.map_or(0, Preferred::code);
        self.classes[class].store(code, Ordering::Relaxed);
    }

    /// The preference for messages of a class. `None`: the receiver has none yet.
    #[inline]
    pub fn of(&self, class: usize) -> Option<Preferred> {
        Preferred::from_code(self.classes[class].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> PathPreference {
        PathPreference {
            readable: AtomicU8::new(0),
            classes: std::array::from_fn(|_| AtomicU8::new(0)),
        }
    }

    #[test]
    fn each_class_has_its_preference() {
        assert_eq!(size_of::<PathPreference>(), 64);
        let all = none();
        assert!(!all.is_readable() && all.of(0).is_none());
        all.set_readable(true);
        let (reads, packets) = (Preferred::new(true, 9), Preferred::new(false, u32::MAX));
        assert_eq!((reads.pause, packets.pause), (16, 1 << 31));
        all.prefer(0, Some(reads));
        all.prefer(PREFERENCE_CLASSES - 1, Some(packets));
        assert_eq!((all.of(0), all.of(1)), (Some(reads), None));
        assert_eq!(all.of(PREFERENCE_CLASSES - 1), Some(packets));
        all.prefer(0, Some(packets));
        all.set_readable(false);
        assert_eq!((all.of(0), all.is_readable()), (Some(packets), false));
        all.prefer(0, None);
        assert_eq!(all.of(0), None);
    }

    #[test]
    fn whatever_a_byte_contains_it_is_read() {
        let all = none();
        for byte in 0..=u8::MAX {
            all.classes[1].store(byte, Ordering::Relaxed);
            let known = all.of(1);
            assert_eq!(known.is_some(), byte & 1 != 0);
            assert!(known.is_none_or(|known| known.pause.is_power_of_two()));
        }
    }
}
