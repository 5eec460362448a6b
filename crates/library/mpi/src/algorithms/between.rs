//! The choice of an algorithm for an operation between two groups in which each member gets data of
//! all members of the remote group.
//!
//! - [`Algorithm::Linear`]: each member sends its data to each member of the remote group;
//! - [`Algorithm::TwoLevel`]: data are collected at the first member of a group, sent to the first
//!   member of the other group, and distributed there;
//! - [`Algorithm::TwoLevelParts`]: each member combines a part of the vectors of its group, and
//!   sends it to each member of the remote group.

use super::{Algorithm, Case, Collective, rows, time};

/// Within shared memory: up to this number of members of the larger group, each member receives the
/// data of each remote member.
pub(crate) const FEW: usize = 4;

/// Within shared memory: the number of bytes from which on a vector is combined in parts.
const PARTS: usize = 8 << 10;

/// Within shared memory: the number of bytes from which on a block is sent to each remote member.
const LONG_BLOCK: usize = 4 << 10;

/// The facts of an operation between two groups, which both groups have.
pub(crate) struct Between {
    /// The facts for the members of both groups together.
    pub(crate) joint: Case,
    /// The facts for the members of each group; the first group comes first on all members.
    pub(crate) groups: [Case; 2],
}

impl Between {
    /// The algorithm of an allgather whose longest block has `block` bytes.
    pub(crate) fn allgather(&self, block: usize) -> Algorithm {
        if self.joint.is_in_memory() {
            return match self.most() <= FEW || block >= LONG_BLOCK {
                true => Algorithm::Linear,
                false => Algorithm::TwoLevel,
            };
        }
        let collected = |from: &Case, to: &Case| {
            flat_time(Collective::Gather, from, block)
                + flat_time(Collective::Bcast, to, block * from.ranks)
        };
        let [first, second] = &self.groups;
        let by_firsts = collected(first, second).max(collected(second, first));
        match flat_time(Collective::Alltoall, &self.joint, block) <= by_firsts {
            true => Algorithm::Linear,
            false => Algorithm::TwoLevel,
        }
    }

    /// The algorithm of an allreduce of vectors of `bytes` bytes.
    pub(crate) fn allreduce(&self, bytes: usize) -> Algorithm {
        if self.joint.is_in_memory() {
            return match bytes {
                PARTS.. => Algorithm::TwoLevelParts,
                _ if self.most() <= FEW => Algorithm::Linear,
                _ => Algorithm::TwoLevel,
            };
        }
        let longest = |of: Collective| {
            let times = self.groups.iter().map(|group| flat_time(of, group, bytes));
            times.max().unwrap_or(0)
        };
        let least = self.groups.iter().map(|group| group.ranks).min();
        let to_all = |bytes: usize| flat_time(Collective::Alltoall, &self.joint, bytes);
        let across = self.joint.network.message(bytes as u64, true).total();
        let times = [
            (Algorithm::Linear, to_all(bytes)),
            (
                Algorithm::TwoLevel,
                longest(Collective::Reduce) + across + longest(Collective::Bcast),
            ),
            (
                Algorithm::TwoLevelParts,
                longest(Collective::ReduceScatter) + to_all(bytes.div_ceil(least.unwrap_or(1))),
            ),
        ];
        let best = times.into_iter().min_by_key(|(_, time)| *time);
        best.map_or(Algorithm::TwoLevel, |(algorithm, _)| algorithm)
    }

    /// The number of members of the larger group.
    fn most(&self) -> usize {
        self.groups[0].ranks.max(self.groups[1].ranks)
    }
}

/// The time of the cheapest flat (not two-level) algorithm, in nanoseconds, with `bytes` bytes.
fn flat_time(of: Collective, case: &Case, bytes: usize) -> u64 {
    if case.ranks < 2 {
        return 0;
    }
    let case = Case { bytes, ..*case };
    let rows = rows(of).iter();
    let works = rows.filter(|row| !row.has_levels() && row.can(&case));
    let times = works.map(|row| time(of, row.algorithm, &case));
    times.min().unwrap_or(u64::MAX)
}
