//! The loop of a program on all ranks, or the reason why there is none.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use super::calls::Calls;
use super::cuts::{self, Cut};
use super::regularity::LEAST;

/// The criterion that chose a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// By its calls.
    Calls {
        /// Calls of different sizes count as equal.
        any_size: bool,
    },
    /// By the program's calls of `MPI_Pcontrol`, perhaps with the name of a region.
    Control(Option<String>),
    /// By the user: after some collective call.
    After {
        /// The call.
        call: String,
        /// The number of such calls before the region.
        number: usize,
    },
}

/// Iterations that have the same calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The first of them.
    pub representative: usize,
    /// Their number.
    pub iterations: usize,
}

/// The loop of a program, on all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The criterion that chose it.
    pub by: By,
    /// For each rank, the calls at which iterations begin, and the end of the last.
    pub boundaries: Vec<Vec<usize>>,
    /// The first iteration that counts.
    pub counted: usize,
    /// The classes of iterations, the most frequent first.
    pub classes: Vec<Class>,
    /// For each iteration, the number of its class.
    pub class_of: Vec<usize>,
}

/// The reason why there is no loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLoop {
    /// The ranks make too few calls.
    FewCalls {
        /// The most of any rank.
        most: usize,
    },
    /// No sequence of calls is repeated often enough on some rank.
    NothingRepeats {
        /// The first such rank.
        rank: usize,
    },
    /// Each rank repeats calls, but not the same number of times.
    RanksDiffer,
    /// Repeated calls are a small part of all calls.
    SmallPart {
        /// The calls of all ranks in what is repeated.
        covered: usize,
        /// All calls.
        calls: usize,
    },
}

impl fmt::Display for NoLoop {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            NoLoop::FewCalls { most } => {
                write!(
                    f,
                    "no rank makes more than {most} calls, too few for a loop"
                )
            }
            NoLoop::NothingRepeats { rank } => {
                write!(
                    f,
                    "rank {rank} repeats no sequence of calls {LEAST} times in a row"
                )
            }
            NoLoop::RanksDiffer => {
                write!(f, "the ranks repeat their calls different numbers of times")
            }
            NoLoop::SmallPart { covered, calls } => write!(
                f,
                "only {covered} of {calls} calls are repeated in a row, too few for a loop"
            ),
        }
    }
}

impl std::error::Error for NoLoop {}

impl Loop {
    /// The number of iterations.
    pub fn iterations(&self) -> usize {
        self.class_of.len()
    }

    /// The calls of all iterations of a rank.
    pub fn range(&self, rank: usize) -> Range<usize> {
        let boundaries = &self.boundaries[rank];
        boundaries[0]..boundaries[boundaries.len() - 1]
    }

    /// The number of calls of an iteration on a rank.
    pub fn calls(&self, rank: usize, iteration: usize) -> usize {
        let boundaries = &self.boundaries[rank];
        boundaries[iteration + 1] - boundaries[iteration]
    }

    /// The calls in iterations, of all ranks.
    pub fn covered(&self) -> usize {
        (0..self.boundaries.len())
            .map(|rank| self.range(rank).len())
            .sum()
    }

    /// Lets an iteration count only from these calls on, one for each rank: what makes connections
    /// and the like is over there. The first iteration never counts.
    pub fn count_from(&mut self, calls: &[usize]) {
        let ranks = self.boundaries.iter().zip(calls);
        let firsts = ranks.map(|(boundaries, call)| boundaries.partition_point(|at| at < call));
        let first = firsts.max().unwrap_or(0);
        self.counted = first.max(self.counted).min(self.iterations());
    }

    /// A loop from the cuts of all ranks.
    pub(super) fn of(by: By, cuts: Vec<Cut>, calls: &Calls) -> Loop {
        let (classes, class_of) = classes(&cuts);
        let mut found = Loop {
            by,
            boundaries: cuts.into_iter().map(|cut| cut.boundaries).collect(),
            counted: 1,
            classes,
            class_of,
        };
        found.counted = found.constructed(calls).max(1).min(found.iterations());
        found
    }

    /// The first iteration after those that construct objects, if these are in the first half of
    /// the loop.
    fn constructed(&self, calls: &Calls) -> usize {
        let last = |rank: usize| {
            let range = self.range(rank);
            let constructs = |at: &usize| calls.symbol(&calls.ranks[rank][*at]).constructs;
            let call = range.rev().find(constructs)?;
            Some(self.boundaries[rank].partition_point(|boundary| *boundary <= call))
        };
        let last = (0..self.boundaries.len()).filter_map(last).max();
        last.filter(|last| *last <= self.iterations() / 2)
            .unwrap_or(0)
    }
}

/// The classes of iterations that all ranks have together, and the class of each iteration.
fn classes(cuts: &[Cut]) -> (Vec<Class>, Vec<usize>) {
    let iterations = cuts.iter().map(Cut::iterations).min().unwrap_or(0);
    let mut numbers = HashMap::new();
    let mut classes: Vec<Class> = Vec::new();
    let mut class_of = Vec::with_capacity(iterations);
    for iteration in 0..iterations {
        let of_ranks: Vec<u64> = cuts.iter().map(|cut| cut.classes[iteration]).collect();
        let number = *numbers
            .entry(cuts::joined(&of_ranks))
            .or_insert(classes.len());
        if number == classes.len() {
            classes.push(Class {
                representative: iteration,
                iterations: 0,
            });
        }
        classes[number].iterations += 1;
        class_of.push(number);
    }
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(classes[*number].iterations));
    let mut place = vec![0; classes.len()];
    for (at, number) in order.iter().enumerate() {
        place[*number] = at;
    }
    for class in &mut class_of {
        *class = place[*class];
    }
    (
        order.iter().map(|number| classes[*number]).collect(),
        class_of,
    )
}
