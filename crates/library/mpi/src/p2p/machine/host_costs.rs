//! Costs of paths within this host, which all its ranks share: in words of shared memory during a
//! job, and in the user's cache from one job to the next.
//!
//! A rank that has timed enough messages of a class stores the cost of the path. A rank that meets
//! a class for the first time begins with the stored costs, so that it neither starts with a guess
//! nor tries what others have tried.
//!
//! Invariants:
//! - a cost changes a choice between correct paths, never a result;
//! - once the costs of earlier jobs are complete, they do not change: members of a collective that
//!   know that they are complete read the same ones.

use channel::{HOST_WORDS, HostWords};
use cost_cache::CostLines;
use knobs::{Bytes, KnobValue};

use super::cost_classes::{COSTS_OF_ONE_RUN, Class, Company, PATHS};
use super::protocol::Protocol;
use crate::algorithms::contest::{KeptWays, Subject, WAY_NAMES, WAYS};

/// The bits of a word that hold a cost of earlier jobs. The others hold one of this job.
const KEPT: u64 = u32::MAX as u64;
/// The number of bits in a word of [`KEPT`].
const KEPT_BITS: u32 = 32;
/// The word that is 1 once the costs of earlier jobs are complete.
const COMPLETE: usize = HOST_WORDS - 1;

/// A cost that ranks share: the time of a byte by one path, for one class of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// The cost of a contiguous message of this class on the path with this index in [`PATHS`].
    Message(Class, usize),
    /// Of a collective call of a pair of members (true), or of more, by the variant of `Way` with
    /// this index.
    Call(Subject, bool, usize),
}

const _: () = assert!(COSTS_OF_ONE_RUN + 2 * Subject::COUNT * WAYS <= COMPLETE);

impl Cost {
    /// All costs that a host's ranks share, in the order of their words.
    fn all() -> impl Iterator<Item = Cost> {
        let messages = Class::of_one_run()
            .flat_map(|class| class.paths().map(move |path| Cost::Message(class, path)));
        let calls = Subject::all().flat_map(|subject| {
            let ways = [true, false].map(|is_pair| (0..WAYS).map(move |way| (is_pair, way)));
            let ways = ways.into_iter().flatten();
            ways.map(move |(is_pair, way)| Cost::Call(subject, is_pair, way))
        });
        messages.chain(calls)
    }

    fn word(self) -> usize {
        match self {
            Cost::Message(class, path) => class.cost(path),
            Cost::Call(subject, is_pair, way) => {
                let number = 2 * subject.number() + usize::from(!is_pair);
                COSTS_OF_ONE_RUN + number * WAYS + way
            }
        }
    }

    /// The name of the cost in the user's cache, without characters that it does not allow.
    fn name(self) -> String {
        let label = self.label();
        let least = Bytes(label.least).show();
        format!("{}.{}.{least}.{}", label.of, label.path, label.situation)
    }

    /// The parts of the cost's name in reports.
    fn label(self) -> CostLabel {
        match self {
            Cost::Message(class, at) => CostLabel {
                of: match class.company() {
                    Company::AtOnce => "medium",
                    Company::Alone | Company::Queued => "fetch",
                },
                path: match PATHS[at] {
                    Protocol::CooperativeCopy => "together",
                    Protocol::ReadRendezvous => "read",
                    _ => "packets",
                },
                least: class.least(),
                situation: match (class.is_near(), class.company()) {
                    (true, Company::AtOnce) => "near",
                    (true, Company::Alone) => "near.alone",
                    (true, Company::Queued) => "near.queued",
                    (false, Company::AtOnce) => "far",
                    (false, Company::Alone) => "far.alone",
                    (false, Company::Queued) => "far.queued",
                },
            },
            Cost::Call(subject, is_pair, way) => {
                let (collective, least) = subject.situation();
                CostLabel {
                    of: collective.name(),
                    path: WAY_NAMES[way],
                    least,
                    situation: if is_pair { "pair" } else { "more" },
                }
            }
        }
    }
}

/// The class and the path that a cost is for, for names and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CostLabel {
    /// `fetch` for announced messages, `medium` for those that do not wait for their receive, or
    /// the name of a collective.
    pub(crate) of: &'static str,
    pub(crate) path: &'static str,
    /// The least length of the class in bytes.
    pub(crate) least: usize,
    /// The distance of the cores and whether other messages wait, or the number of members.
    pub(crate) situation: &'static str,
}

/// A cost that the ranks of a host know, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownCost {
    pub(crate) label: CostLabel,
    pub(crate) ps_per_byte: u32,
    /// True if this job has not measured it: it is of earlier jobs.
    pub(crate) is_kept: bool,
}

/// The costs that the ranks of a host share.
#[derive(Clone)]
pub(super) struct HostCosts {
    words: HostWords,
}

impl HostCosts {
    pub(super) fn over(words: Option<HostWords>) -> HostCosts {
        HostCosts {
            words: words.unwrap_or_else(HostWords::alone),
        }
    }

    /// The stored cost in picoseconds per byte. `None`: it is not known.
    pub(super) fn get(&self, cost: Cost) -> Option<u32> {
        let word = self.words.get(cost.word());
        let (measured, kept) = ((word >> KEPT_BITS) as u32, word as u32);
        let ps = if measured > 0 { measured } else { kept };
        (ps > 0).then_some(ps)
    }

    /// Stores a cost that this rank has measured, in picoseconds per byte.
    pub(super) fn store(&self, cost: Cost, ps_per_byte: u32) {
        let measured = u64::from(ps_per_byte.max(1)) << KEPT_BITS;
        self.words.set(cost.word(), !KEPT, measured);
    }

    /// Stores costs of earlier jobs where no rank has measured one yet. One rank of a host does
    /// this, once.
    pub(super) fn begin_with(&self, kept: &CostLines) {
        for cost in Cost::all() {
            if let Some(ps) = kept.get(&cost.name()) {
                self.words.set(cost.word(), KEPT, ps.into());
            }
        }
        self.words.set(COMPLETE, u64::MAX, 1);
    }

    /// True if the costs that earlier jobs measured are complete.
    pub(super) fn is_complete(&self) -> bool {
        self.words.get(COMPLETE) == 1
    }

    /// The costs of collective calls of a pair of members (true), or of more, that earlier jobs
    /// have kept. They are equal on all members that find them complete.
    pub(super) fn kept_ways(&self, is_pair: bool) -> KeptWays {
        KeptWays::new(|subject, way| {
            self.words.get(Cost::Call(subject, is_pair, way).word()) as u32
        })
    }

    /// The stored costs, in an order of their own.
    pub(super) fn known(&self) -> impl Iterator<Item = KnownCost> {
        Cost::all().filter_map(|cost| {
            let is_kept = self.words.get(cost.word()) & !KEPT == 0;
            self.get(cost).map(|ps_per_byte| KnownCost {
                label: cost.label(),
                ps_per_byte,
                is_kept,
            })
        })
    }

    /// All known costs, to be kept for later jobs. `None`: this job has measured none.
    pub(super) fn to_keep(&self) -> Option<CostLines> {
        let is_new = |cost: Cost| self.words.get(cost.word()) & !KEPT != 0;
        if !Cost::all().any(is_new) {
            return None;
        }
        let mut lines = CostLines::default();
        for cost in Cost::all() {
            if let Some(ps) = self.get(cost) {
                lines.set(&cost.name(), ps);
            }
        }
        Some(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeSet;

    #[test]
    fn each_cost_has_a_word_and_a_name_of_its_own() {
        let words: Vec<usize> = Cost::all().map(Cost::word).collect();
        let all: Vec<usize> = (0..words.len()).collect();
        assert_eq!(words, all);
        let names: BTreeSet<String> = Cost::all().map(Cost::name).collect();
        assert_eq!(names.len(), words.len());
        assert!(names.contains("fetch.together.256K.near.queued"));
        assert!(names.contains("medium.read.32K.far"), "{names:?}");
        assert!(names.contains("alltoall.direct.64K.pair"), "{names:?}");
        // The cache takes each of them.
        let mut lines = CostLines::default();
        names.iter().for_each(|name| lines.set(name, 1));
        assert_eq!(lines.iter().count(), names.len());
    }

    #[test]
    fn a_job_begins_with_what_the_one_before_has_kept() {
        let class = Class::of(1 << 20, true, false);
        let (read, packets) = (Cost::Message(class, 1), Cost::Message(class, 2));
        let first = HostCosts::over(None);
        first.store(read, 98);
        let kept = first.to_keep().unwrap();
        let next = HostCosts::over(None);
        next.store(packets, 61);
        next.begin_with(&kept);
        assert_eq!((next.get(read), next.get(packets)), (Some(98), Some(61)));
        let known: Vec<_> = next.known().collect();
        let of = |cost: Cost, ps_per_byte, is_kept| KnownCost {
            label: cost.label(),
            ps_per_byte,
            is_kept,
        };
        assert_eq!(known, [of(read, 98, true), of(packets, 61, false)]);
        // A cost of this job replaces the kept one.
        next.store(read, 70);
        next.begin_with(&kept);
        assert_eq!(next.get(read), Some(70));
        assert!(next.known().all(|known| !known.is_kept));
    }

    #[test]
    fn a_job_that_has_measured_nothing_keeps_nothing() {
        let first = HostCosts::over(None);
        assert_eq!(first.to_keep(), None);
        first.store(Cost::Message(Class::of(1 << 20, true, false), 1), 5);
        let next = HostCosts::over(None);
        next.begin_with(&first.to_keep().unwrap());
        assert_eq!(next.to_keep(), None);
    }
}
