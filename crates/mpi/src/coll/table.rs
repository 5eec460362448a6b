//! Which algorithm a collective takes: one table, which can be printed, and overridden by the knob `collectives`.
//!
//! What must always hold: all members of a communicator choose alike, so a choice rests only on what all of them know.

use knobs::Overrides;

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
    /// Parts from neighbour to neighbour in a circle.
    Ring,
    /// With each partner in turn.
    Pairwise,
    /// Reduced in parts by halving, then parts collected (Rabenseifner 2004).
    Rabenseifner,
    /// A reduction to rank 0, then its result to all.
    ReduceBcast,
    /// A reduction to rank 0, then its parts to their owners.
    ReduceScatter,
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
}

/// "From so many bytes and so many ranks on, this algorithm": of the rows that fit, the last counts.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub collective: Collective,
    pub algorithm: Algorithm,
    /// Bytes of the vector (bcast, reductions), of one rank's block (gather, scatter, alltoall), of all blocks together
    /// (allgather).
    pub from: usize,
    /// Ranks at least.
    pub ranks: usize,
    pub needs: Needs,
}

const NEVER: usize = usize::MAX;

/// The table. A row that begins at [`NEVER`] is there for the knob only.
pub const TABLE: &[Row] = &{
    use {Algorithm as A, Collective as C, Needs as N};
    const fn row(collective: C, algorithm: A, from: usize, ranks: usize, needs: N) -> Row {
        Row {
            collective,
            algorithm,
            from,
            ranks,
            needs,
        }
    }
    [
        row(C::Barrier, A::Dissemination, 0, 0, N::Nothing),
        row(C::Barrier, A::Tree, NEVER, 0, N::Nothing),
        row(C::Bcast, A::Binomial, 0, 0, N::Nothing),
        row(C::Bcast, A::ScatterAllgather, 64 << 10, 8, N::Nothing),
        row(C::Bcast, A::Chain, NEVER, 0, N::Nothing),
        row(C::Bcast, A::Linear, NEVER, 0, N::Nothing),
        row(C::Gather, A::Binomial, 0, 0, N::Even),
        row(C::Gather, A::Linear, 4 << 10, 0, N::Nothing),
        row(C::Scatter, A::Binomial, 0, 0, N::Even),
        row(C::Scatter, A::Linear, 4 << 10, 0, N::Nothing),
        row(C::Allgather, A::Bruck, 0, 0, N::Nothing),
        row(C::Allgather, A::RecursiveDoubling, 0, 0, N::EvenPowerOfTwo),
        row(C::Allgather, A::Ring, 64 << 10, 0, N::Nothing),
        row(C::Alltoall, A::Linear, 0, 0, N::Nothing),
        row(C::Alltoall, A::Bruck, 0, 8, N::Even),
        row(C::Alltoall, A::Linear, 256, 0, N::Nothing),
        row(C::Alltoall, A::Pairwise, 32 << 10, 0, N::Nothing),
        row(C::Reduce, A::Binomial, 0, 0, N::Nothing),
        row(C::Reduce, A::Rabenseifner, 32 << 10, 0, N::Nothing),
        row(C::Allreduce, A::RecursiveDoubling, 0, 0, N::Nothing),
        row(C::Allreduce, A::Rabenseifner, 8 << 10, 0, N::Nothing),
        row(C::Allreduce, A::Ring, NEVER, 0, N::Commutative),
        row(C::Allreduce, A::ReduceBcast, NEVER, 0, N::Nothing),
        row(C::ReduceScatter, A::ReduceScatter, 0, 0, N::Nothing),
        row(C::ReduceScatter, A::RecursiveHalving, 0, 0, N::Commutative),
        row(C::ReduceScatter, A::Pairwise, 256 << 10, 0, N::Commutative),
        row(C::Scan, A::RecursiveDoubling, 0, 0, N::Nothing),
        row(C::Scan, A::Chain, NEVER, 0, N::Nothing),
    ]
};

/// What a choice rests on.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub bytes: usize,
    pub ranks: usize,
    /// See [`Needs`].
    pub commutative: bool,
    pub even: bool,
}

impl Row {
    fn can(&self, case: &Case) -> bool {
        match self.needs {
            Needs::Nothing => true,
            Needs::Commutative => case.commutative,
            Needs::Even => case.even,
            Needs::EvenPowerOfTwo => case.even && case.ranks.is_power_of_two(),
        }
    }
}

/// The table with the user's choices.
pub struct Choice {
    overrides: Overrides,
}

impl Choice {
    /// An error for a choice of something that is not there.
    pub fn new(overrides: &Overrides) -> Result<Choice> {
        for choice in &overrides.0 {
            let bad = |detail| {
                Err(Error::new(
                    Class::ARG,
                    format!("FISHPLATE_COLLECTIVES: {detail}"),
                ))
            };
            let Some(collective) = Collective::ALL
                .into_iter()
                .find(|of| of.name() == choice.collective)
            else {
                let all: Vec<_> = Collective::ALL.iter().map(|of| of.name()).collect();
                return bad(format!(
                    "there is no collective '{}'; there are {}",
                    choice.collective,
                    all.join(", ")
                ));
            };
            let mut rows = TABLE.iter().filter(|row| row.collective == collective);
            if !rows
                .clone()
                .any(|row| row.algorithm.name() == choice.algorithm)
            {
                let mut all: Vec<_> = rows.by_ref().map(|row| row.algorithm.name()).collect();
                all.sort_unstable();
                all.dedup();
                let all = all.join(", ");
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

    pub fn algorithm(&self, collective: Collective, case: Case) -> Algorithm {
        let rows = TABLE
            .iter()
            .filter(|row| row.collective == collective && row.can(&case));
        if !self.overrides.0.is_empty()
            && let Some(wanted) = self.overrides.choose(collective.name(), case.bytes)
            && let Some(row) = rows.clone().find(|row| row.algorithm.name() == wanted)
        {
            return row.algorithm;
        }
        let mut fits = rows.filter(|row| row.from <= case.bytes && row.ranks <= case.ranks);
        fits.next_back()
            .expect("the first row of a collective always fits")
            .algorithm
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let when = match (self.from, self.ranks) {
            (NEVER, _) => "on request".to_string(),
            (0, 0) => "always".to_string(),
            (bytes, 0) => format!("from {} on", knobs::Value::show(&knobs::Bytes(bytes))),
            (0, ranks) => format!("from {ranks} ranks on"),
            (bytes, ranks) => format!(
                "from {} and {ranks} ranks on",
                knobs::Value::show(&knobs::Bytes(bytes))
            ),
        };
        let needs = match self.needs {
            Needs::Nothing => "",
            Needs::Commutative => ", if the operation is commutative",
            Needs::Even => ", for blocks of one size",
            Needs::EvenPowerOfTwo => ", for blocks of one size and a power of two of ranks",
        };
        write!(
            f,
            "{:<15} {:<19} {when}{needs}",
            self.collective.name(),
            self.algorithm.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knobs::Value;

    const CASE: Case = Case {
        bytes: 8,
        ranks: 5,
        commutative: false,
        even: false,
    };

    #[test]
    fn every_collective_has_a_row_for_the_hardest_case() {
        for collective in Collective::ALL {
            for bytes in [0, 1, 1 << 40] {
                Choice::new(&Overrides::default()).unwrap().algorithm(
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
        let wish = Overrides::parse("allreduce=ring,bcast@1K=chain").unwrap();
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
            let wish = Overrides::parse(text).unwrap();
            Choice::new(&wish).err().unwrap().to_string()
        };
        assert!(refused("allreduce=quick").contains("rabenseifner"));
        assert!(refused("allreduction=ring").contains("reduce_scatter"));
    }
}
