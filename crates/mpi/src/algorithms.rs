//! Algorithms of collective operations: one table, whose choices the knob `collectives` overrides.
//!
//! Invariant: all members of a communicator choose the same algorithm, so a choice
//! depends only on what all of them know.

use knobs::AlgorithmChoices;

use crate::{Class, Error, Result};

/// Declares an enum whose variants have names in the knob `collectives`.
macro_rules! named {
    ($(#[$of_enum:meta])* $enum:ident { $($(#[$of_variant:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum $enum {
            $($(#[$of_variant])* $variant,)*
        }

        impl $enum {
            /// All of them, in the order of their declaration.
            pub const ALL: &[$enum] = &[$($enum::$variant,)*];

            /// Its name in the knob `collectives`.
            pub fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)*
                }
            }
        }
    };
}

named! {
    /// A collective operation that has more than one algorithm.
    Collective {
        /// `MPI_Barrier`.
        Barrier = "barrier",
        /// `MPI_Bcast`.
        Bcast = "bcast",
        /// `MPI_Gather`.
        Gather = "gather",
        /// `MPI_Scatter`.
        Scatter = "scatter",
        /// `MPI_Allgather` and `MPI_Allgatherv`.
        Allgather = "allgather",
        /// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`.
        Alltoall = "alltoall",
        /// `MPI_Reduce`.
        Reduce = "reduce",
        /// `MPI_Allreduce`.
        Allreduce = "allreduce",
        /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
        ReduceScatter = "reduce_scatter",
        /// `MPI_Scan` and `MPI_Exscan`.
        Scan = "scan",
    }
}

named! {
    /// An algorithm of a collective operation.
    Algorithm {
        /// Exchanges with the neighbours at distance 1, 2, 4…
        Dissemination = "dissemination",
        /// To rank 0 and back along a binomial tree.
        Tree = "tree",
        /// Along a binomial tree.
        Binomial = "binomial",
        /// One rank with all others, one message each.
        Linear = "linear",
        /// A scatter of the message, then an allgather of its parts.
        ScatterAllgather = "scatter-allgather",
        /// From rank to rank, in pieces.
        Chain = "chain",
        /// Exchanges with partners at distance 1, 2, 4…, of twice as much each time.
        RecursiveDoubling = "recursive-doubling",
        /// Exchanges with partners, of half as much each time.
        RecursiveHalving = "recursive-halving",
        /// Bundles of blocks to ranks at distance 1, 2, 4… (Bruck and others 1997).
        Bruck = "bruck",
        /// Blocks from neighbour to neighbour in a circle.
        Ring = "ring",
        /// Exchanges with each partner in turn.
        Pairwise = "pairwise",
        /// Reduction of parts by halving, then an allgather of the parts (Rabenseifner 2004).
        Rabenseifner = "rabenseifner",
        /// A reduction to rank 0, then a broadcast of its result.
        ReduceBcast = "reduce-bcast",
        /// A reduction to rank 0, then a scatter of its result.
        ReduceScatter = "reduce-scatter",
        /// Each member copies from and to the memory of the others.
        Direct = "direct",
        /// Each member publishes its vector to all others in a collective buffer.
        Shared = "shared",
    }
}

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
    /// Shared memory, blocks of one size, and a predefined operation if any.
    SharedMemory,
    /// Two members that share memory.
    Pair,
    /// Several members that share memory, more than two.
    Crowd,
    /// Shared memory, and access of each member to the memory of all.
    SingleCopy,
}

/// A row of the table: an algorithm, and the sizes from which on it is taken. Of the rows that fit
/// a call, the last counts.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The algorithm that the row is for.
    pub algorithm: Algorithm,
    /// Least bytes: of the vector (bcast, reductions), of one rank's block (gather, scatter,
    /// alltoall), of all blocks together (allgather).
    pub from: usize,
    /// Least number of ranks.
    pub ranks: usize,
    /// The condition on the call.
    pub needs: Needs,
}

/// Least bytes of a row that only the knob selects.
const NEVER: usize = usize::MAX;

const fn row(algorithm: Algorithm, from: usize, ranks: usize, needs: Needs) -> Row {
    Row {
        algorithm,
        from,
        ranks,
        needs,
    }
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

use {Algorithm as A, Needs as N};

const BARRIER: &[Row] = &[
    row(A::Tree, NEVER, 0, N::Nothing),
    row(A::Dissemination, 0, 0, N::Nothing),
    row(A::Shared, 0, 2, N::SharedMemory),
];

const BCAST: &[Row] = &[
    row(A::Chain, NEVER, 0, N::Nothing),
    row(A::Linear, NEVER, 0, N::Nothing),
    row(A::Binomial, 0, 0, N::Nothing),
    row(A::ScatterAllgather, 64 << 10, 8, N::Nothing),
    row(A::Direct, NEVER, 3, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
    row(A::Binomial, 8 << 10, 2, N::Pair),
];

const GATHER: &[Row] = &[
    row(A::Linear, 0, 0, N::Nothing),
    row(A::Binomial, 0, 0, N::Even),
    row(A::Linear, 4 << 10, 0, N::Nothing),
    row(A::Direct, NEVER, 2, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
    row(A::Linear, 128 << 10, 2, N::Pair),
];

const SCATTER: &[Row] = &[
    row(A::Linear, 0, 0, N::Nothing),
    row(A::Binomial, 0, 0, N::Even),
    row(A::Linear, 4 << 10, 0, N::Nothing),
    row(A::Direct, NEVER, 2, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
    row(A::Linear, 256 << 10, 2, N::Pair),
    row(A::Linear, 32 << 10, 3, N::Crowd),
];

const ALLGATHER: &[Row] = &[
    row(A::Bruck, 0, 0, N::Nothing),
    row(A::RecursiveDoubling, 0, 0, N::EvenPowerOfTwo),
    row(A::Ring, 64 << 10, 0, N::Nothing),
    row(A::Direct, 512 << 10, 3, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
    row(A::Ring, 16 << 10, 2, N::Pair),
];

const ALLTOALL: &[Row] = &[
    row(A::Linear, 0, 0, N::Nothing),
    row(A::Bruck, 0, 8, N::Even),
    row(A::Linear, 256, 0, N::Nothing),
    row(A::Pairwise, 32 << 10, 0, N::Nothing),
    row(A::Shared, 0, 2, N::SharedMemory),
    row(A::Linear, 8 << 10, 2, N::Pair),
    row(A::Direct, 512 << 10, 3, N::SingleCopy),
];

const REDUCE: &[Row] = &[
    row(A::Binomial, 0, 0, N::Nothing),
    row(A::Rabenseifner, 32 << 10, 0, N::Nothing),
    row(A::Direct, 8 << 10, 3, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
];

const ALLREDUCE: &[Row] = &[
    row(A::Ring, NEVER, 0, N::Commutative),
    row(A::ReduceBcast, NEVER, 0, N::Nothing),
    row(A::RecursiveDoubling, 0, 0, N::Nothing),
    row(A::Rabenseifner, 8 << 10, 0, N::Nothing),
    row(A::Direct, 8 << 10, 3, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
    row(A::Rabenseifner, 64 << 10, 2, N::Pair),
];

const REDUCE_SCATTER: &[Row] = &[
    row(A::ReduceScatter, 0, 0, N::Nothing),
    row(A::RecursiveHalving, 0, 0, N::Commutative),
    row(A::Pairwise, 256 << 10, 0, N::Commutative),
    row(A::Direct, 8 << 10, 3, N::SingleCopy),
    row(A::Shared, 0, 2, N::SharedMemory),
];

const SCAN: &[Row] = &[
    row(A::Chain, NEVER, 0, N::Nothing),
    row(A::RecursiveDoubling, 0, 0, N::Nothing),
];

/// The facts of a call that decide on its algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Bytes, counted as in [`Row::from`].
    pub bytes: usize,
    /// Members of the communicator.
    pub ranks: usize,
    /// The operation is commutative, or there is none.
    pub commutative: bool,
    /// Every member contributes and gets an equal number of bytes.
    pub even: bool,
    /// The members share memory and have a buffer for this call.
    pub shared: bool,
    /// The members can copy directly from and to each other's memory.
    pub direct: bool,
    /// Bytes of the longest vector that a member would publish in shared memory.
    pub published: usize,
}

impl Case {
    /// Blocks of one size, an operation that is commutative if there is one, and no shared memory.
    pub fn usual(bytes: usize, ranks: usize) -> Case {
        Case {
            bytes,
            ranks,
            commutative: true,
            even: true,
            shared: false,
            direct: false,
            published: bytes,
        }
    }
}

impl Row {
    fn can(&self, case: &Case) -> bool {
        match self.needs {
            Needs::Nothing => true,
            Needs::Commutative => case.commutative,
            Needs::Even => case.even,
            Needs::EvenPowerOfTwo => case.even && case.ranks.is_power_of_two(),
            Needs::SharedMemory => case.shared && case.published < usize::MAX,
            Needs::Pair => case.shared && case.ranks == 2,
            Needs::Crowd => case.shared && case.ranks > 2,
            Needs::SingleCopy => case.direct,
        }
    }
}

/// The table with the user's overrides.
pub struct AlgorithmTable {
    overrides: AlgorithmChoices,
}

impl AlgorithmTable {
    /// The table with these overrides; an error names an unknown collective or algorithm.
    pub fn new(overrides: &AlgorithmChoices) -> Result<AlgorithmTable> {
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
            let mut algorithms: Vec<_> = rows(collective)
                .iter()
                .map(|row| row.algorithm.name())
                .collect();
            if !algorithms.contains(&choice.algorithm.as_str()) {
                algorithms.sort_unstable();
                algorithms.dedup();
                let all = algorithms.join(", ");
                return bad(format!(
                    "{} has no algorithm '{}'; it has {all}",
                    choice.collective, choice.algorithm
                ));
            }
        }
        Ok(AlgorithmTable {
            overrides: overrides.clone(),
        })
    }

    /// The algorithm for a call.
    #[inline]
    pub fn algorithm(&self, collective: Collective, case: Case) -> Algorithm {
        if !self.overrides.0.is_empty()
            && let Some(algorithm) = self.overridden(collective, &case)
        {
            return algorithm;
        }
        let fits = |row: &&Row| row.from <= case.bytes && row.ranks <= case.ranks && row.can(&case);
        let best = rows(collective).iter().rev().find(fits);
        best.expect("a collective has a row for everything")
            .algorithm
    }

    /// The user's choice, where the algorithm can serve this call.
    #[cold]
    fn overridden(&self, collective: Collective, case: &Case) -> Option<Algorithm> {
        let wanted = self.overrides.choose(collective.name(), case.bytes)?;
        let row = rows(collective)
            .iter()
            .find(|row| row.algorithm.name() == wanted && row.can(case));
        row.map(|row| row.algorithm)
    }
}

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
    };

    #[test]
    fn every_collective_has_a_row_for_the_hardest_case() {
        for &collective in Collective::ALL {
            for bytes in [0, 1, 1 << 40] {
                AlgorithmTable::new(&AlgorithmChoices::default())
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
    fn a_wish_counts_where_it_can_be_granted() {
        let wish = AlgorithmChoices::parse("allreduce=ring,bcast@1K=chain").unwrap();
        let choice = AlgorithmTable::new(&wish).unwrap();
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
            AlgorithmTable::new(&wish).err().unwrap().to_string()
        };
        assert!(refused("allreduce=quick").contains("rabenseifner"));
        assert!(refused("allreduction=ring").contains("reduce_scatter"));
    }
}
