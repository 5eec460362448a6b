//! Watches over mapped memory: they report that the program has unmapped or replaced memory.
//!
//! A device keeps the pages that a range had when it was registered. Once the program unmaps the
//! range, its registration names memory that nobody else sees: a later mapping at the same address
//! has other pages. A registration may therefore outlive its exposure only while its pages are
//! watched.

use std::ops::Range;

/// The number of ranges that [`Changes`] can name.
const MOST_CHANGES: usize = 32;

/// Reports changes of the mappings of watched pages.
pub(in crate::rdma) trait Watch: Send {
    /// Watches pages, whose bounds are multiples of [`PAGE`]. False: they cannot be watched. Pages
    /// may be watched already.
    fn watch(&mut self, pages: Range<u64>) -> bool;

    /// Stops watching pages. They may have been unmapped.
    fn unwatch(&mut self, pages: Range<u64>);

    /// Takes the changes since the last call. A change is reported to every call that begins after
    /// the program's call (`munmap`, `mremap`, `madvise`) has returned. `None`: nothing has
    /// changed.
    fn take_changes(&mut self) -> Option<Changes>;
}

/// The unit of watched memory, in bytes.
pub(in crate::rdma) const PAGE: u64 = 4096;

/// The pages of `len` bytes at `address`.
pub(super) fn pages(address: u64, len: usize) -> Range<u64> {
    address / PAGE * PAGE..(address + len as u64).next_multiple_of(PAGE)
}

/// Memory whose pages have changed.
///
/// The size is fixed, because a report is made while an allocator may hold its lock: it must not
/// allocate.
#[derive(Clone, Copy, Debug)]
pub(in crate::rdma) struct Changes {
    ranges: [(u64, u64); MOST_CHANGES],
    count: usize,
    /// True if more ranges have changed than can be stored: all memory counts as changed.
    all: bool,
}

impl Changes {
    /// The empty set of changes: no memory has changed.
    pub(super) const NONE: Changes = Changes {
        ranges: [(0, 0); MOST_CHANGES],
        count: 0,
        all: false,
    };

    /// Adds the addresses from `start` to `end` to the changes.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        match self.ranges.get_mut(self.count) {
            Some(place) => {
                *place = (start, end);
                self.count += 1;
            }
            None => self.all = true,
        }
    }

    /// Adds all memory to the set of changes.
    pub(super) fn add_all(&mut self) {
        self.all = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && !self.all
    }

    /// True if some byte of `range` has changed.
    pub(super) fn touch(&self, range: &Range<u64>) -> bool {
        let overlaps = |(start, end): &(u64, u64)| *start < range.end && range.start < *end;
        self.all || self.ranges[..self.count].iter().any(overlaps)
    }
}

/// The parts of `range` that lie in none of `others`.
pub(super) fn without(range: Range<u64>, mut others: Vec<Range<u64>>) -> Vec<Range<u64>> {
    others.sort_unstable_by_key(|other| other.start);
    let mut parts = Vec::new();
    let mut from = range.start;
    for other in others {
        if other.start > from {
            parts.push(from..other.start.min(range.end));
        }
        from = from.max(other.end);
        if from >= range.end {
            return parts;
        }
    }
    parts.push(from..range.end);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_a_range_contain_its_first_and_last_byte() {
        assert_eq!(pages(8192, 4096), 8192..12288);
        assert_eq!(pages(8191, 2), 4096..12288);
    }

    #[test]
    fn changes_beyond_the_room_for_them_are_changes_of_everything() {
        let mut changes = Changes::NONE;
        assert!(changes.is_empty() && !changes.touch(&(0..u64::MAX)));
        for number in 0..MOST_CHANGES as u64 {
            changes.add(number * 20, number * 20 + 10);
        }
        assert!(changes.touch(&(9..11)) && changes.touch(&(0..1)) && !changes.touch(&(10..20)));
        changes.add(0, 1);
        assert!(changes.touch(&(10..20)));
    }

    #[test]
    fn a_range_without_others_is_what_lies_between_them() {
        let alone = without(10..50, vec![]);
        assert!(alone.len() == 1 && alone[0] == (10..50));
        let others = vec![30..35, 0..12, 11..20, 45..60];
        assert_eq!(without(10..50, others), [20..30, 35..45]);
        assert_eq!(without(10..50, vec![60..70, 20..30]), [10..20, 30..50]);
        assert!(without(10..50, vec![10..30, 30..50]).is_empty());
    }
}
