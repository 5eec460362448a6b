//! The classes of messages within a host, and the paths by which they can come: costs are compared
//! within one class.

use channel::PREFERENCE_CLASSES;

use super::protocol::Protocol;
use crate::packet::RunClass;

/// The protocols by which an announced message can be fetched (*paths*), among which this rank
/// learns.
pub(super) const PATHS: [Protocol; 3] = [
    Protocol::CooperativeCopy,
    Protocol::ReadRendezvous,
    Protocol::Packets,
];
/// Binary logarithm of the least length in bytes in the second class of fetched messages.
const SECOND_CLASS: u32 = 18;
/// Number of classes into which lengths of fetched messages are divided.
const LENGTHS: usize = 7;
/// Number of classes of fetched messages that are contiguous at their sender: the first ones.
pub(super) const OF_ONE_RUN: usize = LENGTHS * 4;
/// The number of classes of messages that receivers fetch.
pub(super) const LONG_CLASSES: usize = OF_ONE_RUN * (1 + RunClass::LONG);
/// The number of classes of messages of medium length.
pub(super) const CLASSES: usize = PREFERENCE_CLASSES;
/// The number of length classes of contiguous messages of medium length.
pub(super) const MEDIUM_LENGTHS: usize = 8;
/// Number of classes of lengths of messages in runs, for each class of runs.
const LENGTHS_IN_RUNS: usize = 3;
const _: () = assert!(MEDIUM_LENGTHS + LENGTHS_IN_RUNS * RunClass::LONG <= CLASSES);
/// The least length in bytes of the second class of messages of medium length.
const SECOND_MEDIUM_CLASS: usize = 32 << 10;
/// The situation of a fetch: length, cache distance, whether others wait, and the runs of the send
/// buffer. Paths are compared within one situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class(usize);

impl Class {
    /// The class of a fetch of `len` bytes. `is_near`: the cores of the two ranks share a cache.
    /// `is_followed`: other fetches wait behind it.
    pub(super) fn of(len: usize, is_near: bool, is_followed: bool) -> Class {
        let length = len.max(1).ilog2().saturating_sub(SECOND_CLASS - 1) as usize;
        let length = length.min(LENGTHS - 1);
        Class((length * 2 + usize::from(is_near)) * 2 + usize::from(is_followed))
    }

    /// The class of such a fetch if the send buffer has runs of the class `runs`.
    pub(super) fn in_runs(self, runs: RunClass) -> Class {
        let first = runs.long().map_or(0, |long| (1 + long) * OF_ONE_RUN);
        Class(first + self.0)
    }

    /// The classes of contiguous messages, by their numbers.
    pub(super) fn of_one_run() -> impl Iterator<Item = Class> {
        (0..OF_ONE_RUN).map(Class)
    }

    /// True for a class of contiguous messages.
    pub(super) fn is_of_one_run(self) -> bool {
        self.0 < OF_ONE_RUN
    }

    /// True if other fetches wait behind these.
    pub(super) fn is_queued(self) -> bool {
        self.situation().2
    }

    /// The number of the class, less than [`LONG_CLASSES`].
    pub(super) fn number(self) -> usize {
        self.0
    }

    /// The situation of the class, apart from the runs: its least length in bytes, true if the
    /// cores share a cache, and true if other fetches wait.
    pub(super) fn situation(self) -> (usize, bool, bool) {
        let number = self.0 % OF_ONE_RUN;
        let least = match number / 4 {
            0 => 0,
            length => 1 << (length + SECOND_CLASS as usize - 1),
        };
        (least, number & 2 != 0, number & 1 != 0)
    }
}

/// The class of a message of medium length, of `len` bytes in runs of a class. `None`: its runs are
/// too short to be read, so there is nothing to compare.
pub(super) fn class_of(len: usize, runs: RunClass) -> Option<usize> {
    let class = (len.saturating_sub(1) / SECOND_MEDIUM_CLASS).max(1).ilog2() as usize;
    let length = class + usize::from(len > SECOND_MEDIUM_CLASS);
    if runs.is_one() {
        return Some(length.min(MEDIUM_LENGTHS - 1));
    }
    let length = length.min(LENGTHS_IN_RUNS - 1);
    Some(MEDIUM_LENGTHS + runs.long()? * LENGTHS_IN_RUNS + length)
}

/// The least length in bytes of each class of contiguous messages of medium length but the first.
pub(super) fn class_starts() -> impl Iterator<Item = usize> {
    (0..MEDIUM_LENGTHS - 1).map(|class| (SECOND_MEDIUM_CLASS << class) + 1)
}

/// The least length in bytes of a class of contiguous messages of medium length.
pub(super) fn least_of(class: usize) -> usize {
    match class {
        0 => 0,
        _ => SECOND_MEDIUM_CLASS << (class - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1 << 20;

    #[test]
    fn classes_follow_length_cores_and_company() {
        let of = |len| Class::of(len, false, false).0;
        for class in 0..OF_ONE_RUN {
            let (len, is_near, is_followed) = Class(class).situation();
            assert_eq!(Class::of(len, is_near, is_followed), Class(class));
        }
        assert_eq!((of(1), of(128 << 10), of(200 << 10)), (0, 0, 0));
        assert_eq!((of(256 << 10), of(512 << 10)), (4, 8));
        assert_eq!((of(8 << 20), of(1 << 40)), (24, 24));
        let all = [(false, false), (false, true), (true, false), (true, true)];
        let mut seen: Vec<usize> = all
            .map(|(near, followed)| Class::of(LEN, near, followed).0)
            .to_vec();
        seen.dedup();
        assert_eq!(seen.len(), 4);
        assert!(of(usize::MAX) < OF_ONE_RUN);
        let longest = Class::of(usize::MAX, true, true);
        let mut numbers: Vec<usize> = (RunClass::all())
            .map(|runs| longest.in_runs(runs).0)
            .collect();
        assert_eq!(numbers, [27, 27, 55, 83, 111, 139]);
        numbers.dedup();
        assert_eq!(numbers.len(), 1 + RunClass::LONG);
    }

    #[test]
    fn classes_are_the_powers_of_two() {
        let of_bytes = |bytes: usize| class_of(bytes, RunClass::ONE).unwrap();
        let of = |kib: usize| of_bytes(kib << 10);
        assert_eq!(
            [of(17), of(32), of(33), of(64), of(65), of(128)],
            [0, 0, 1, 1, 2, 2]
        );
        assert_eq!((of(129), of_bytes(usize::MAX)), (3, MEDIUM_LENGTHS - 1));
        let starts: Vec<usize> = class_starts().collect();
        let around = |start: &usize| (of_bytes(start - 1), of_bytes(*start));
        let found: Vec<(usize, usize)> = starts.iter().map(around).collect();
        let wanted: Vec<(usize, usize)> = (1..MEDIUM_LENGTHS)
            .map(|class| (class - 1, class))
            .collect();
        assert_eq!(found, wanted);
        assert_eq!(class_of(LEN, RunClass::SHORT), None);
        let long = RunClass::all().filter(|runs| runs.long().is_some());
        let lens = [20 << 10, 64 << 10, LEN];
        let classes = long.flat_map(|runs| lens.map(|len| class_of(len, runs).unwrap()));
        assert!(classes.eq(MEDIUM_LENGTHS..CLASSES));
    }
}
