//! Algorithms of collective operations: one table, whose choices the knob `collectives` overrides.
//!
//! The rows of a collective are algorithms, each with the condition under which it works and its
//! cost in nanoseconds. The cheapest row that works is taken; ties go to the earlier row. Within
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

pub(crate) mod branches;
mod case;
mod cost;
mod names;
mod network;
mod pieces;
mod recent;
mod rooted;
mod trees;

use knobs::{AlgorithmChoices, TreeArity};

pub use case::Case;
pub use names::{Algorithm, Collective};
pub use network::Network;
pub(crate) use pieces::{CACHED_PIECE, CHAIN_PIECE, LEVEL_PIECE};
pub(crate) use recent::RecentChoices;

use crate::shape::Spread;
use crate::{Class, Error, Result};

/// A condition without which an algorithm does not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// No condition.
    Nothing,
    /// A commutative operation.
    Commutative,
    /// An equal number of bytes from and to every member, and not in place.
    Even,
    /// An equal number of bytes from every member, and a power of two of members.
    EvenPowerOfTwo,
    /// One host whose ranks reach each other through a device, and a commutative operation.
    Copying,
    /// Several hosts, one of them with several ranks.
    Hosts,
    /// [`Needs::Hosts`], and a commutative operation or consecutive ranks on each host.
    HostsInOrder,
    /// [`Needs::Hosts`], and several ranks on every host.
    HostsFull,
    /// [`Needs::Hosts`], a commutative operation, and several ranks on every host.
    HostsCommutative,
    /// [`Needs::Hosts`], and blocks of one size.
    HostsEven,
    /// [`Needs::Hosts`], and consecutive ranks on each host.
    HostsBlocks,
    /// [`Needs::HostsEven`], and an equal number of consecutive ranks on every host.
    HostsUniform,
    /// Shared memory, blocks of one size, and a predefined operation if any.
    SharedMemory,
    /// Several members that share memory, more than two.
    Crowd,
    /// Shared memory, and access of each member to the memory of all.
    SingleCopy,
}

/// A row of the table: an algorithm, its condition, and its cost.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The algorithm that the row is for.
    pub algorithm: Algorithm,
    /// The condition on the call.
    pub needs: Needs,
    /// Within shared memory: the least bytes for which the row is taken. Of the rows that fit a
    /// call, the last counts.
    pub from: usize,
    /// Within shared memory: the least number of ranks.
    pub ranks: usize,
}

/// Vectors shorter than this, in bytes, are always published where members share memory.
const ALWAYS_SHARED: usize = 8 << 10;
/// Least bytes of a row that is not taken within shared memory unless the knob selects it.
const NEVER: usize = usize::MAX;

const fn row(algorithm: Algorithm, from: usize, ranks: usize, needs: Needs) -> Row {
    Row {
        algorithm,
        needs,
        from,
        ranks,
    }
}

/// A row for several hosts.
const fn hosts(algorithm: Algorithm, needs: Needs) -> Row {
    row(algorithm, NEVER, 0, needs)
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
use {Algorithm as A, Needs as N};

const BARRIER: &[Row] = &[
    row(A::Dissemination, 0, 0, N::Nothing),
    hosts(A::TwoLevel, N::Hosts),
    row(A::Shared, 0, 2, N::SharedMemory),
];

const BCAST: &[Row] = &[
    row(A::Chain, NEVER, 0, N::Nothing),
    row(A::Linear, NEVER, 0, N::Nothing),
    row(A::KAry, NEVER, 0, N::Nothing),
    row(A::Binomial, 0, 0, N::Nothing),
    row(A::ScatterAllgather, 64 << 10, 8, N::Nothing),
    hosts(A::TwoLevel, N::Hosts),
    hosts(A::TwoLevelParts, N::HostsFull),
    row(A::Shared, 0, 2, N::SharedMemory),
];

const GATHER: &[Row] = &[
    row(A::Linear, 0, 0, N::Nothing),
    row(A::Binomial, 0, 0, N::Even),
    row(A::Linear, 4 << 10, 0, N::Nothing),
    hosts(A::TwoLevel, N::Hosts),
    row(A::Shared, 0, 2, N::SharedMemory),
];

const SCATTER: &[Row] = &[
    row(A::Linear, 0, 0, N::Nothing),
    row(A::Binomial, 0, 0, N::Even),
    row(A::Linear, 4 << 10, 0, N::Nothing),
    hosts(A::TwoLevel, N::Hosts),
    row(A::Shared, 0, 2, N::SharedMemory),
    row(A::Linear, 32 << 10, 3, N::Crowd),
];

const ALLGATHER: &[Row] = &[
    row(A::CachedRing, NEVER, 0, N::Copying),
    row(A::Linear, NEVER, 0, N::Nothing),
    row(A::Bruck, 0, 0, N::Nothing),
    row(A::RecursiveDoubling, 0, 0, N::EvenPowerOfTwo),
    row(A::Ring, 64 << 10, 0, N::Nothing),
    hosts(A::TwoLevel, N::Hosts),
    hosts(A::TwoLevelParts, N::HostsUniform),
    row(A::Direct, 512 << 10, 3, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
];

const ALLTOALL: &[Row] = &[
    row(A::Linear, 0, 0, N::Nothing),
    row(A::Bruck, 0, 8, N::Even),
    row(A::Linear, 256, 0, N::Nothing),
    row(A::Pairwise, 32 << 10, 0, N::Nothing),
    hosts(A::TwoLevel, N::HostsEven),
    row(A::Shared, 0, 2, N::SharedMemory),
    row(A::Direct, 512 << 10, 3, N::SingleCopy),
];

const REDUCE: &[Row] = &[
    row(A::KAry, NEVER, 0, N::Nothing),
    row(A::Binomial, 0, 0, N::Nothing),
    row(A::Rabenseifner, 32 << 10, 0, N::Nothing),
    hosts(A::TwoLevel, N::HostsInOrder),
    row(A::Direct, 8 << 10, 3, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
];

const ALLREDUCE: &[Row] = &[
    row(A::Ring, NEVER, 0, N::Commutative),
    row(A::ReduceBcast, NEVER, 0, N::Nothing),
    row(A::RecursiveDoubling, 0, 0, N::Nothing),
    row(A::Rabenseifner, 8 << 10, 0, N::Nothing),
    hosts(A::TwoLevel, N::HostsInOrder),
    hosts(A::TwoLevelParts, N::HostsCommutative),
    row(A::Direct, 8 << 10, 3, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
];

const REDUCE_SCATTER: &[Row] = &[
    row(A::CachedRing, NEVER, 0, N::Copying),
    row(A::Linear, NEVER, 0, N::Nothing),
    row(A::ReduceScatter, 0, 0, N::Nothing),
    row(A::RecursiveHalving, 0, 0, N::Commutative),
    row(A::Pairwise, 256 << 10, 0, N::Commutative),
    hosts(A::TwoLevel, N::HostsBlocks),
    row(A::Direct, 8 << 10, 3, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
];

const SCAN: &[Row] = &[
    row(A::Chain, NEVER, 0, N::Nothing),
    row(A::RecursiveDoubling, 0, 0, N::Nothing),
    hosts(A::TwoLevel, N::HostsBlocks),
    row(A::Shared, 0, 2, N::SharedMemory),
];

impl Row {
    /// The row is for several hosts only.
    fn has_levels(&self) -> bool {
        matches!(
            self.needs,
            Needs::Hosts
                | Needs::HostsInOrder
                | Needs::HostsFull
                | Needs::HostsCommutative
                | Needs::HostsEven
                | Needs::HostsBlocks
                | Needs::HostsUniform
        )
    }

    /// The algorithm works in this case.
    pub(crate) fn can(&self, case: &Case) -> bool {
        match self.needs {
            Needs::Nothing => true,
            Needs::Commutative => case.commutative,
            Needs::Even => case.even,
            Needs::EvenPowerOfTwo => case.even && case.ranks.is_power_of_two(),
            Needs::Copying => case.spread.hosts <= 1 && !case.network.memory && case.commutative,
            Needs::Hosts => case.spread.has_levels(),
            Needs::HostsInOrder => case.spread.has_levels() && case.keeps_order(),
            Needs::HostsFull => case.spread.has_levels() && case.spread.least > 1,
            Needs::HostsCommutative => {
                case.spread.has_levels() && case.spread.least > 1 && case.commutative
            }
            Needs::HostsEven => case.spread.has_levels() && case.even,
            Needs::HostsBlocks => case.spread.has_levels() && case.spread.contiguous,
            Needs::HostsUniform => {
                let Spread {
                    least,
                    most,
                    contiguous,
                    ..
                } = case.spread;
                case.spread.has_levels() && case.even && contiguous && least == most
            }
            Needs::SharedMemory => case.shared && case.published < usize::MAX,
            Needs::Crowd => case.shared && case.ranks > 2,
            Needs::SingleCopy => case.direct,
        }
    }
}

/// The row for ranks that share memory, by measured sizes.
fn measured(collective: Collective, case: &Case) -> Option<Algorithm> {
    let fits = |row: &&Row| row.from <= case.bytes && row.ranks <= case.ranks && row.can(case);
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
mod tests {
    use super::*;
    use knobs::KnobValue;

    const CASE: Case = Case {
        bytes: 8,
        ranks: 5,
        commutative: false,
        even: false,
        shared: false,
        direct: false,
        published: 8,
        spread: Spread {
            hosts: 1,
            least: 5,
            most: 5,
            contiguous: true,
            sharing: 1,
        },
        network: Network::MEMORY,
        arity: None,
    };

    #[test]
    fn every_collective_has_a_row_for_the_hardest_case() {
        for &collective in Collective::ALL {
            for bytes in [0, 1, 1 << 40] {
                AlgorithmTable::new(&AlgorithmChoices::default(), TreeArity::AUTO)
                    .unwrap()
                    .algorithm(
                        collective,
                        Case {
                            bytes,
                            ranks: 1,
                            ..CASE
                        },
                    );
            }
        }
    }

    #[test]
    fn short_vectors_are_shared_as_the_table_says() {
        let table = AlgorithmTable::new(&AlgorithmChoices::default(), TreeArity::AUTO).unwrap();
        for &collective in Collective::ALL {
            let is_shared = |row: &Row| row.algorithm == Algorithm::Shared;
            if !rows(collective).iter().any(is_shared) {
                continue;
            }
            for ranks in [2, 3, 20] {
                for published in [0, 8, ALWAYS_SHARED - 1] {
                    assert!(table.takes_buffer(published, ranks));
                    let case = Case {
                        shared: true,
                        published,
                        ..Case::usual(published, ranks)
                    };
                    assert_eq!(table.algorithm(collective, case), Algorithm::Shared);
                }
            }
        }
    }

    #[test]
    fn a_wish_counts_where_it_can_be_granted() {
        let wish = AlgorithmChoices::parse("allreduce=ring,bcast@1K=chain").unwrap();
        let choice = AlgorithmTable::new(&wish, TreeArity::AUTO).unwrap();
        let commutative = Case {
            commutative: true,
            ..CASE
        };
        assert_eq!(
            choice.algorithm(Collective::Allreduce, commutative),
            Algorithm::Ring
        );
        assert_eq!(
            choice.algorithm(Collective::Allreduce, CASE),
            Algorithm::RecursiveDoubling
        );
        assert_eq!(
            choice.algorithm(Collective::Bcast, CASE),
            Algorithm::Binomial
        );
        assert_eq!(
            choice.algorithm(
                Collective::Bcast,
                Case {
                    bytes: 1024,
                    ..CASE
                }
            ),
            Algorithm::Chain
        );
    }

    #[test]
    fn a_wish_for_nothing_that_exists_is_refused_with_what_does() {
        let refused = |text| {
            let wish = AlgorithmChoices::parse(text).unwrap();
            AlgorithmTable::new(&wish, TreeArity::AUTO)
                .err()
                .unwrap()
                .to_string()
        };
        assert!(refused("allreduce=quick").contains("rabenseifner"));
        assert!(refused("allreduction=ring").contains("reduce_scatter"));
    }
}
