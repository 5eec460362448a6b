//! MPI_Alltoall: all of it, or a sample of its rounds where there are too many messages.
//!
//! In round `d` rank `r` sends to rank `r + d` and receives from rank `r - d`. Samples lie at even
//! distances, and make rounds as the library does:
//! - one after the other (pairwise): [`ROUNDS`] rounds. The bytes that leave a node in the sample,
//!   divided by its time, stand for those of the whole operation;
//! - windows of [`WINDOW`] rounds (linear): all windows with a round inside a node, where copies
//!   and messages take turns, and [`WINDOWS`] of the others, whose time counts for all others.

use std::ops::Range;

use trace::Trace;

use super::calls::{self, Calls, program};
use model::placement::Job;

/// The number of ranks above which a sample stands for the operation.
const WHOLE: usize = 288;
/// The number of rounds of a pairwise sample.
const ROUNDS: usize = 32;
/// The rounds that are in flight at once in this library's linear algorithm.
const WINDOW: usize = 32;
/// The number of windows between nodes in a linear sample.
const WINDOWS: usize = 4;

/// An alltoall of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alltoall {
    pub(super) job: Job,
    /// The bytes of each block.
    pub(super) bytes: u64,
    pub(super) is_linear: bool,
}

/// The rounds of a sample.
#[derive(Clone, Debug, PartialEq)]
enum Sample {
    /// All, by MPI_Alltoall.
    Whole,
    /// Rounds one after the other, by their distances.
    Pairwise(Vec<usize>),
    /// Windows of rounds: those with a round inside a node, those that stand for the others, and
    /// the number of the others.
    Linear([Vec<Range<usize>>; 2], usize),
}

impl Alltoall {
    fn sample(&self) -> Sample {
        match self.is_linear {
            _ if self.job.ranks() <= WHOLE => Sample::Whole,
            true => self.linear(),
            false => Sample::Pairwise(at_even_distances(
                ROUNDS,
                &(1..self.job.ranks()).collect::<Vec<_>>(),
            )),
        }
    }

    fn linear(&self) -> Sample {
        let (ranks, own) = (self.job.ranks(), self.job.per_node as usize);
        let windows = (1..ranks)
            .step_by(WINDOW)
            .map(|first| first..ranks.min(first + WINDOW));
        let is_near = |window: &Range<usize>| window.start < own || window.end > ranks - own + 1;
        let (near, far): (Vec<_>, Vec<_>) = windows.partition(is_near);
        let others = far.len();
        Sample::Linear([near, at_even_distances(WINDOWS, &far)], others)
    }

    /// The program: the operation twice, with marks around the second.
    pub(super) fn trace(&self) -> Trace {
        let (ranks, bytes) = (self.job.ranks(), self.bytes);
        let sample = self.sample();
        program(ranks, |calls| match &sample {
            Sample::Whole => twice(calls, &[|calls: &mut Calls| calls.alltoall(bytes)]),
            Sample::Pairwise(distances) => twice(
                calls,
                &[|calls: &mut Calls| {
                    for distance in distances {
                        let [to, from] = peers(calls.rank, ranks, *distance);
                        calls.exchange(to, from, bytes);
                    }
                }],
            ),
            Sample::Linear(parts, _) => {
                let part = |windows: &[Range<usize>], calls: &mut Calls| {
                    for window in windows {
                        let rank = calls.rank;
                        let pairs = window.clone().map(|distance| peers(rank, ranks, distance));
                        let (to, from): (Vec<_>, Vec<_>) =
                            pairs.map(|[to, from]| (to, from)).unzip();
                        calls.exchange_at_once(&to, &from, bytes);
                    }
                };
                let parts = parts
                    .each_ref()
                    .map(|windows| move |calls: &mut Calls| part(windows, calls));
                twice(calls, &parts);
            }
        })
    }

    /// The bytes that leave a node each second, in the mean of all nodes and ranks.
    pub(super) fn rate(&self, outcome: &fast::Outcome) -> f64 {
        let seconds = |part| {
            let times = calls::times(outcome, part);
            times.iter().sum::<f64>() / times.len() as f64
        };
        let Job {
            nodes, per_node, ..
        } = self.job;
        let all = f64::from((nodes - 1) * per_node * per_node);
        let (messages, seconds) = match self.sample() {
            Sample::Whole => (all, seconds(0)),
            Sample::Pairwise(distances) => (self.leaving(&distances), seconds(0)),
            Sample::Linear([_, taken], others) => {
                let each = seconds(1) / taken.len().max(1) as f64;
                (all, seconds(0) + each * others as f64)
            }
        };
        messages * self.bytes as f64 / seconds
    }

    /// The messages of some rounds that leave a node, in the mean of all nodes.
    fn leaving(&self, distances: &[usize]) -> f64 {
        let (job, ranks) = (self.job, self.job.ranks());
        let leaves = |rank: usize, distance| job.node(rank) != job.node((rank + distance) % ranks);
        let count = |distance: &usize| (0..ranks).filter(|rank| leaves(*rank, *distance)).count();
        distances.iter().map(count).sum::<usize>() as f64 / f64::from(job.nodes)
    }
}

/// Makes all parts, and then each between two marks.
fn twice(calls: &mut Calls, parts: &[impl Fn(&mut Calls)]) {
    parts.iter().for_each(|part| part(calls));
    for part in parts {
        calls.mark();
        part(calls);
        calls.mark();
    }
}

/// The rank to which a rank sends in a round, and the one from which it receives.
fn peers(rank: usize, ranks: usize, distance: usize) -> [usize; 2] {
    [rank + distance, rank + ranks - distance].map(|peer| peer % ranks)
}

/// Up to `count` of some items, at even distances.
fn at_even_distances<T: Clone>(count: usize, items: &[T]) -> Vec<T> {
    let count = count.min(items.len());
    let middle = |number: usize| (2 * number + 1) * items.len() / (2 * count);
    (0..count)
        .map(|number| items[middle(number)].clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::placement::RankOrder;

    fn of(nodes: u32, per_node: u32, is_linear: bool) -> Alltoall {
        Alltoall {
            job: Job {
                hosts: nodes,
                nodes,
                per_node,
                order: RankOrder::Block,
            },
            bytes: 1,
            is_linear,
        }
    }

    #[test]
    fn samples_lie_at_even_distances() {
        let numbers: Vec<usize> = (1..9).collect();
        assert_eq!(at_even_distances(4, &numbers), [2, 4, 6, 8]);
        assert_eq!(at_even_distances(32, &numbers), numbers);
    }

    #[test]
    fn all_rounds_of_a_sample_are_the_whole_operation() {
        let all: Vec<usize> = (1..24).collect();
        assert_eq!(of(4, 6, false).leaving(&all), 3.0 * 36.0);
    }

    #[test]
    fn large_operations_are_samples() {
        assert_eq!(of(8, 36, true).sample(), Sample::Whole);
        let Sample::Pairwise(rounds) = of(32, 36, false).sample() else {
            panic!("no sample");
        };
        assert_eq!(rounds.len(), ROUNDS);
        let Sample::Linear([near, far], others) = of(32, 36, true).sample() else {
            panic!("no sample");
        };
        // Rounds 1 to 35 and 1117 to 1151 have pairs inside nodes.
        assert_eq!(near, [1..33, 33..65, 1089..1121, 1121..1152]);
        assert_eq!((far.len(), others), (WINDOWS, 32));
    }
}
