//! MPI_Alltoall: all of it, or a sample of its rounds where there are too many messages.
//!
//! A sample has rounds of the pairwise exchange at even distances: in round `d` rank `r` sends to
//! rank `r + d` and receives from `r - d`, by MPI_Sendrecv; or several rounds in flight, where the
//! library's algorithm has them so. The bytes that leave a node in the sample, divided by its time,
//! stand for those of the whole operation.

use trace::Trace;

use super::calls::{self, program};
use crate::placement::Job;

/// The number of ranks above which a sample stands for the operation.
pub(super) const WHOLE: usize = 144;
/// The number of rounds of a sample.
pub(super) const ROUNDS: usize = 32;
/// The rounds that are in flight at once in this library's linear algorithm.
const WINDOW: usize = 32;

/// The rounds of an operation that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    /// All, by MPI_Alltoall.
    All,
    /// This number of them, one after the other.
    InTurn(usize),
    /// This number of them, [`WINDOW`] in flight at once.
    AtOnce(usize),
}

impl Rounds {
    /// The rounds for this number of ranks, with an algorithm of the library.
    pub(super) fn of(ranks: usize, is_linear: bool) -> Rounds {
        match is_linear {
            _ if ranks <= WHOLE => Rounds::All,
            true => Rounds::AtOnce(ROUNDS),
            false => Rounds::InTurn(ROUNDS),
        }
    }
}

/// The distances of `rounds` rounds of an exchange among `ranks` ranks.
fn distances(ranks: usize, rounds: usize) -> Vec<usize> {
    let all = ranks - 1;
    let rounds = rounds.min(all);
    let middle = |round: usize| 1 + (2 * round + 1) * all / (2 * rounds);
    (0..rounds).map(middle).collect()
}

/// The program: the operation twice, with marks around the second.
pub(super) fn trace(ranks: usize, bytes: u64, rounds: Rounds) -> Trace {
    let twice = |calls: &mut calls::Calls, make: &dyn Fn(&mut calls::Calls)| {
        make(calls);
        calls.mark();
        make(calls);
        calls.mark();
    };
    program(ranks, |calls| match rounds {
        Rounds::All => twice(calls, &|calls| calls.alltoall(bytes)),
        Rounds::InTurn(rounds) => twice(calls, &|calls| {
            let rank = calls.rank;
            for distance in distances(ranks, rounds) {
                let (to, from) = (rank + distance, rank + ranks - distance);
                calls.exchange(to % ranks, from % ranks, bytes);
            }
        }),
        Rounds::AtOnce(rounds) => twice(calls, &|calls| {
            let rank = calls.rank;
            for some in distances(ranks, rounds).chunks(WINDOW) {
                let to = some.iter().map(|distance| (rank + distance) % ranks);
                let from = some
                    .iter()
                    .map(|distance| (rank + ranks - distance) % ranks);
                let (to, from): (Vec<_>, Vec<_>) = (to.collect(), from.collect());
                calls.exchange_at_once(&to, &from, bytes);
            }
        }),
    })
}

/// The bytes that leave a node each second, in the mean of all nodes and ranks.
pub(super) fn rate(outcome: &fast::Outcome, job: Job, bytes: u64, rounds: Rounds) -> f64 {
    let times = calls::times(outcome, 0);
    let seconds = times.iter().sum::<f64>() / times.len() as f64;
    leaving(job, rounds) * bytes as f64 / seconds
}

/// The messages that leave a node, in the mean of all nodes.
fn leaving(job: Job, rounds: Rounds) -> f64 {
    let (ranks, nodes) = (job.ranks(), job.nodes as usize);
    let rounds = match rounds {
        Rounds::All => {
            let own = job.per_node as usize;
            return ((nodes - 1) * own * own) as f64;
        }
        Rounds::InTurn(rounds) | Rounds::AtOnce(rounds) => rounds,
    };
    let leaves = |rank: usize, distance| job.node(rank) != job.node((rank + distance) % ranks);
    let all = distances(ranks, rounds).into_iter();
    let count = all.map(|distance| (0..ranks).filter(|rank| leaves(*rank, distance)).count());
    count.sum::<usize>() as f64 / nodes as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::RankOrder;

    #[test]
    fn the_rounds_of_a_sample_lie_at_even_distances() {
        assert_eq!(distances(9, 4), [2, 4, 6, 8]);
        assert_eq!(distances(5, 32), [1, 2, 3, 4]);
        let many = distances(1152, ROUNDS);
        assert_eq!(many.len(), ROUNDS);
        assert!(many.iter().all(|distance| (1..1152).contains(distance)));
    }

    #[test]
    fn all_rounds_of_a_sample_are_the_whole_operation() {
        let job = Job {
            hosts: 4,
            nodes: 4,
            per_node: 6,
            order: RankOrder::Block,
        };
        let all = leaving(job, Rounds::InTurn(23));
        assert_eq!(all, leaving(job, Rounds::All));
        assert_eq!(all, 3.0 * 36.0);
    }

    #[test]
    fn large_operations_are_samples() {
        assert_eq!(Rounds::of(WHOLE, true), Rounds::All);
        assert_eq!(Rounds::of(WHOLE + 1, false), Rounds::InTurn(ROUNDS));
        assert_eq!(Rounds::of(WHOLE + 1, true), Rounds::AtOnce(ROUNDS));
    }
}
