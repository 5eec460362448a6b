//! A set of intervals of bytes, each with a value, in which overlapping ones are found by address.

use std::collections::BTreeMap;

use crate::Runs;

/// The key of an interval in its set: its first byte, and a number that is used once.
pub(crate) type Key = (u64, u64);

/// A set of intervals of bytes, in the order of their first bytes.
pub(crate) struct Intervals<T> {
    all: BTreeMap<Key, (Runs, T)>,
    /// An upper bound of the length of an interval in bytes, gaps included.
    longest: u64,
    next: u64,
}

impl<T> Default for Intervals<T> {
    fn default() -> Self {
        Intervals {
            all: BTreeMap::new(),
            longest: 0,
            next: 0,
        }
    }
}

impl<T> Intervals<T> {
    pub(crate) fn insert(&mut self, runs: Runs, value: T) -> Key {
        if self.all.is_empty() {
            self.longest = 0;
        }
        self.longest = self.longest.max(runs.end() - runs.start);
        let key = (runs.start, self.next);
        self.next += 1;
        self.all.insert(key, (runs, value));
        key
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.all.remove(&key).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.all.get_mut(&key).map(|(_, value)| value)
    }

    /// For each interval with bytes in common with `runs`: its runs, the first common range, and
    /// its value.
    pub(crate) fn meeting(&self, runs: Runs) -> impl Iterator<Item = (Runs, (u64, u64), &T)> {
        let first = runs.start.saturating_sub(self.longest);
        let near = self.all.range((first, 0)..(runs.end(), 0));
        near.filter_map(move |(_, (other, value))| {
            let common = other.common(&runs)?;
            Some((*other, common, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_meet_are_found() {
        let mut all = Intervals::default();
        let long = all.insert(Runs::one(0, 1000), 'a');
        let short = all.insert(Runs::one(500, 8), 'b');
        all.insert(Runs::one(500, 8), 'c');
        all.insert(Runs::one(2000, 1), 'd');
        let meeting = |all: &Intervals<char>, start, len| -> String {
            all.meeting(Runs::one(start, len))
                .map(|(_, _, value)| *value)
                .collect()
        };
        assert_eq!(meeting(&all, 507, 1), "abc");
        assert_eq!(meeting(&all, 508, 2000), "ad");
        assert_eq!(meeting(&all, 1000, 1000), "");
        assert_eq!(all.remove(long), Some('a'));
        *all.get_mut(short).unwrap() = 'e';
        assert_eq!(meeting(&all, 0, u64::MAX), "ecd");
        assert_eq!(all.remove(long), None);
    }
}
