//! The classes of messages within a host, and the paths by which they can come: costs are compared
//! within one class.

use channel::PREFERENCE_CLASSES;

use super::protocol::Protocol;
use crate::packet::RunClass;

/// The protocols by which an announced message can be fetched (*paths*). A message that leaves at
/// once takes one of the last two: its receiver reads it, or it arrives in packets.
pub(super) const PATHS: [Protocol; 3] = [
    Protocol::CooperativeCopy,
    Protocol::ReadRendezvous,
    Protocol::Packets,
];
/// The indices of two paths in [`PATHS`].
pub(super) const READ: usize = 1;
pub(super) const PACKETS: usize = 2;

/// Binary logarithm of the least length in bytes in the second class of lengths.
const SECOND_CLASS: u32 = 15;
/// Number of classes into which lengths are divided, one for each power of two. Longer messages are
/// in the last one.
pub(super) const LENGTHS: usize = 9;
/// Number of situations of messages of one length and one class of runs.
const SITUATIONS: usize = 2 * 3;
/// Number of classes of messages that are contiguous at their sender: the first ones.
const OF_ONE_RUN: usize = LENGTHS * SITUATIONS;
/// The number of classes.
pub(super) const CLASSES: usize = OF_ONE_RUN * (1 + RunClass::LONG);
/// The number of classes of lengths and runs.
pub(super) const SHAPES: usize = CLASSES / SITUATIONS;
const _: () = assert!(SHAPES <= PREFERENCE_CLASSES);
/// Number of costs of the classes of one length, one distance of the cores and one class of runs.
const COSTS: usize = 2 + 2 * PATHS.len();
/// The number of costs of contiguous messages.
pub(super) const COSTS_OF_ONE_RUN: usize = LENGTHS * 2 * COSTS;

/// The situation of a message: length, cache distance, whether it waits for its receive and others
/// wait behind it, and the runs of the send buffer. Paths are compared within one situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class(usize);

/// The company in which a message is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Company {
    /// The message does not wait for its receive.
    AtOnce,
    /// The message is announced, and fetched while no other fetch waits.
    Alone,
    /// The message is announced, and other fetches wait behind it.
    Queued,
}

impl Company {
    const ALL: [Company; 3] = [Company::AtOnce, Company::Alone, Company::Queued];
}

impl Class {
    fn new(len: usize, is_near: bool, company: Company) -> Class {
        let length = len.max(1).ilog2().saturating_sub(SECOND_CLASS - 1) as usize;
        let distance = length.min(LENGTHS - 1) * 2 + usize::from(is_near);
        Class(distance * Company::ALL.len() + company as usize)
    }

    /// The class of a fetch of `len` bytes. `is_near`: the cores of the two ranks share a cache.
    /// `is_followed`: other fetches wait behind it.
    pub(super) fn of(len: usize, is_near: bool, is_followed: bool) -> Class {
        let company = match is_followed {
            true => Company::Queued,
            false => Company::Alone,
        };
        Class::new(len, is_near, company)
    }

    /// The class of such a fetch if the send buffer has runs of the class `runs`.
    pub(super) fn in_runs(self, runs: RunClass) -> Class {
        let first = runs.long().map_or(0, |long| (1 + long) * OF_ONE_RUN);
        Class(first + self.0)
    }

    /// The class of a message of `len` bytes that does not wait for its receive, in runs of a
    /// class. `None`: its runs are too short to be read, so there is nothing to compare.
    pub(super) fn at_once(len: usize, is_near: bool, runs: RunClass) -> Option<Class> {
        let is_read = runs.is_one() || runs.long().is_some();
        is_read.then(|| Class::new(len, is_near, Company::AtOnce).in_runs(runs))
    }

    /// The classes of contiguous messages, by their numbers.
    pub(super) fn of_one_run() -> impl Iterator<Item = Class> {
        (0..OF_ONE_RUN).map(Class)
    }

    /// The paths of the class, by their indices in [`PATHS`].
    pub(super) fn paths(self) -> std::ops::Range<usize> {
        usize::from(self.company() == Company::AtOnce)..PATHS.len()
    }

    /// True for a class of contiguous messages.
    pub(super) fn is_of_one_run(self) -> bool {
        self.0 < OF_ONE_RUN
    }

    /// The number of the class, less than [`CLASSES`].
    pub(super) fn number(self) -> usize {
        self.0
    }

    /// The number of the cost of a path of this class, less than [`COSTS_OF_ONE_RUN`] for
    /// contiguous messages.
    pub(super) fn cost(self, path: usize) -> usize {
        let company = self.0 % Company::ALL.len();
        self.0 / Company::ALL.len() * COSTS + company * PATHS.len() + path - READ
    }

    /// The number of the class among those that differ in lengths and runs, less than [`SHAPES`].
    pub(super) fn shape(self) -> usize {
        self.0 / SITUATIONS
    }

    pub(super) fn company(self) -> Company {
        Company::ALL[self.0 % Company::ALL.len()]
    }

    /// True if the cores of the two ranks share a cache.
    pub(super) fn is_near(self) -> bool {
        !(self.0 / Company::ALL.len()).is_multiple_of(2)
    }

    /// The least length of the class in bytes.
    pub(super) fn least(self) -> usize {
        match self.shape() % LENGTHS {
            0 => 0,
            length => 1 << (length + SECOND_CLASS as usize - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1 << 20;

    #[test]
    fn classes_follow_length_cores_company_and_runs() {
        for number in 0..OF_ONE_RUN {
            let class = Class(number);
            let of = Class::new(class.least(), class.is_near(), class.company());
            assert_eq!((of, of.is_of_one_run()), (class, true));
        }
        let longest = Class::of(usize::MAX, true, true);
        let mut numbers: Vec<usize> = (RunClass::all())
            .map(|runs| longest.in_runs(runs).0)
            .collect();
        assert_eq!(numbers, [53, 53, 107, 161, 215, 269]);
        numbers.dedup();
        assert_eq!(numbers.len(), 1 + RunClass::LONG);
        assert_eq!(numbers.last(), Some(&(CLASSES - 1)));
        assert_eq!(Class::at_once(LEN, true, RunClass::SHORT), None);
        let shapes = RunClass::all().filter_map(|runs| Class::at_once(LEN, true, runs));
        let of_len = |runs| runs * LENGTHS + 6;
        assert!(
            shapes
                .map(Class::shape)
                .eq((0..=RunClass::LONG).map(of_len))
        );
    }

    #[test]
    fn classes_of_lengths_are_the_powers_of_two() {
        let of = |len| Class::of(len, false, false).shape();
        assert_eq!((of(0), of(1), of((32 << 10) - 1)), (0, 0, 0));
        let starts: Vec<usize> = (15..15 + LENGTHS - 1).map(|log| 1 << log).collect();
        let around = |start: &usize| (of(start - 1), of(*start), of(2 * start - 1));
        let found: Vec<_> = starts.iter().map(around).collect();
        let wanted: Vec<_> = (1..LENGTHS).map(|at| (at - 1, at, at)).collect();
        assert_eq!(found, wanted);
        assert_eq!(of(usize::MAX), LENGTHS - 1);
    }

    #[test]
    fn each_path_of_a_class_has_a_cost() {
        let costs =
            Class::of_one_run().flat_map(|class| class.paths().map(move |at| class.cost(at)));
        assert!(costs.eq(0..COSTS_OF_ONE_RUN));
    }
}
