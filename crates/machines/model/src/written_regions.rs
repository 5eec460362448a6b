//! The regions of a rank that peers have written to, for a rank that polls only these.

use sim::memory::{Vec, WorldMemory};

/// The most keys that are kept: a rank that never asks costs no more memory.
const MOST: usize = 1 << 10;

/// The keys of written regions, since the rank last asked.
pub(crate) struct WrittenRegions {
    keys: Vec<u32>,
    /// More than [`MOST`] were written.
    many: bool,
}

impl WrittenRegions {
    pub(crate) fn new(memory: WorldMemory) -> WrittenRegions {
        WrittenRegions {
            keys: Vec::new_in(memory),
            many: false,
        }
    }

    /// A peer has written to the region with this key. Packets of one message come one after the
    /// other.
    #[inline]
    pub(crate) fn add(&mut self, key: u32) {
        if self.keys.last() == Some(&key) {
            return;
        }
        self.many |= self.keys.len() == MOST;
        if !self.many {
            self.keys.push(key);
        }
    }

    /// Moves the keys to `to`. False: there were too many to be kept.
    #[inline]
    pub(crate) fn take(&mut self, to: &mut std::vec::Vec<u32>) -> bool {
        to.extend_from_slice(&self.keys);
        self.keys.clear();
        !std::mem::take(&mut self.many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_once_and_too_many_are_reported() {
        let memory = sim::memory::Memory::private().unwrap();
        let mut regions = WrittenRegions::new(memory.shared());
        let mut keys = std::vec::Vec::new();
        [3, 3, 5].into_iter().for_each(|key| regions.add(key));
        assert!(regions.take(&mut keys));
        assert_eq!(keys, [3, 5]);
        assert!(regions.take(&mut keys) && keys.len() == 2);
        (0..=MOST as u32).for_each(|key| regions.add(key));
        assert!(!regions.take(&mut keys), "one key was lost");
        assert!(regions.take(&mut keys));
    }
}
