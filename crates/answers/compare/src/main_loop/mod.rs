//! The loop of a program: the longest run of equal sequences of calls on every rank.
//!
//! A program of production length differs from the short one that is compared in the number of its
//! iterations. So the time of an iteration is found apart from the start and from the rest, and
//! the time of any number of iterations follows ([`prediction`](crate::prediction)).
//!
//! - Each rank cuts its calls at an *anchor*, a short sequence of calls ([`cuts`]). Iterations may
//!   differ: a few further calls, or every so often other ones, make classes of iterations. Where
//!   inner loops turn different numbers of times, they are folded first ([`text`]).
//! - Ranks agree on one number of iterations ([`agreement`]).
//! - The loop that covers the most calls is taken. Calls and not their time decide, because
//!   calls are the same in each recording, and so is the loop.
//! - Where sizes shrink or grow with each iteration, calls of all sizes count as equal.
//!
//! Of the possible iterations the shortest is taken after which nearly the same calls return: a
//! step of a program that adds up every tenth step is one step. If no iteration is so regular, the
//! shortest counts which most steps are equal to. If the other ones need many calls more, the outer
//! loop has the iterations.
//!
//! For n calls of all ranks the time is proportional to n log n, and memory to n.

mod agreement;
mod anchors;
mod by_hand;
mod calls;
mod cuts;
mod regularity;
mod text;

#[cfg(test)]
mod shapes;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

pub use by_hand::{Unusable, after, controlled};
pub use calls::{Call, Calls, Control, Symbol};
use cuts::Cut;

/// The fewest iterations of a loop.
pub const LEAST: usize = 4;
/// A loop has at least this many calls on each rank on average, or half of all calls.
const FEW_CALLS: usize = 64;
/// A loop of calls of equal size is taken if it has as many iterations, even if more calls are
/// equal without their sizes: of several loops in a row with growing sizes each is a loop.
const ENOUGH: usize = 16;

/// How a loop was chosen.
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
    /// How it was chosen.
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
    fn of(by: By, cuts: Vec<Cut>, calls: &Calls) -> Loop {
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

/// Finds the loop of a program.
pub fn find(calls: &Calls) -> Result<Loop, NoLoop> {
    find_within(calls, &calls.whole())
}

/// Finds the loop within a part of each rank's calls.
pub fn find_within(calls: &Calls, parts: &[Range<usize>]) -> Result<Loop, NoLoop> {
    let equal_sizes = cuts_of_ranks(calls, parts, &calls.merged(|_| ()));
    if let Ok(cuts) = &equal_sizes
        && cuts[0].iterations() >= ENOUGH
    {
        return Ok(Loop::of(By::Calls { any_size: false }, equal_sizes?, calls));
    }
    let any_size = cuts_of_ranks(calls, parts, &calls.merged(|symbol| symbol.size = None));
    let covered = |cuts: &Result<Vec<Cut>, NoLoop>| {
        let cuts = cuts.iter().flatten();
        cuts.map(|cut| cut.boundaries[cut.iterations()] - cut.boundaries[0])
            .sum::<usize>()
    };
    let (by, cuts) = match covered(&any_size) > 2 * covered(&equal_sizes) {
        true => (By::Calls { any_size: true }, any_size?),
        false => (By::Calls { any_size: false }, equal_sizes?),
    };
    Ok(Loop::of(by, cuts, calls))
}

/// The cuts on which the ranks agree. `keys`: for each symbol, the one that it counts as.
fn cuts_of_ranks(calls: &Calls, parts: &[Range<usize>], keys: &[u32]) -> Result<Vec<Cut>, NoLoop> {
    let ranks: Vec<&[Call]> = calls
        .ranks
        .iter()
        .zip(parts)
        .map(|(calls, part)| &calls[part.clone()])
        .collect();
    let most = ranks.iter().map(|calls| calls.len()).max().unwrap_or(0);
    if most < LEAST {
        return Err(NoLoop::FewCalls { most });
    }
    let mut cuts: Vec<Vec<Cut>> = Vec::new();
    // Ranks with the same calls have the same cuts.
    let mut sources: Vec<usize> = Vec::new();
    for (rank, own) in ranks.iter().enumerate() {
        let is_equal = |other: &usize| {
            let symbols = |rank: usize| ranks[rank].iter().map(|call| keys[call.symbol as usize]);
            *other < rank && sources[*other] == *other && {
                ranks[*other].len() == own.len() && symbols(*other).eq(symbols(rank))
            }
        };
        let source = (0..rank).find(is_equal).unwrap_or(rank);
        let own = if source == rank {
            cuts::cuts(own, keys)
        } else {
            Vec::new()
        };
        if source == rank && own.is_empty() {
            return Err(NoLoop::NothingRepeats { rank });
        }
        sources.push(source);
        cuts.push(own);
    }
    let of_ranks: Vec<&[Cut]> = sources
        .iter()
        .map(|source| cuts[*source].as_slice())
        .collect();
    let everywhere = |rank: usize, boundaries: &[usize]| {
        let is_everywhere = |call: &Call| calls.symbol(call).everywhere;
        agreement::counted_before(ranks[rank], boundaries, is_everywhere)
    };
    let mut agreed = agreement::agree(&of_ranks, everywhere).ok_or(NoLoop::RanksDiffer)?;
    let covered = agreed
        .iter()
        .map(|cut| cut.boundaries[cut.iterations()] - cut.boundaries[0]);
    let covered: usize = covered.sum();
    let all: usize = ranks.iter().map(|calls| calls.len()).sum();
    if covered * 2 < all && covered < FEW_CALLS * ranks.len() {
        return Err(NoLoop::SmallPart {
            covered,
            calls: all,
        });
    }
    for (cut, part) in agreed.iter_mut().zip(parts) {
        for boundary in &mut cut.boundaries {
            *boundary += part.start;
        }
    }
    Ok(agreed)
}
