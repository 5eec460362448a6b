//! The regions of a rank to which peers have written, so that the rank can poll only these.

use sim::memory::{Vec, WorldMemory};

/// The greatest number of keys that are stored, so that a rank that never takes them uses bounded
/// memory.
const MOST: usize = 1 << 10;

/// The keys of regions that were written since the rank last took them.
pub(crate) struct WrittenRegions {
    keys: Vec<u32>,
    /// True if more than [`MOST`] keys would have been stored.
    many: bool,
}

impl WrittenRegions {
    pub(crate) fn new(memory: WorldMemory) -> WrittenRegions {
        WrittenRegions {
            keys: Vec::new_in(memory),
            many: false,
        }
    }

    /// Records that a peer has written to the region with this key. Packets of one message come one
    /// after the other, so a repetition of the last key is not stored.
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

    /// Moves the keys to `to`. False: there were too many to be stored.
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
