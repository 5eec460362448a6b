//! Chooses the number of iterations of a loop, and a cut of each rank with that number. A cut is a
//! division of the rank's calls into iterations.
//!
//! Ranks may do different things in an iteration, so they agree only on the number. If collective
//! calls of all ranks are in the loop, boundaries must also lie between the same ones.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::calls::Call;
use super::cuts::Cut;
use super::regularity::Regularity;

/// The most iterations that a rank may have in excess of another: calls before or after the loop
/// may equal those of an iteration.
const SLACK: usize = 2;
/// The most short iterations of one rank that together form one iteration of another.
const MOST_GROUPED: usize = 64;
/// The share of equal iterations, in thousandths, from which on several iterations of a cut may be
/// grouped to one.
const EQUAL: usize = 980;
/// Agreements are compared by regularity if they cover at least this many tenths of the calls of
/// the one that covers most.
const TENTHS: usize = 8;

/// A number of iterations, with a cut of each rank that has it.
struct Agreement<'a> {
    iterations: usize,
    cuts: Vec<&'a Cut>,
}

impl Agreement<'_> {
    fn covered(&self) -> usize {
        self.cuts.iter().map(|cut| cut.quality.covered).sum()
    }

    /// The position of an agreement in the order of preference: first by regularity; then by the
    /// shortest iterations, or, if iterations are only about equally long, by the fewest kinds of
    /// them.
    fn rank(&self) -> (Regularity, Reverse<usize>, usize) {
        let qualities = self.cuts.iter().map(|cut| cut.quality);
        let regularity = qualities.clone().map(|quality| quality.regularity).min();
        let kinds = qualities.map(|quality| quality.kinds).min();
        match regularity.unwrap_or(Regularity::AboutAsLong) {
            Regularity::AboutAsLong => (
                Regularity::AboutAsLong,
                kinds.unwrap_or(Reverse(0)),
                self.iterations,
            ),
            regular => (regular, Reverse(0), self.iterations),
        }
    }
}

/// Chooses one cut of each rank, a division of its calls into iterations, so that all have the same
/// number of iterations. `cuts`: for each rank, the possible cuts; `collectives`: for a rank and
/// boundaries, the number of collective calls of all ranks before each boundary.
pub(super) fn agree(
    cuts: &[&[Cut]],
    collectives: impl Fn(usize, &[usize]) -> Vec<usize>,
) -> Option<Vec<Cut>> {
    let numbers: BTreeSet<usize> = cuts
        .iter()
        .flat_map(|of_rank| of_rank.iter().map(Cut::iterations))
        .collect();
    let of_number = |iterations: usize| {
        let fitting = cuts.iter().map(|of_rank| fitting(of_rank, iterations));
        Some(Agreement {
            iterations,
            cuts: fitting.collect::<Option<Vec<_>>>()?,
        })
    };
    let mut all: Vec<Agreement> = numbers.into_iter().filter_map(of_number).collect();
    let most = all.iter().map(Agreement::covered).max()?;
    all.sort_by_key(|agreement| {
        let is_long = agreement.covered() * 10 >= most * TENTHS;
        Reverse((is_long, agreement.rank()))
    });
    all.iter()
        .find_map(|agreement| aligned(agreement, &collectives))
}

/// The best of a rank's cuts (divisions of its calls into iterations) with this number of
/// iterations, or up to [`SLACK`] more; otherwise a cut of equal iterations that can be grouped to
/// this number. `None`: the rank has neither.
fn fitting(cuts: &[Cut], iterations: usize) -> Option<&Cut> {
    let own = cuts.iter().filter(|cut| {
        let more = cut.iterations().checked_sub(iterations);
        more.is_some_and(|more| more <= SLACK)
    });
    let nearest = |cut: &&Cut| (cut.quality.regularity, Reverse(cut.iterations()));
    own.max_by_key(nearest).or_else(|| {
        let mut grouped = cuts.iter().filter(|cut| {
            let times = cut.iterations() / iterations;
            let rest = cut.iterations() % iterations;
            cut.quality.equal >= EQUAL
                && (2..=MOST_GROUPED).contains(&times)
                && rest < times + SLACK
        });
        grouped.next()
    })
}

/// The cuts, shortened to the same number of boundaries, so that the same collective calls precede
/// a boundary on all ranks. `None` if this is impossible: then these are different loops.
fn aligned(
    agreement: &Agreement,
    collectives: &impl Fn(usize, &[usize]) -> Vec<usize>,
) -> Option<Vec<Cut>> {
    let Agreement { iterations, cuts } = agreement;
    let reference = cuts
        .iter()
        .position(|cut| cut.iterations() == *iterations)?;
    let wanted = collectives(reference, &cuts[reference].boundaries);
    let (first, last) = (wanted[0], wanted[*iterations]);
    let each = (last - first).div_ceil(*iterations);
    let one = |(rank, cut): (usize, &&Cut)| {
        let times = cut.iterations() / iterations;
        let counts = collectives(rank, &cut.boundaries);
        let difference = |from: &usize| {
            let own = counts[*from..].iter().step_by(times);
            let pairs = own.zip(&wanted);
            pairs
                .map(|(own, wanted)| own.abs_diff(*wanted))
                .sum::<usize>()
        };
        let offsets = (0..=cut.iterations() - times * iterations).rev();
        let from = offsets.min_by_key(difference)?;
        let mut cut = cut.grouped(times, from);
        cut.boundaries.truncate(iterations + 1);
        cut.classes.truncate(*iterations);
        let ends = [from, from + times * iterations].map(|at| counts[at]);
        let is_same = ends[0].abs_diff(first) <= each && ends[1].abs_diff(last) <= each;
        is_same.then_some(cut)
    };
    cuts.iter().enumerate().map(one).collect()
}

/// For each boundary, the number of calls before it for which `is_counted` is true.
pub(super) fn counted_before(
    calls: &[Call],
    boundaries: &[usize],
    is_counted: impl Fn(&Call) -> bool,
) -> Vec<usize> {
    let (mut at, mut count) = (0, 0);
    let before = boundaries.iter().map(|boundary| {
        count += calls[at..*boundary]
            .iter()
            .filter(|call| is_counted(call))
            .count();
        at = *boundary;
        count
    });
    before.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::main_loop::regularity::Quality;

    fn cut(first: usize, iterations: usize, calls: usize, regularity: Regularity) -> Cut {
        Cut {
            boundaries: (0..=iterations).map(|at| first + at * calls).collect(),
            classes: vec![1; iterations],
            quality: Quality {
                regularity,
                kinds: Reverse(1),
                equal: 1000,
                covered: iterations * calls,
            },
        }
    }

    fn agreed(ranks: &[Vec<Cut>]) -> Option<Vec<(usize, usize)>> {
        let cuts: Vec<&[Cut]> = ranks.iter().map(Vec::as_slice).collect();
        // Every fifth call is collective.
        let collectives = |_, boundaries: &[usize]| boundaries.iter().map(|at| at / 5).collect();
        let shown = |cut: &Cut| (cut.boundaries[0], cut.iterations());
        Some(agree(&cuts, collectives)?.iter().map(shown).collect())
    }

    #[test]
    fn ranks_agree_on_the_most_regular_and_then_on_the_shortest() {
        let of = |iterations, regularity| cut(5, iterations, 1000 / iterations, regularity);
        let one = vec![
            of(10, Regularity::Equal),
            of(20, Regularity::Equal),
            of(40, Regularity::Similar),
        ];
        assert_eq!(agreed(&[one.clone(), one.clone()]), Some(vec![(5, 20); 2]));
        let other = vec![of(10, Regularity::Equal)];
        assert_eq!(agreed(&[one.clone(), other]), Some(vec![(5, 10); 2]));
        let other = vec![of(20, Regularity::Similar), of(40, Regularity::Equal)];
        assert_eq!(agreed(&[one, other]), Some(vec![(5, 40); 2]));
    }

    #[test]
    fn what_looks_like_an_iteration_is_left_out() {
        let one = vec![cut(10, 20, 5, Regularity::Equal)];
        let other = vec![cut(5, 21, 5, Regularity::Equal)];
        assert_eq!(agreed(&[one.clone(), other]), Some(vec![(10, 20); 2]));
        let after = vec![cut(10, 21, 5, Regularity::Equal)];
        assert_eq!(agreed(&[one.clone(), after]), Some(vec![(10, 20); 2]));
        let more = vec![cut(5, 23, 5, Regularity::Equal)];
        assert_eq!(agreed(&[one, more]), None);
    }

    #[test]
    fn short_iterations_are_grouped() {
        let one = vec![cut(10, 20, 10, Regularity::Equal)];
        let other = vec![cut(10, 40, 5, Regularity::Equal)];
        assert_eq!(agreed(&[one, other]), Some(vec![(10, 20); 2]));
    }

    #[test]
    fn loops_between_other_collective_calls_are_different_ones() {
        let one = vec![cut(10, 20, 5, Regularity::Equal)];
        let other = vec![cut(200, 20, 5, Regularity::Equal)];
        assert_eq!(agreed(&[one, other]), None);
    }

    const _: () = assert!(crate::main_loop::LEAST > SLACK);
}
