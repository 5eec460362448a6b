//! An index, by address, of the registrations that further exposures may use, for one kind of
//! access.
//!
//! Invariant: none lies within another. Those that begin later therefore end later, and a range
//! lies within one of them only if it lies within the last one that begins no later.

use std::collections::BTreeMap;

/// Ranges by their first address, each with its end and the number of its registration.
#[derive(Default)]
pub(super) struct Cover(BTreeMap<u64, (u64, usize)>);

impl Cover {
    /// The number of the registration that contains a range of memory. `None`: none does.
    pub(super) fn find(&self, address: u64, len: usize) -> Option<usize> {
        let (_, &(end, number)) = self.0.range(..=address).next_back()?;
        (address + len as u64 <= end).then_some(number)
    }

    /// Removes the registrations that lie within a range. Returns their numbers.
    pub(super) fn take_within(&mut self, address: u64, len: usize) -> Vec<usize> {
        let end = address + len as u64;
        let mut taken = Vec::new();
        while let Some((&start, &(last, number))) = self.0.range(address..).next()
            && last <= end
        {
            self.0.remove(&start);
            taken.push(number);
        }
        taken
    }

    /// Adds a range that lies within no other and contains no other.
    pub(super) fn insert(&mut self, address: u64, len: usize, number: usize) {
        debug_assert!(self.find(address, len).is_none());
        let before = self.0.insert(address, (address + len as u64, number));
        debug_assert!(before.is_none(), "a range at {address:#x} is covered");
    }

    /// Removes the registered range that begins at `address`.
    pub(super) fn remove(&mut self, address: u64) {
        let before = self.0.remove(&address);
        debug_assert!(before.is_some(), "no range at {address:#x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_range_that_begins_no_later_is_the_one_that_contains() {
        let mut cover = Cover::default();
        cover.insert(100, 50, 1);
        cover.insert(120, 80, 2);
        assert_eq!(cover.find(100, 50), Some(1));
        assert_eq!(cover.find(119, 31), Some(1));
        assert_eq!(cover.find(120, 31), Some(2));
        assert_eq!(
            cover.find(110, 60),
            None,
            "it begins in one and ends in the other"
        );
        assert_eq!(cover.find(99, 1), None);
        assert_eq!(cover.take_within(100, 100), [1, 2]);
        assert_eq!(cover.find(120, 1), None);
    }
}
