//! Which algorithm a collective takes: one table, which can be printed, and overridden by the knob `collectives`.
//!
//! What must always hold: all members of a communicator choose alike, so a choice rests only on what all of them know.

use knobs::AlgorithmChoices;

use super::shared;
use crate::{Class, Error, Result};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Collective {
    Barrier,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
}

/// The way of doing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// Everyone with its neighbours at distance 1, 2, 4…
    Dissemination,
    /// To rank 0 and back along a binomial tree.
    Tree,
    /// Along a binomial tree.
    Binomial,
    /// One with all others, one message each.
    Linear,
    /// Spread in parts, then parts to all.
    ScatterAllgather,
    /// From rank to rank in pieces.
    Chain,
    /// With partners at distance 1, 2, 4…, twice as much each time.
    RecursiveDoubling,
    /// With partners, half as much each time.
    RecursiveHalving,
    /// Blocks in bundles to ranks at distance 1, 2, 4… (Bruck and others 1997).
    Bruck,
    /// Blocks from neighbour to neighbour in a circle.
    Ring,
    /// With each partner in turn.
    Pairwise,
    /// Reduced in parts by halving, then parts collected (Rabenseifner 2004).
    Rabenseifner,
    /// A reduction to rank 0, then its result to all.
    ReduceBcast,
    /// A reduction to rank 0, then its parts to their owners.
    ReduceScatter,
    /// Everyone shows its vector to all in shared memory.
    Shared,
}

impl Collective {
    pub const ALL: [Collective; 10] = {
        use Collective::*;
        [
            Barrier,
            Bcast,
            Gather,
            Scatter,
            Allgather,
            Alltoall,
            Reduce,
            Allreduce,
            ReduceScatter,
            Scan,
        ]
    };

    /// As in the knob.
    pub fn name(self) -> &'static str {
        match self {
            Collective::Barrier => "barrier",
            Collective::Bcast => "bcast",
            Collective::Gather => "gather",
            Collective::Scatter => "scatter",
            Collective::Allgather => "allgather",
            Collective::Alltoall => "alltoall",
            Collective::Reduce => "reduce",
            Collective::Allreduce => "allreduce",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::Scan => "scan",
        }
    }
}

impl Algorithm {
    /// As in the knob.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Dissemination => "dissemination",
            Algorithm::Tree => "tree",
            Algorithm::Binomial => "binomial",
            Algorithm::Linear => "linear",
            Algorithm::ScatterAllgather => "scatter-allgather",
            Algorithm::Chain => "chain",
            Algorithm::RecursiveDoubling => "recursive-doubling",
            Algorithm::RecursiveHalving => "recursive-halving",
            Algorithm::Bruck => "bruck",
            Algorithm::Ring => "ring",
            Algorithm::Pairwise => "pairwise",
            Algorithm::Rabenseifner => "rabenseifner",
            Algorithm::ReduceBcast => "reduce-bcast",
            Algorithm::ReduceScatter => "reduce-scatter",
            Algorithm::Shared => "shared",
        }
    }
}

/// What an algorithm cannot do without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    Nothing,
    /// An operation that does not mind the order.
    Commutative,
    /// The same number of bytes from and to everyone, and not in place.
    Even,
    /// The same from everyone, and a power of two of ranks.
    EvenPowerOfTwo,
    /// Shared memory, a blocking call, a predefined operation if any, and at most [`shared::LONGEST`] bytes.
    SharedMemory,
}

/// "From so many bytes and so many ranks on, this algorithm": of the rows that fit, the last counts.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub algorithm: Algorithm,
    /// Bytes of the vector (bcast, reductions), of one rank's block (gather, scatter, alltoall), of all blocks together
    /// (allgather).
    pub from: usize,
    /// Ranks at least.
    pub ranks: usize,
    pub needs: Needs,
}

const NEVER: usize = usize::MAX;

/// The rows of a collective. One that begins at [`NEVER`] is there for the knob only.
pub const fn rows(of: Collective) -> &'static [Row] {
    use {Algorithm as A, Needs as N};
    const fn row(algorithm: A, from: usize, ranks: usize, needs: N) -> Row {
        Row {
            algorithm,
            from,
            ranks,
            needs,
        }
    }
    match of {
        Collective::Barrier => {
            &const {
                [
                    row(A::Tree, NEVER, 0, N::Nothing),
                    row(A::Dissemination, 0, 0, N::Nothing),
                    row(A::Shared, 0, 2, N::SharedMemory),
                ]
            }
        }
        Collective::Bcast => {
            &const {
                [
                    row(A::Chain, NEVER, 0, N::Nothing),
                    row(A::Linear, NEVER, 0, N::Nothing),
                    row(A::Binomial, 0, 0, N::Nothing),
                    row(A::ScatterAllgather, 64 << 10, 8, N::Nothing),
                    row(A::Shared, 0, 2, N::SharedMemory),
                ]
            }
        }
        Collective::Gather | Collective::Scatter => {
            &const {
                [
                    row(A::Linear, 0, 0, N::Nothing),
                    row(A::Binomial, 0, 0, N::Even),
                    row(A::Linear, 4 << 10, 0, N::Nothing),
                ]
            }
        }
        Collective::Allgather => {
            &const {
                [
                    row(A::Bruck, 0, 0, N::Nothing),
                    row(A::RecursiveDoubling, 0, 0, N::EvenPowerOfTwo),
                    row(A::Ring, 64 << 10, 0, N::Nothing),
                ]
            }
        }
        Collective::Alltoall => {
            &const {
                [
                    row(A::Linear, 0, 0, N::Nothing),
                    row(A::Bruck, 0, 8, N::Even),
                    row(A::Linear, 256, 0, N::Nothing),
                    row(A::Pairwise, 32 << 10, 0, N::Nothing),
                ]
            }
        }
        Collective::Reduce => {
            &const {
                [
                    row(A::Binomial, 0, 0, N::Nothing),
                    row(A::Rabenseifner, 32 << 10, 0, N::Nothing),
                    row(A::Shared, 0, 2, N::SharedMemory),
                ]
            }
        }
        Collective::Allreduce => {
            &const {
                [
                    row(A::Ring, NEVER, 0, N::Commutative),
                    row(A::ReduceBcast, NEVER, 0, N::Nothing),
                    row(A::RecursiveDoubling, 0, 0, N::Nothing),
                    row(A::Rabenseifner, 8 << 10, 0, N::Nothing),
                    row(A::Shared, 0, 2, N::SharedMemory),
                ]
            }
        }
        Collective::ReduceScatter => {
            &const {
                [
                    row(A::ReduceScatter, 0, 0, N::Nothing),
                    row(A::RecursiveHalving, 0, 0, N::Commutative),
                    row(A::Pairwise, 256 << 10, 0, N::Commutative),
                ]
            }
        }
        Collective::Scan => {
            &const {
                [
                    row(A::Chain, NEVER, 0, N::Nothing),
                    row(A::RecursiveDoubling, 0, 0, N::Nothing),
                ]
            }
        }
    }
}

/// What a choice rests on.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub bytes: usize,
    pub ranks: usize,
    /// See [`Needs`].
    pub commutative: bool,
    pub even: bool,
    pub shared: bool,
}

impl Row {
    fn can(&self, case: &Case) -> bool {
        match self.needs {
            Needs::Nothing => true,
            Needs::Commutative => case.commutative,
            Needs::Even => case.even,
            Needs::EvenPowerOfTwo => case.even && case.ranks.is_power_of_two(),
            Needs::SharedMemory => case.shared && case.bytes <= shared::LONGEST,
        }
    }
}

/// The table with the user's choices.
pub struct Choice {
    overrides: AlgorithmChoices,
}

impl Choice {
    /// An error for a choice of something that is not there.
    pub fn new(overrides: &AlgorithmChoices) -> Result<Choice> {
        for choice in &overrides.0 {
            let bad = |detail| {
                Err(Error::new(
                    Class::ARG,
                    format!("FISHPLATE_COLLECTIVES: {detail}"),
                ))
            };
            let known = Collective::ALL
                .into_iter()
                .find(|of| of.name() == choice.collective);
            let Some(collective) = known else {
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
        Ok(Choice {
            overrides: overrides.clone(),
        })
    }

    #[inline]
    pub fn algorithm(&self, collective: Collective, case: Case) -> Algorithm {
        if !self.overrides.0.is_empty()
            && let Some(algorithm) = self.wanted(collective, &case)
        {
            return algorithm;
        }
        let fits = |row: &&Row| row.from <= case.bytes && row.ranks <= case.ranks && row.can(&case);
        let best = rows(collective).iter().rev().find(fits);
        best.expect("a collective has a row for everything")
            .algorithm
    }

    #[cold]
    fn wanted(&self, collective: Collective, case: &Case) -> Option<Algorithm> {
        let wanted = self.overrides.choose(collective.name(), case.bytes)?;
        let row = rows(collective)
            .iter()
            .find(|row| row.algorithm.name() == wanted && row.can(case));
        row.map(|row| row.algorithm)
    }
}

/// The whole table, a line for each row: for people.
pub fn lines() -> impl Iterator<Item = String> {
    let of = |collective: Collective| {
        rows(collective)
            .iter()
            .map(move |row| format!("{:<15} {row}", collective.name()))
    };
    Collective::ALL.into_iter().flat_map(of)
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = knobs::KnobValue::show(&knobs::Bytes(self.from));
        let when = match (self.from, self.ranks) {
            (NEVER, _) => "on request".to_string(),
            (0, 0) => "always".to_string(),
            (_, 0) => format!("from {bytes} on"),
            (0, ranks) => format!("from {ranks} ranks on"),
            (_, ranks) => format!("from {bytes} and {ranks} ranks on"),
        };
        let needs = match self.needs {
            Needs::Nothing => String::new(),
            Needs::Commutative => ", if the operation is commutative".into(),
            Needs::Even => ", for blocks of one size".into(),
            Needs::EvenPowerOfTwo => ", for blocks of one size and a power of two of ranks".into(),
            Needs::SharedMemory => format!(
                ", blocking, up to {} bytes, where memory is shared",
                shared::LONGEST
            ),
        };
        write!(f, "{:<19} {when}{needs}", self.algorithm.name())
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
    };

    #[test]
    fn every_collective_has_a_row_for_the_hardest_case() {
        for collective in Collective::ALL {
            for bytes in [0, 1, 1 << 40] {
                Choice::new(&AlgorithmChoices::default())
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
        let choice = Choice::new(&wish).unwrap();
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
            Choice::new(&wish).err().unwrap().to_string()
        };
        assert!(refused("allreduce=quick").contains("rabenseifner"));
        assert!(refused("allreduction=ring").contains("reduce_scatter"));
    }
}
