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
    /// The program's calls, in which the loop was found.
    Calls {
        /// True if calls with messages of different sizes count as equal.
        any_size: bool,
    },
    /// The program's calls of `MPI_Pcontrol`, perhaps with the name of a region.
    Control(Option<String>),
    /// The user's choice of a collective call, after which the region begins.
    After {
        /// The name of the call.
        call: String,
        /// The number of the call, from 1 on, among the calls with this name on each rank.
        number: usize,
    },
}

/// Iterations that have the same calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The number of the first iteration of the class.
    pub representative: usize,
    /// The number of iterations of the class.
    pub iterations: usize,
}

/// The loop of a program, on all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The criterion that chose the loop.
    pub by: By,
    /// For each rank, the numbers of the calls at which iterations begin, and of the call after the
    /// last iteration.
    pub boundaries: Vec<Vec<usize>>,
    /// The number of the first iteration whose time is used: earlier ones also make connections and
    /// the like.
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
        /// The greatest number of calls of a rank.
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
        /// The number of calls of all ranks in repeated sequences.
        covered: usize,
        /// The number of all calls.
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

    /// The range of the calls of a rank that are in iterations.
    pub fn range(&self, rank: usize) -> Range<usize> {
        let boundaries = &self.boundaries[rank];
        boundaries[0]..boundaries[boundaries.len() - 1]
    }

    /// The number of calls of an iteration on a rank.
    pub fn calls(&self, rank: usize, iteration: usize) -> usize {
        let boundaries = &self.boundaries[rank];
        boundaries[iteration + 1] - boundaries[iteration]
    }

    /// The number of calls in iterations, summed over all ranks.
    pub fn covered(&self) -> usize {
        (0..self.boundaries.len())
            .map(|rank| self.range(rank).len())
            .sum()
    }

    /// Excludes iterations that begin before these calls, one for each rank: by then connections
    /// and the like have been made. The time of the first iteration is never used.
    pub fn count_from(&mut self, calls: &[usize]) {
        let ranks = self.boundaries.iter().zip(calls);
        let firsts = ranks.map(|(boundaries, call)| boundaries.partition_point(|at| at < call));
        let first = firsts.max().unwrap_or(0);
        self.counted = first.max(self.counted).min(self.iterations());
    }

    /// The loop that the cuts of all ranks form.
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

    /// The number of the first iteration after the last one that constructs objects, if that is in
    /// the first half of the loop; otherwise 0.
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

/// The classes of iterations, and the class of each iteration. Two iterations are of one class if
/// each rank makes the same calls in both.
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
