//! Algorithms of collective operations: one table, whose choices the knob `collectives` overrides.
//!
//! The rows of a collective are algorithms, each with the restrictions under which it works; its
//! cost is in nanoseconds. The cheapest row that works is taken; ties go to the earlier row. Within
//! the shared memory of one host, where times depend on caches and cores, rows are taken by
//! measured sizes instead.
//!
//! Invariant: all members of a communicator choose the same algorithm, so a choice depends only on
//! facts that all of them know: their number, their hosts, and the numbers of the network on which
//! they have agreed.
//!
//! Reductions give the same bits from run to run, with any operation, if the ranks, their hosts,
//! the machine's network and the settings are the same: a choice has no other inputs, and every
//! algorithm combines operands in an order that no arrival changes.

mod behind_barrier;
pub(crate) mod between;
pub(crate) mod branches;
mod case;
pub(crate) mod contest;
mod cost;
mod names;
mod network;
mod pattern_costs;
mod pieces;
pub(crate) mod recent;
mod rooted;
mod trees;

use knobs::{AlgorithmChoices, TreeArity};

use case::ALWAYS_SHARED;
pub use case::Case;
use contest::WAYS;
pub use names::{Algorithm, Collective};
pub use network::Network;
pub(crate) use pieces::{CACHED_PIECE, CHAIN_PIECE, LEVEL_PIECE};

use crate::{Class, Error, Result};

/// Restrictions without which an algorithm does not work: a set of conditions on the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restrictions(u16);

impl Restrictions {
    /// No condition.
    const NONE: Restrictions = Restrictions(0);
    /// A commutative operation.
    const COMMUTATIVE: Restrictions = Restrictions(1 << 0);
    /// An equal number of bytes from and to every member, and not in place.
    const EVEN: Restrictions = Restrictions(1 << 1);
    /// A power of two of members.
    const POWER_OF_TWO: Restrictions = Restrictions(1 << 2);
    /// One host whose ranks reach each other through a device.
    const DEVICE_WITHIN: Restrictions = Restrictions(1 << 3);
    /// Several hosts, one of them with several ranks.
    const LEVELS: Restrictions = Restrictions(1 << 4);
    /// A commutative operation, or consecutive ranks on each host.
    const IN_ORDER: Restrictions = Restrictions(1 << 5);
    /// Several ranks on every host.
    const SEVERAL_EACH: Restrictions = Restrictions(1 << 6);
    /// Consecutive ranks on each host.
    const CONTIGUOUS: Restrictions = Restrictions(1 << 7);
    /// An equal number of ranks on every host.
    const EQUAL_HOSTS: Restrictions = Restrictions(1 << 8);
    /// Members that share memory.
    const SHARED: Restrictions = Restrictions(1 << 9);
    /// Vectors that a member can publish: blocks of one size, a predefined operation if any.
    const PUBLISHED: Restrictions = Restrictions(1 << 10);
    /// More than two members.
    const MORE_THAN_TWO: Restrictions = Restrictions(1 << 11);
    /// Access of each member to the memory of all.
    const SINGLE_COPY: Restrictions = Restrictions(1 << 12);

    /// These and others.
    const fn and(self, others: Restrictions) -> Restrictions {
        Restrictions(self.0 | others.0)
    }

    /// The conditions that hold for a call.
    fn met_by(case: &Case) -> Restrictions {
        let spread = &case.spread;
        let conditions = [
            (R::COMMUTATIVE, case.commutative),
            (R::EVEN, case.even),
            (R::POWER_OF_TWO, case.ranks.is_power_of_two()),
            (R::DEVICE_WITHIN, spread.hosts <= 1 && !case.network.memory),
            (R::LEVELS, spread.has_levels()),
            (R::IN_ORDER, case.keeps_order()),
            (R::SEVERAL_EACH, spread.least > 1),
            (R::CONTIGUOUS, spread.contiguous),
            (R::EQUAL_HOSTS, spread.least == spread.most),
            (R::SHARED, case.shared),
            (R::PUBLISHED, case.published < usize::MAX),
            (R::MORE_THAN_TWO, case.ranks > 2),
            (R::SINGLE_COPY, case.direct),
        ];
        let met = conditions.into_iter().filter(|(_, is_met)| *is_met);
        met.fold(R::NONE, |all, (restriction, _)| all.and(restriction))
    }

    /// True if `met`, the conditions that hold, includes all of these restrictions.
    fn are_among(self, met: Restrictions) -> bool {
        self.0 & !met.0 == 0
    }
}

/// A row of the table: an algorithm with its restrictions.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The algorithm that the row is for.
    pub algorithm: Algorithm,
    /// The conditions on the call.
    pub restrictions: Restrictions,
    /// Within shared memory: the least bytes for which the row is taken. Of the rows that fit a
    /// call, the last counts.
    pub from: usize,
    /// Within shared memory: the least number of ranks.
    pub ranks: usize,
}

/// Least bytes of a row that is not taken within shared memory unless the knob selects it.
const NEVER: usize = usize::MAX;

const fn row(algorithm: Algorithm, from: usize, ranks: usize, restrictions: Restrictions) -> Row {
    Row {
        algorithm,
        restrictions,
        from,
        ranks,
    }
}

/// A row for several hosts.
const fn hosts(algorithm: Algorithm, restrictions: Restrictions) -> Row {
    row(algorithm, NEVER, 0, R::LEVELS.and(restrictions))
}

/// For each [`Way`](contest::Way), in the order of the enum: true if members that share memory can
/// use it in this case.
pub(crate) fn ways(of: Collective, case: &Case) -> [bool; WAYS] {
    let met = Restrictions::met_by(case);
    let works = |algorithm: Algorithm| {
        let mut rows = rows(of).iter().filter(|row| row.algorithm == algorithm);
        rows.any(|row| row.restrictions.are_among(met))
    };
    [works(A::Shared), works(A::Direct), true]
}

/// The rows of a collective.
pub const fn rows(of: Collective) -> &'static [Row] {
    match of {
        Collective::Barrier => BARRIER,
        Collective::Bcast => BCAST,
        Collective::Gather => GATHER,
        Collective::Scatter => SCATTER,
        Collective::Allgather => ALLGATHER,
        Collective::Alltoall => ALLTOALL,
        Collective::Reduce => REDUCE,
        Collective::Allreduce => ALLREDUCE,
        Collective::ReduceScatter => REDUCE_SCATTER,
        Collective::Scan => SCAN,
    }
}

/// The times at which the ranks end an operation.
fn ends(of: Collective, algorithm: Algorithm, case: &Case) -> Ends {
    let ends = match of {
        Collective::Barrier => cost::barrier,
        Collective::Bcast => cost::bcast,
        Collective::Gather => cost::gather,
        Collective::Scatter => cost::scatter,
        Collective::Allgather => cost::allgather,
        Collective::Alltoall => cost::alltoall,
        Collective::Reduce => cost::reduce,
        Collective::Allreduce => cost::allreduce,
        Collective::ReduceScatter => cost::reduce_scatter,
        Collective::Scan => return cost::scan(of, algorithm, case),
    };
    ends(algorithm, case)
}

/// The time of an algorithm on the mean of all ranks, in nanoseconds, as members compare it.
fn time(of: Collective, algorithm: Algorithm, case: &Case) -> u64 {
    let followed = rooted::behind_barrier(of, algorithm, case);
    followed.unwrap_or_else(|| ends(of, algorithm, case)).mean
}

/// The cheapest algorithm without levels.
fn cheapest_flat(of: Collective, case: &Case) -> Option<Algorithm> {
    let works = |row: &&Row| !row.has_levels() && row.can(case);
    let rows = rows(of).iter().filter(works);
    let algorithms = rows.map(|row| row.algorithm);
    algorithms.min_by_key(|&algorithm| time(of, algorithm, case))
}

use trees::Ends;
use {Algorithm as A, Restrictions as R};

/// The restrictions of collective buffers.
const BUFFER: Restrictions = R::SHARED.and(R::PUBLISHED);

const BARRIER: &[Row] = &[
    row(A::Dissemination, 0, 0, R::NONE),
    hosts(A::TwoLevel, R::NONE),
    row(A::Shared, 0, 2, BUFFER),
];

const BCAST: &[Row] = &[
    row(A::Chain, NEVER, 0, R::NONE),
    row(A::Linear, NEVER, 0, R::NONE),
    row(A::KAry, NEVER, 0, R::NONE),
    row(A::Binomial, 0, 0, R::NONE),
    row(A::ScatterAllgather, 64 << 10, 8, R::NONE),
    hosts(A::TwoLevel, R::NONE),
    hosts(A::TwoLevelParts, R::SEVERAL_EACH),
    row(A::Shared, 0, 2, BUFFER),
];

const GATHER: &[Row] = &[
    row(A::Linear, 0, 0, R::NONE),
    row(A::Binomial, 0, 0, R::EVEN),
    row(A::Linear, 4 << 10, 0, R::NONE),
    hosts(A::TwoLevel, R::NONE),
    row(A::Shared, 0, 2, BUFFER),
];

const SCATTER: &[Row] = &[
    row(A::Linear, 0, 0, R::NONE),
    row(A::Binomial, 0, 0, R::EVEN),
    row(A::Linear, 4 << 10, 0, R::NONE),
    hosts(A::TwoLevel, R::NONE),
    row(A::Shared, 0, 2, BUFFER),
    row(A::Linear, 32 << 10, 3, R::SHARED.and(R::MORE_THAN_TWO)),
];

const ALLGATHER: &[Row] = &[
    row(
        A::CachedRing,
        NEVER,
        0,
        R::DEVICE_WITHIN.and(R::COMMUTATIVE),
    ),
    row(A::Linear, NEVER, 0, R::NONE),
    row(A::Bruck, 0, 0, R::NONE),
    row(A::RecursiveDoubling, 0, 0, R::EVEN.and(R::POWER_OF_TWO)),
    row(A::Ring, 64 << 10, 0, R::NONE),
    hosts(A::TwoLevel, R::NONE),
    hosts(
        A::TwoLevelParts,
        R::EVEN.and(R::CONTIGUOUS).and(R::EQUAL_HOSTS),
    ),
    row(A::Direct, 512 << 10, 3, R::SINGLE_COPY),
    row(A::Shared, 0, 2, BUFFER),
];

const ALLTOALL: &[Row] = &[
    row(A::Linear, 0, 0, R::NONE),
    row(A::Bruck, 0, 8, R::EVEN),
    row(A::Linear, 256, 0, R::NONE),
    row(A::Pairwise, 32 << 10, 0, R::NONE),
    hosts(A::TwoLevel, R::EVEN),
    row(A::Shared, 0, 2, BUFFER),
    row(A::Direct, 512 << 10, 3, R::SINGLE_COPY),
];

const REDUCE: &[Row] = &[
    row(A::KAry, NEVER, 0, R::NONE),
    row(A::Binomial, 0, 0, R::NONE),
    row(A::Rabenseifner, 32 << 10, 0, R::NONE),
    hosts(A::TwoLevel, R::IN_ORDER),
    row(A::Direct, 8 << 10, 3, R::SINGLE_COPY),
    row(A::Shared, 0, 2, BUFFER),
];

const ALLREDUCE: &[Row] = &[
    row(A::Ring, NEVER, 0, R::COMMUTATIVE),
    row(A::ReduceBcast, NEVER, 0, R::NONE),
    row(A::RecursiveDoubling, 0, 0, R::NONE),
    row(A::Rabenseifner, 8 << 10, 0, R::NONE),
    hosts(A::TwoLevel, R::IN_ORDER),
    hosts(A::TwoLevelParts, R::COMMUTATIVE.and(R::SEVERAL_EACH)),
    row(A::Direct, 8 << 10, 3, R::SINGLE_COPY),
    row(A::Shared, 0, 2, BUFFER),
];

const REDUCE_SCATTER: &[Row] = &[
    row(
        A::CachedRing,
        NEVER,
        0,
        R::DEVICE_WITHIN.and(R::COMMUTATIVE),
    ),
    row(A::Linear, NEVER, 0, R::NONE),
    row(A::ReduceScatter, 0, 0, R::NONE),
    row(A::RecursiveHalving, 0, 0, R::COMMUTATIVE),
    row(A::Pairwise, 256 << 10, 0, R::COMMUTATIVE),
    hosts(A::TwoLevel, R::CONTIGUOUS),
    row(A::Direct, 8 << 10, 3, R::SINGLE_COPY),
    row(A::Shared, 0, 2, BUFFER),
];

const SCAN: &[Row] = &[
    row(A::Chain, NEVER, 0, R::NONE),
    row(A::RecursiveDoubling, 0, 0, R::NONE),
    hosts(A::TwoLevel, R::CONTIGUOUS),
    row(A::Shared, 0, 2, BUFFER),
];

impl Row {
    /// The row is for several hosts only.
    fn has_levels(&self) -> bool {
        R::LEVELS.are_among(self.restrictions)
    }

    /// The algorithm works in this case.
    pub(crate) fn can(&self, case: &Case) -> bool {
        self.restrictions.are_among(Restrictions::met_by(case))
    }
}

/// The row for ranks that share memory, by measured sizes.
fn measured(collective: Collective, case: &Case) -> Option<Algorithm> {
    let met = Restrictions::met_by(case);
    let fits = |row: &&Row| {
        row.from <= case.bytes && row.ranks <= case.ranks && row.restrictions.are_among(met)
    };
    let last = rows(collective).iter().rev().find(fits);
    last.map(|row| row.algorithm)
}

/// The cheapest row.
fn cheapest(collective: Collective, case: &Case) -> Option<Algorithm> {
    let rows = rows(collective).iter().filter(|row| row.can(case));
    rows.map(|row| row.algorithm)
        .min_by_key(|&algorithm| time(collective, algorithm, case))
}

/// The predicted times of the algorithms that work in a case, in nanoseconds, in the order of the
/// table: the mean of all ranks. Empty within shared memory, where measured sizes decide.
pub fn predictions(collective: Collective, case: &Case) -> Vec<(Algorithm, u64)> {
    if case.is_in_memory() {
        return Vec::new();
    }
    let mut predictions: Vec<(Algorithm, u64)> = Vec::new();
    for row in rows(collective).iter().filter(|row| row.can(case)) {
        if predictions.iter().all(|(known, _)| *known != row.algorithm) {
            let time = time(collective, row.algorithm, case);
            predictions.push((row.algorithm, time));
        }
    }
    predictions
}

/// An algorithm that the user wants from a number of bytes on.
struct Override {
    collective: Collective,
    from: usize,
    algorithm: Algorithm,
}

/// The table with the user's overrides.
pub struct AlgorithmTable {
    overrides: Vec<Override>,
    arity: TreeArity,
}

impl AlgorithmTable {
    /// The table with these overrides, and this number of branches in k-ary trees; an error names
    /// an unknown collective or algorithm.
    pub fn new(overrides: &AlgorithmChoices, arity: TreeArity) -> Result<AlgorithmTable> {
        let mut wanted = Vec::new();
        for choice in &overrides.0 {
            let bad = |detail| {
                Err(Error::new(
                    Class::ARG,
                    format!("FISHPLATE_COLLECTIVES: {detail}"),
                ))
            };
            let known = Collective::ALL
                .iter()
                .find(|of| of.name() == choice.collective);
            let Some(&collective) = known else {
                let all: Vec<_> = Collective::ALL.iter().map(|of| of.name()).collect();
                return bad(format!(
                    "there is no collective '{}'; there are {}",
                    choice.collective,
                    all.join(", ")
                ));
            };
            let all = rows(collective).iter().map(|row| row.algorithm);
            let Some(algorithm) = all.clone().find(|one| one.name() == choice.algorithm) else {
                let mut algorithms: Vec<_> = all.map(Algorithm::name).collect();
                algorithms.sort_unstable();
                algorithms.dedup();
                let all = algorithms.join(", ");
                return bad(format!(
                    "{} has no algorithm '{}'; it has {all}",
                    choice.collective, choice.algorithm
                ));
            };
            wanted.push(Override {
                collective,
                from: choice.from.get(),
                algorithm,
            });
        }
        // Of equal sizes the last one that the user wrote counts.
        wanted.reverse();
        wanted.sort_by_key(|one| std::cmp::Reverse(one.from));
        Ok(AlgorithmTable {
            overrides: wanted,
            arity,
        })
    }

    /// The user's number of branches in k-ary trees.
    pub(crate) fn arity(&self) -> Option<usize> {
        self.arity.fixed()
    }

    /// The algorithm for a call.
    #[inline]
    pub fn algorithm(&self, collective: Collective, case: Case) -> Algorithm {
        if !self.overrides.is_empty()
            && let Some(algorithm) = self.overridden(collective, &case)
        {
            return algorithm;
        }
        let best = match case.is_in_memory() {
            true => measured(collective, &case),
            false => cheapest(collective, &case),
        };
        best.expect("a collective has a row for everything")
    }

    /// Members that share memory publish vectors of `published` bytes, whatever the collective: the
    /// choice of the table, without the table.
    #[inline(always)]
    pub fn takes_buffer(&self, published: usize, ranks: usize) -> bool {
        self.overrides.is_empty() && published < ALWAYS_SHARED && ranks > 1
    }

    /// True if no setting selects an algorithm, so members may choose by measurement.
    pub(crate) fn is_free(&self) -> bool {
        self.overrides.is_empty()
    }

    /// The user's choice, where the algorithm can serve this call.
    #[cold]
    fn overridden(&self, collective: Collective, case: &Case) -> Option<Algorithm> {
        let fits = |one: &&Override| one.collective == collective && one.from <= case.bytes;
        let wanted = self.overrides.iter().find(fits)?.algorithm;
        let mut rows = rows(collective).iter();
        let serves = rows.any(|row| row.algorithm == wanted && row.can(case));
        serves.then_some(wanted)
    }
}

#[cfg(test)]
mod chosen_tests;

#[cfg(test)]
mod tests;
