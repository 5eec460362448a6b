//! Computing times with less information: rounded ones, or those of a few repetitions of a loop for
//! all.

use std::cell::RefCell;

use crate::Trace;
use crate::fold::Item;
use crate::gaps::Gaps;

/// The step of small times, in nanoseconds. They are off by half of it at most.
const STEP: u64 = 20;
/// The steps of great times: each is this share of the time, and they are off by half of it.
const STEPS_PER_TIME: u64 = 100;
/// The number of repetitions of a loop whose times represent those of all repetitions.
const TURNS: usize = 64;
/// At most one in so many turns of a loop keeps its own times because it is long.
const ONE_IN: usize = 16;
/// The most times of these turns: a longer sequence would not fold.
const MOST_TIMES: usize = 1 << 13;

/// A time rounded to 20 ns or to 1 % of it, whichever is more.
fn rounded(nanos: u64) -> u64 {
    // Steps double where the time doubles, so that few different times remain.
    let wanted = nanos / STEPS_PER_TIME;
    let step = match wanted {
        0..STEP => STEP,
        _ => STEP << (wanted / STEP).ilog2(),
    };
    (nanos.saturating_add(step / 2)) / step * step
}

impl Trace {
    /// The trace with its computing times rounded.
    pub fn with_rounded_times(&self) -> Trace {
        let mut trace = self.clone();
        for rank in &mut trace.ranks {
            let mut gaps = Gaps::default();
            for (nanos, run) in rank.gaps.runs() {
                gaps.push(rounded(*nanos), *run);
            }
            rank.gaps = gaps;
        }
        trace
    }

    /// The trace in which some repetitions of each loop keep their times, and the others get these.
    /// The computing of each rank keeps its sum. A note of the trace says this. A trace that would
    /// not get smaller stays as it is.
    pub fn with_folded_times(&self) -> Trace {
        let mut trace = self.clone();
        let lengths = self.lengths();
        let ranks = self.ranks.iter();
        let times: Vec<Vec<u64>> = ranks.map(|rank| rank.gaps.iter().collect()).collect();
        let sums = times.iter().zip(&self.ranks).map(|(times, rank)| {
            let mut sums = Vec::new();
            let mut add = |turns: Turns| sums.push(turns.sums());
            self.each_loop(&lengths, rank.sequence, times, &mut add, &mut |_| ());
            sums
        });
        let longest = longest(sums.collect());
        for (rank, part) in trace.ranks.iter_mut().enumerate() {
            let mut longest = longest[rank.min(longest.len() - 1)].iter();
            // The loops and the calls outside of them come in turn.
            let folded = RefCell::new(Vec::with_capacity(times[rank].len()));
            let mut few = |turns: Turns| {
                let longest = longest.next().map_or(&[][..], Vec::as_slice);
                turns.few(longest, &mut folded.borrow_mut());
            };
            let mut single = |nanos| folded.borrow_mut().push(nanos);
            self.each_loop(&lengths, part.sequence, &times[rank], &mut few, &mut single);
            let mut gaps = Gaps::default();
            folded
                .borrow()
                .iter()
                .for_each(|nanos| gaps.push(*nanos, 1));
            part.gaps = gaps;
        }
        trace.notes.push(format!(
            "folded times: those of {TURNS} turns, and of the longest ones, stand for all turns of a loop"
        ));
        match trace.write().len() < self.write().len() {
            true => trace,
            false => self.clone(),
        }
    }

    /// The number of calls of each sequence.
    fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<usize> = Vec::with_capacity(self.sequences.len());
        for items in &self.sequences {
            let sum = items.iter().map(|item| match *item {
                Item::Call(_) => 1,
                Item::Loop(turns, body) => turns as usize * lengths[body as usize],
            });
            lengths.push(sum.sum());
        }
        lengths
    }

    /// Passes each loop of a sequence that has more turns than are kept to `turns`, and the times
    /// of other calls to `single`, in order.
    fn each_loop<'a>(
        &self,
        lengths: &[usize],
        sequence: u32,
        times: &'a [u64],
        turns: &mut impl FnMut(Turns<'a>),
        single: &mut impl FnMut(u64),
    ) {
        let mut rest = times;
        for item in &self.sequences[sequence as usize] {
            let (count, body) = match *item {
                Item::Call(_) => {
                    rest.first().into_iter().for_each(|nanos| single(*nanos));
                    rest = &rest[1..];
                    continue;
                }
                Item::Loop(turns, body) => (turns as usize, body),
            };
            let length = lengths[body as usize];
            let (own, behind) = rest.split_at(count * length);
            rest = behind;
            let kept = TURNS.min(MOST_TIMES / length).max(1);
            if count > kept {
                turns(Turns {
                    times: own,
                    length,
                    kept,
                });
            } else {
                for turn in own.chunks(length) {
                    self.each_loop(lengths, body, turn, turns, single);
                }
            }
        }
    }
}

/// For each rank and each of its loops, the sum of each turn's times on the rank where it is
/// longest. Ranks with other loops than the first one have their own sums.
fn longest(mut sums: Vec<Vec<Vec<u64>>>) -> Vec<Vec<Vec<u64>>> {
    let shape = |loops: &[Vec<u64>]| loops.iter().map(Vec::len).collect::<Vec<_>>();
    let is_alike = sums.windows(2).all(|two| shape(&two[0]) == shape(&two[1]));
    let Some((first, others)) = sums.split_first_mut().filter(|_| is_alike) else {
        return sums;
    };
    for other in others {
        let pairs = first.iter_mut().flatten().zip(other.iter().flatten());
        pairs.for_each(|(most, sum)| *most = (*most).max(*sum));
    }
    sums.truncate(1);
    sums
}

/// The times of a loop on a rank.
struct Turns<'a> {
    times: &'a [u64],
    /// The number of times of a turn.
    length: usize,
    /// The number of turns that represent all.
    kept: usize,
}

impl Turns<'_> {
    /// The sum of the times of each turn.
    fn sums(&self) -> Vec<u64> {
        let turns = self.times.chunks(self.length);
        let sum = |turn: &[u64]| {
            turn.iter()
                .fold(0, |sum: u64, one| sum.saturating_add(*one))
        };
        turns.map(sum).collect()
    }

    /// Adds the times of the loop, in which some turns represent all: of the turns in the order of
    /// `lengths`, in equal groups, the mean one of each. The longest turns, for which other ranks
    /// wait, keep their times, and come last.
    fn few(&self, lengths: &[u64], folded: &mut Vec<u64>) {
        let all = self.times.len() / self.length;
        let mut order: Vec<usize> = (0..all).collect();
        order.sort_by_key(|turn| lengths.get(*turn));
        let own = self.kept.min(all / ONE_IN);
        let (usual, longest) = order.split_at(all - own);
        let group =
            |at: usize| &usual[at * usual.len() / self.kept..(at + 1) * usual.len() / self.kept];
        let mut chosen: Vec<usize> = (0..self.kept)
            .map(|at| mean_of(group(at), lengths))
            .collect();
        chosen.sort_unstable();
        let turn = |turn: usize| &self.times[turn * self.length..][..self.length];
        let sums = self.sums();
        // Where this rank takes longest of all, the others wait: such times stay.
        let is_waited_for = |turn: usize| lengths.get(turn) == sums.get(turn);
        let stand_ins = || (0..usual.len()).map(|number| chosen[number % self.kept]);
        let sum = |turns: &mut dyn Iterator<Item = usize>| -> f64 {
            turns.map(|at| sums[at] as f64).sum()
        };
        let factor = Factor::of(
            sum(&mut usual.iter().copied()),
            sum(&mut stand_ins().filter(|at| is_waited_for(*at))),
            sum(&mut stand_ins().filter(|at| !is_waited_for(*at))),
            usual.len() * self.length,
        );
        for at in stand_ins() {
            let is_waited_for = is_waited_for(at);
            let times = turn(at).iter();
            folded.extend(times.map(|nanos| factor.applied(*nanos, is_waited_for)));
        }
        // Between the others they would leave no equal sequence of turns.
        longest.iter().for_each(|at| folded.extend(turn(*at)));
    }
}

/// Of turns in the order of their lengths, the one whose length is nearest to their mean.
fn mean_of(turns: &[usize], lengths: &[u64]) -> usize {
    let length = |turn: &usize| lengths.get(*turn).copied().unwrap_or(0);
    let sum: u128 = turns.iter().map(|turn| u128::from(length(turn))).sum();
    let mean = (sum / turns.len().max(1) as u128) as u64;
    let nearest = turns.iter().min_by_key(|turn| length(turn).abs_diff(mean));
    nearest.copied().unwrap_or(0)
}

/// The change of the times of a loop, so that they keep their sum.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Factor {
    /// Times in turns for which others wait stay, and the others are multiplied by this.
    OfOthers(f64),
    /// All times are multiplied by this.
    OfAll(f64),
    /// All times are this one.
    Mean(u64),
}

impl Factor {
    /// The factor for `number` times whose sum is `whole`. The sums of the times that stand for
    /// them: in turns for which others wait, and in the other ones.
    fn of(whole: f64, waited_for: f64, others: f64, number: usize) -> Factor {
        match () {
            () if others > 0.0 && whole >= waited_for => {
                Factor::OfOthers((whole - waited_for) / others)
            }
            () if waited_for + others > 0.0 => Factor::OfAll(whole / (waited_for + others)),
            () => Factor::Mean((whole / number.max(1) as f64).round() as u64),
        }
    }

    fn applied(self, nanos: u64, is_waited_for: bool) -> u64 {
        match self {
            Factor::OfOthers(_) if is_waited_for => nanos,
            Factor::OfOthers(factor) | Factor::OfAll(factor) => {
                (nanos as f64 * factor).round() as u64
            }
            Factor::Mean(mean) => mean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pattern, Recipe};
    use proptest::prelude::*;

    #[test]
    fn folded_times_keep_their_sums_and_take_few_bytes() {
        let mut trace = Recipe {
            pattern: Pattern::Halo2d,
            ranks: 4,
            steps: 2000,
            bytes: 64,
            nanos: 0,
            sum_every: 1,
            seed: 1,
        }
        .make("test".into());
        let calls = trace.ranks[0].gaps.count();
        for (rank, part) in trace.ranks.iter_mut().enumerate() {
            part.gaps = Gaps::default();
            for call in 0..calls {
                // Times without a pattern.
                let word = (call << 3 | rank as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let noise = (word ^ word >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 54;
                part.gaps.push(10_000 + noise * 10, 1);
            }
        }
        let folded = trace.with_folded_times();
        assert!(folded.notes[0].starts_with("folded times"));
        let total = |trace: &Trace, rank: usize| -> f64 {
            trace.calls_of(rank).map(|(_, nanos)| nanos as f64).sum()
        };
        for rank in 0..4 {
            let ratio = total(&folded, rank) / total(&trace, rank);
            assert!((ratio - 1.0).abs() < 1e-4, "{ratio}");
        }
        let [before, after] = [&trace, &folded].map(|trace| trace.write().len());
        assert!(after * 5 < before, "{before} {after}");
        let calls = |trace: &Trace| trace.calls_of(2).map(|(call, _)| call).collect::<Vec<_>>();
        assert_eq!(calls(&folded), calls(&trace));
        assert_eq!(Trace::read(&folded.write()), Ok(folded));
    }

    proptest! {
        #[test]
        fn a_rounded_time_is_off_by_half_a_step_at_most(nanos in 0u64..1 << 50) {
            let off = rounded(nanos).abs_diff(nanos);
            prop_assert!(off <= 10.max(nanos / 200 + 1), "{nanos}: {}", rounded(nanos));
        }
    }
}
