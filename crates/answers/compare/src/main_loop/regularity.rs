//! Rates the regularity of a cut, which divides a rank's calls into iterations: they are equal,
//! similar, or only about equally long.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::text::Text;

/// The fewest iterations of a loop.
pub const LEAST: usize = 4;

/// Iterations are about equally long if their numbers of calls are at most this factor above or
/// below the usual number.
const FACTOR: u64 = 2;
/// Interruptions of a loop, such as a rare checkpoint, belong to it if they are fewer than
/// [`LEAST`] and have at most this fraction (1 / `INTERRUPTION_PART`) of the calls.
const INTERRUPTION_PART: u64 = 4;
/// The shortest run of iterations before or after an interruption.
const SHORT_RUN: usize = 8;
/// In a similar cut, at most one of this many iterations has too few calls in common with the usual
/// one.
const AKIN_OF: usize = 20;
/// The most classes of iterations that are compared with the usual one.
const COMPARED: usize = 64;
/// The usual iterations have at least this fraction (1 / `TIME_PART`) of the computing; otherwise
/// they are only parts of an iteration.
const TIME_PART: u64 = 4;

/// Degrees of equality of iterations, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Regularity {
    /// Iterations are about equally long, and no sequence of calls is the usual one.
    AboutAsLong,
    /// At least three of five iterations are equal. Others have nearly half of their calls in
    /// common with these.
    Similar,
    /// All iterations are equal apart from a few additional calls. Fewer than [`LEAST`] iterations
    /// may be different.
    Equal,
}

/// The quality of a cut, a division of calls into iterations. It is compared by regularity first,
/// then by the fewest kinds of iterations, then by the most equal iterations, then by the most
/// calls that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quality {
    pub(super) regularity: Regularity,
    /// The number of different iterations.
    pub(super) kinds: Reverse<usize>,
    /// The share of the most frequent kind among the iterations, in thousandths.
    pub(super) equal: usize,
    /// The number of calls in iterations.
    pub(super) covered: usize,
}

/// The longest run of positions at about equal distances, by the number of calls; of equally long
/// ones the last, because calls that resemble the loop may precede it as a preparation. `None` if
/// there are fewer than three iterations.
pub(super) fn longest_run(positions: &[u32]) -> Option<&[u32]> {
    let runs = usual_distances(positions).into_iter();
    let runs = runs.filter_map(|usual| run_at(positions, usual));
    let run = runs.max_by_key(|run| positions[run.end] - positions[run.start])?;
    (run.len() + 1 >= LEAST).then(|| &positions[run.start..=run.end])
}

/// For each power of two, the median of the distances between it and the next power, if there are
/// at least three.
fn usual_distances(positions: &[u32]) -> Vec<u64> {
    let mut distances: Vec<u32> = positions.windows(2).map(|pair| pair[1] - pair[0]).collect();
    distances.sort_unstable();
    let alike = distances.chunk_by(|one, other| one.ilog2() == other.ilog2());
    let several = alike.filter(|alike| alike.len() + 1 >= LEAST);
    several
        .map(|alike| u64::from(alike[alike.len() / 2]))
        .collect()
}

/// The longest run of positions at about the usual distance.
fn run_at(positions: &[u32], usual: u64) -> Option<Range<usize>> {
    let is_regular = |pair: &[u32]| {
        let distance = u64::from(pair[1] - pair[0]);
        distance * FACTOR >= usual && distance <= usual * FACTOR
    };
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, pair) in positions.windows(2).enumerate() {
        if !is_regular(pair) {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.end == at => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    with_interruptions(positions, &runs).or_else(|| {
        let calls = |run: &Range<usize>| positions[run.end] - positions[run.start];
        runs.into_iter().max_by_key(calls)
    })
}

/// One run that joins all long ones, if only few interruptions are between them.
fn with_interruptions(positions: &[u32], runs: &[Range<usize>]) -> Option<Range<usize>> {
    let longest = runs.iter().map(Range::len).max()?;
    let is_long = |run: &Range<usize>| run.len() >= SHORT_RUN.max(longest / 20);
    let first = runs.iter().position(is_long)?;
    let last = runs.iter().rposition(is_long)?;
    let whole = runs[first].start..runs[last].end;
    let regular: usize = runs[first..=last].iter().map(Range::len).sum();
    let calls = |run: &Range<usize>| u64::from(positions[run.end] - positions[run.start]);
    let inside: u64 = runs[first..=last].iter().map(calls).sum();
    let is_rare = whole.len() - regular < LEAST;
    let outside = calls(&whole) - inside;
    (is_rare && outside * INTERRUPTION_PART <= calls(&whole)).then_some(whole)
}

/// A hasher for keys that are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The upper bits choose the group of a hash table, so mix the bits.
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type ByHash<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

/// A class of equal iterations.
#[derive(Clone, Copy)]
struct Class {
    /// The number of the first of these iterations.
    first: usize,
    /// The number of these iterations.
    times: usize,
    /// The sum of their computing, in nanoseconds.
    nanos: u64,
}

/// The iterations of a cut, grouped into classes of equal ones.
pub(super) struct Segments<'a> {
    text: &'a Text,
    positions: &'a [u32],
    /// For each iteration, the hash of its calls.
    pub(super) classes: Vec<u64>,
    /// The classes, in the order of their first iterations.
    distinct: Vec<Class>,
}

impl<'a> Segments<'a> {
    /// `times`: for each call, the sum of the computing before it from the first call on, in
    /// nanoseconds.
    pub(super) fn new(text: &'a Text, times: &[u64], positions: &'a [u32]) -> Segments<'a> {
        let mut classes = Vec::with_capacity(positions.len() - 1);
        let mut distinct: Vec<Class> = Vec::new();
        let mut numbers = ByHash::default();
        for (at, pair) in positions.windows(2).enumerate() {
            let [from, to] = [pair[0] as usize, pair[1] as usize];
            let hash = text.hash(from..to);
            let number = *numbers.entry(hash).or_insert(distinct.len());
            if number == distinct.len() {
                distinct.push(Class {
                    first: at,
                    times: 0,
                    nanos: 0,
                });
            }
            let class = &mut distinct[number];
            class.times += 1;
            class.nanos += times[text.origin(to)] - times[text.origin(from)];
            classes.push(hash);
        }
        Segments {
            text,
            positions,
            classes,
            distinct,
        }
    }

    fn range(&self, iteration: usize) -> Range<usize> {
        self.positions[iteration] as usize..self.positions[iteration + 1] as usize
    }

    /// The most frequent class; of equally frequent ones the first.
    fn most_frequent(&self) -> Class {
        let ordered = self.distinct.iter().rev();
        *ordered
            .max_by_key(|class| class.times)
            .expect("a cut has iterations")
    }

    /// The range of the first iteration of the most frequent class.
    pub(super) fn usual(&self) -> Range<usize> {
        self.range(self.most_frequent().first)
    }

    /// True if iterations are repeated: each occurs twice on average.
    pub(super) fn are_repeated(&self) -> bool {
        self.distinct.len() * 2 <= self.classes.len()
    }

    pub(super) fn quality(&self) -> Quality {
        let usual = self.most_frequent();
        let [first, last] =
            [0, self.positions.len() - 1].map(|at| self.text.origin(self.positions[at] as usize));
        Quality {
            regularity: self.regularity(usual),
            kinds: Reverse(self.distinct.len()),
            equal: usual.times * 1000 / self.classes.len(),
            covered: last - first,
        }
    }

    fn regularity(&self, usual: Class) -> Regularity {
        let all = self.classes.len();
        let nanos: u64 = self.distinct.iter().map(|class| class.nanos).sum();
        let is_most = usual.times * 5 > all * 3 && usual.nanos.saturating_mul(TIME_PART) >= nanos;
        if !is_most {
            return Regularity::AboutAsLong;
        }
        let (mut unlike, mut foreign) = (0, 0);
        let others = self
            .distinct
            .iter()
            .filter(|class| class.first != usual.first);
        let body = &self.text.symbols[self.range(usual.first)];
        for (number, class) in others.enumerate() {
            let other = &self.text.symbols[self.range(class.first)];
            let is_compared = number < COMPARED;
            unlike += if is_compared && is_near(body, other) {
                0
            } else {
                class.times
            };
            foreign += if is_compared && is_akin(body, other) {
                0
            } else {
                class.times
            };
        }
        match () {
            () if unlike < LEAST => Regularity::Equal,
            () if foreign * AKIN_OF <= all => Regularity::Similar,
            () => Regularity::AboutAsLong,
        }
    }

    /// The calls of all iterations, to recognize further iterations.
    pub(super) fn bodies(&self) -> Bodies {
        let mut bodies = Bodies::default();
        for class in &self.distinct {
            let range = self.range(class.first);
            bodies.lengths.push(range.len());
            bodies.hashes.insert(self.classes[class.first], ());
        }
        bodies.lengths.sort_unstable();
        bodies.lengths.dedup();
        bodies
    }
}

/// True if one of two iterations has all calls of the other in the same order, and at most a
/// quarter more.
fn is_near(one: &[u32], other: &[u32]) -> bool {
    let (short, long) = match one.len() <= other.len() {
        true => (one, other),
        false => (other, one),
    };
    let mut rest = long.iter();
    long.len() * 4 <= short.len() * 5 && short.iter().all(|call| rest.any(|other| other == call))
}

/// True if the other iteration has nearly half of the usual one's calls, in any order.
fn is_akin(usual: &[u32], other: &[u32]) -> bool {
    let [usual_calls, mut other_calls] = [usual, other].map(|calls| {
        let mut calls = calls.to_vec();
        calls.sort_unstable();
        calls.into_iter().peekable()
    });
    let mut common = 0;
    for call in usual_calls {
        while other_calls.next_if(|other| *other < call).is_some() {}
        common += usize::from(other_calls.next_if_eq(&call).is_some());
    }
    common * 20 >= usual.len() * 9
}

/// The calls of known iterations, by which further occurrences of these iterations are recognised.
#[derive(Default)]
pub(super) struct Bodies {
    /// The lengths of the iterations, ascending.
    lengths: Vec<usize>,
    hashes: ByHash<()>,
}

impl Bodies {
    /// The end of the longest known iteration that begins at position `at`; `None` if none does.
    pub(super) fn end_of_one(&self, text: &Text, at: usize) -> Option<usize> {
        let ends = self.lengths.iter().rev().map(|length| at + length);
        let mut fitting = ends.filter(|end| *end <= text.len());
        fitting.find(|end| self.hashes.contains_key(&text.hash(at..*end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_of_about_equal_distances() {
        let run = |positions: &[u32]| longest_run(positions).map(<[u32]>::to_vec);
        assert_eq!(run(&[0, 5, 10, 15]), Some(vec![0, 5, 10, 15]));
        assert_eq!(run(&[0, 5, 10]), None);
        // The start is far from the runs, and of two equally long runs the second is chosen.
        let two = [0, 90, 95, 100, 105, 190, 195, 200, 205];
        assert_eq!(run(&two), Some(vec![190, 195, 200, 205]));
        // The distances alternate.
        assert_eq!(run(&[0, 1, 9, 10, 18, 19, 27, 28]), None);
    }

    #[test]
    fn rare_interruptions_belong_to_a_run() {
        let mut positions: Vec<u32> = (0..100).map(|at| at * 5).collect();
        positions.extend((0..100).map(|at| 600 + at * 5));
        assert_eq!(longest_run(&positions), Some(positions.as_slice()));
        // Too many calls are between these runs.
        let mut positions: Vec<u32> = (0..100).map(|at| at * 5).collect();
        positions.extend((0..100).map(|at| 6000 + at * 5));
        assert_eq!(longest_run(&positions), Some(&positions[100..]));
    }

    #[test]
    fn near_and_akin() {
        assert!(is_near(&[1, 2, 3, 4], &[1, 2, 9, 3, 4]));
        assert!(is_near(&[1, 2, 9, 3, 4], &[1, 2, 3, 4]));
        assert!(!is_near(&[1, 2, 3, 4], &[1, 2, 9, 9, 3, 4]));
        assert!(!is_near(&[1, 2, 3, 4], &[1, 2, 4, 3, 3]));
        assert!(is_akin(&[1, 1, 2, 3], &[9, 9, 3, 9, 1]));
        assert!(!is_akin(&[1, 1, 2, 3], &[9, 9, 1]));
    }
}
