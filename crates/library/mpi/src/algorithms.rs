//! Algorithms of collective operations: one table, whose choices the knob `collectives` overrides.
//!
//! The rows of a collective are algorithms, each with the restrictions under which it works; an
//! algorithm's cost is in nanoseconds. The cheapest row that works is chosen; of equal ones, the
//! first. Members that share the memory of one host do not compare costs, because times there
//! depend on caches and cores: they use the last row whose least size, found by measurement, is not
//! above theirs.
//!
//! Invariant: all members of a communicator choose the same algorithm, so a choice depends only on
//! facts that all of them know: their number, their hosts, and the properties of the network on
//! which they have agreed.
//!
//! Reductions give the same bits from run to run, with any operation, if the ranks, their hosts,
//! the machine's network and the settings are the same: a choice has no other inputs, and every
//! algorithm combines operands in an order that does not depend on the order of arrivals. Where a
//! choice also depends on what a host permits, it stays within one [`Order`].

mod behind_barrier;
pub(crate) mod between;
pub(crate) mod branches;
mod case;
pub(crate) mod contest;
mod cost;
mod names;
mod network;
mod order;
mod overrides;
mod pattern_costs;
mod pieces;
pub(crate) mod recent;
mod rooted;
mod shared_choices;
mod trees;

use knobs::{AlgorithmChoices, TreeArity};

use case::ALWAYS_SHARED;
pub use case::Case;
use contest::WAYS;
pub use names::{Algorithm, Collective};
pub use network::Network;
pub use order::Order;
use overrides::Override;
pub(crate) use pieces::{CACHED_PIECE, CHAIN_PIECE, LEVEL_PIECE};
pub use shared_choices::SharedChoices;

use crate::Result;

/// A set of conditions on a call without which an algorithm does not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restrictions(u16);

impl Restrictions {
    /// No condition: the algorithm can always be used.
    const NONE: Restrictions = Restrictions(0);
    /// The condition that the operation is commutative.
    const COMMUTATIVE: Restrictions = Restrictions(1 << 0);
    /// Every member sends and receives an equal number of bytes, and not in place.
    const EVEN: Restrictions = Restrictions(1 << 1);
    /// The condition that the number of members is a power of two.
    const POWER_OF_TWO: Restrictions = Restrictions(1 << 2);
    /// The members are on one host whose ranks reach each other through a device.
    const DEVICE_WITHIN: Restrictions = Restrictions(1 << 3);
    /// The members are on several hosts, and one of these has several members.
    const LEVELS: Restrictions = Restrictions(1 << 4);
    /// The operation is commutative, or the ranks of each host are consecutive.
    const IN_ORDER: Restrictions = Restrictions(1 << 5);
    /// The condition that every host has several ranks.
    const SEVERAL_EACH: Restrictions = Restrictions(1 << 6);
    /// The condition that the ranks of each host are consecutive.
    const CONTIGUOUS: Restrictions = Restrictions(1 << 7);
    /// The condition that all hosts have equal numbers of ranks.
    const EQUAL_HOSTS: Restrictions = Restrictions(1 << 8);
    /// The condition that the members share memory.
    const SHARED: Restrictions = Restrictions(1 << 9);
    /// Members can publish their vectors: the blocks have one size, and the operation, if any, is
    /// predefined.
    const PUBLISHED: Restrictions = Restrictions(1 << 10);
    /// The condition that there are more than two members.
    const MORE_THAN_TWO: Restrictions = Restrictions(1 << 11);
    /// Each member has access to the memory of all. A host may refuse it: a reduction for which it
    /// decides has another row of the same [`Order`].
    const SINGLE_COPY: Restrictions = Restrictions(1 << 12);
    /// The members are on one host, whose ranks share memory.
    const IN_MEMORY: Restrictions = Restrictions(1 << 13);

    /// The conditions of both sets.
    const fn and(self, others: Restrictions) -> Restrictions {
        Restrictions(self.0 | others.0)
    }

    /// The conditions that a call fulfils.
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
            (R::IN_MEMORY, case.is_in_memory()),
        ];
        let met = conditions.into_iter().filter(|(_, is_met)| *is_met);
        met.fold(R::NONE, |all, (restriction, _)| all.and(restriction))
    }

    /// True if the conditions `met`, which hold, include all of these.
    fn are_among(self, met: Restrictions) -> bool {
        self.0 & !met.0 == 0
    }
}

/// A row of the table: an algorithm with its restrictions.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The algorithm to which the row belongs.
    pub algorithm: Algorithm,
    /// The conditions that a call must fulfil for this row.
    pub restrictions: Restrictions,
    /// Among members that share memory: the least number of bytes for which the row is used. If
    /// several rows apply to a call, the last of them is used.
    pub from: usize,
    /// Among members that share memory: the least number of ranks for which the row is used.
    pub ranks: usize,
}

/// The `from` of a row that members with shared memory do not use unless the knob selects it.
const NEVER: usize = usize::MAX;

const fn row(algorithm: Algorithm, from: usize, ranks: usize, restrictions: Restrictions) -> Row {
    Row {
        algorithm,
        restrictions,
        from,
        ranks,
    }
}

/// The least number of bytes of a reduction by direct copies. (By a collective buffer, an allreduce
/// of 512 KiB to 2 MiB took two and four ranks of two near cores 1.0 to 2.2 times as long on an
/// Intel Xeon, and one of 1 MiB four ranks 2.3 times on an AMD EPYC.)
const DIRECT_REDUCTION: usize = 512 << 10;

/// A row for calls on several hosts.
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

/// The rows of the table for a collective: one for each algorithm, or several with different
/// restrictions.
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

/// The end times of the ranks of an operation, by the formula of an algorithm.
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

/// The time of an algorithm by which members compare it: the mean of all ranks, in nanoseconds.
fn time(of: Collective, algorithm: Algorithm, case: &Case) -> u64 {
    let followed = rooted::behind_barrier(of, algorithm, case);
    followed.unwrap_or_else(|| ends(of, algorithm, case)).mean
}

/// The cheapest flat (not two-level) algorithm; `None` if none works.
fn cheapest_flat(of: Collective, case: &Case) -> Option<Algorithm> {
    let works = |row: &&Row| !row.has_levels() && row.can(case);
    let rows = rows(of).iter().filter(works);
    let algorithms = rows.map(|row| row.algorithm);
    algorithms.min_by_key(|&algorithm| time(of, algorithm, case))
}

use trees::Ends;
use {Algorithm as A, Restrictions as R};

/// The conditions of algorithms that use a collective buffer.
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
    row(A::Linear, 8 << 10, 3, R::IN_MEMORY),
    row(A::Direct, DIRECT_REDUCTION, 3, R::SINGLE_COPY),
    row(A::Shared, 0, 2, BUFFER),
];

const ALLREDUCE: &[Row] = &[
    row(A::Ring, NEVER, 0, R::COMMUTATIVE),
    row(A::ReduceBcast, NEVER, 0, R::NONE),
    row(A::RecursiveDoubling, 0, 0, R::NONE),
    row(A::Rabenseifner, 8 << 10, 0, R::NONE),
    hosts(A::TwoLevel, R::IN_ORDER),
    hosts(A::TwoLevelParts, R::COMMUTATIVE.and(R::SEVERAL_EACH)),
    row(A::Linear, 8 << 10, 3, R::IN_MEMORY),
    row(A::Direct, DIRECT_REDUCTION, 3, R::SINGLE_COPY),
    row(A::Shared, 0, 2, BUFFER),
    row(A::Direct, DIRECT_REDUCTION, 2, BUFFER.and(R::SINGLE_COPY)),
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
    row(A::Linear, 8 << 10, 3, R::IN_MEMORY),
    row(A::Direct, DIRECT_REDUCTION, 3, R::SINGLE_COPY),
    row(A::Shared, 0, 2, BUFFER),
];

const SCAN: &[Row] = &[
    row(A::Chain, NEVER, 0, R::NONE),
    row(A::RecursiveDoubling, 0, 0, R::NONE),
    hosts(A::TwoLevel, R::CONTIGUOUS),
    row(A::Shared, 0, 2, BUFFER),
];

impl Row {
    /// True if the row is for several hosts only.
    fn has_levels(&self) -> bool {
        R::LEVELS.are_among(self.restrictions)
    }

    /// True if the algorithm of the row can be used in this case.
    pub(crate) fn can(&self, case: &Case) -> bool {
        self.restrictions.are_among(Restrictions::met_by(case))
    }
}

/// The algorithm for ranks that share memory: that of the last row whose restrictions and least
/// sizes ([`Row::from`], [`Row::ranks`]) the call meets. Measurements found these sizes. `None`:
/// there is no such row.
fn measured(collective: Collective, case: &Case) -> Option<Algorithm> {
    let met = Restrictions::met_by(case);
    let fits = |row: &&Row| {
        row.from <= case.bytes && row.ranks <= case.ranks && row.restrictions.are_among(met)
    };
    let last = rows(collective).iter().rev().find(fits);
    last.map(|row| row.algorithm)
}

/// The algorithm with the least estimated time, of those that the call allows.
fn cheapest(collective: Collective, case: &Case) -> Option<Algorithm> {
    let rows = rows(collective).iter().filter(|row| row.can(case));
    rows.map(|row| row.algorithm)
        .min_by_key(|&algorithm| time(collective, algorithm, case))
}

/// The predicted times of the algorithms that work in a case, in the order of the table: each the
/// mean of all ranks, in nanoseconds. Empty for members that share memory, for which no times are
/// predicted.
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

/// The table of algorithms, with the choices that the user has forced.
pub struct AlgorithmTable {
    overrides: Vec<Override>,
    arity: TreeArity,
    /// The choices by costs of the ranks of this process, if it has many.
    shared: Option<SharedChoices>,
}

impl AlgorithmTable {
    /// The table with these overrides, and this number of branches in k-ary trees. An error names
    /// an unknown collective or algorithm.
    pub fn new(overrides: &AlgorithmChoices, arity: TreeArity) -> Result<AlgorithmTable> {
        Ok(AlgorithmTable {
            overrides: overrides::read(overrides, |of| {
                rows(of).iter().map(|row| row.algorithm).collect()
            })?,
            arity,
            shared: None,
        })
    }

    /// The table of a rank that has the choices `shared` with other ranks of its process.
    pub fn sharing(self, shared: Option<SharedChoices>) -> AlgorithmTable {
        AlgorithmTable { shared, ..self }
    }

    /// The number of branches in k-ary trees that the user has set, if any.
    pub(crate) fn arity(&self) -> Option<usize> {
        self.arity.fixed()
    }

    /// The algorithm that the table chooses for a call.
    #[inline]
    pub fn algorithm(&self, collective: Collective, case: Case) -> Algorithm {
        if !self.overrides.is_empty()
            && let Some(algorithm) = self.forced(collective, &case)
        {
            return algorithm;
        }
        let best = match case.is_in_memory() {
            true => measured(collective, &case),
            false => match &self.shared {
                Some(shared) => shared.get_or((collective, case), || cheapest(collective, &case)),
                None => cheapest(collective, &case),
            },
        };
        best.expect("a collective has a row for everything")
    }

    /// The algorithm that the user has forced for a call, if one can be used.
    #[cold]
    fn forced(&self, of: Collective, case: &Case) -> Option<Algorithm> {
        let met = Restrictions::met_by(case);
        let serves = |wanted| {
            let mut rows = rows(of).iter();
            rows.any(|row| row.algorithm == wanted && row.restrictions.are_among(met))
        };
        overrides::forced(&self.overrides, of, case, serves)
    }

    /// True if, in every collective, members that share memory publish vectors of `published` bytes
    /// in a collective buffer. For such calls the table need not be searched.
    #[inline(always)]
    pub fn takes_buffer(&self, published: usize, ranks: usize) -> bool {
        self.overrides.is_empty() && published < ALWAYS_SHARED && ranks > 1
    }

    /// True if no setting selects an algorithm, so members may choose by measurement.
    pub(crate) fn is_free(&self) -> bool {
        self.overrides.is_empty()
    }
}

#[cfg(test)]
mod chosen_tests;

#[cfg(test)]
mod tests;
