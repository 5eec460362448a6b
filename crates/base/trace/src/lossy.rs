//! Computing times with less information: rounded ones, or those of a few repetitions of a loop for
//! all.

use crate::Trace;
use crate::fold::Item;
use crate::gaps::Gaps;

/// The step of small times, in nanoseconds. They are off by half of it at most.
const STEP: u64 = 20;
/// The steps of great times: each is this share of the time, and they are off by half of it.
const STEPS_PER_TIME: u64 = 100;
/// The number of repetitions of a loop whose times represent those of all repetitions.
const TURNS: usize = 32;
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

    /// The trace in which some repetitions of each loop, evenly distributed, keep their times, and
    /// the others get these. The computing before each call of a body keeps its sum over all
    /// repetitions. A note of the trace says this.
    pub fn with_folded_times(&self) -> Trace {
        let mut trace = self.clone();
        let lengths = self.lengths();
        for (rank, part) in trace.ranks.iter_mut().enumerate() {
            let times: Vec<u64> = self.ranks[rank].gaps.iter().collect();
            let mut folded = Vec::with_capacity(times.len());
            self.fold(&lengths, part.sequence, &times, &mut folded);
            let mut gaps = Gaps::default();
            folded.iter().for_each(|nanos| gaps.push(*nanos, 1));
            part.gaps = gaps;
        }
        trace.notes.push(format!(
            "folded times: those of {TURNS} turns stand for all turns of a loop"
        ));
        trace
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

    /// Folds the computing times of a sequence's calls, and adds them.
    fn fold(&self, lengths: &[usize], sequence: u32, times: &[u64], folded: &mut Vec<u64>) {
        let mut rest = times;
        for item in &self.sequences[sequence as usize] {
            let (turns, body) = match *item {
                Item::Call(_) => {
                    folded.extend(rest.first());
                    rest = &rest[1..];
                    continue;
                }
                Item::Loop(turns, body) => (turns as usize, body),
            };
            let length = lengths[body as usize];
            let (own, behind) = rest.split_at(turns * length);
            rest = behind;
            let kept = TURNS.min(MOST_TIMES / length).max(1);
            if turns > kept {
                few_turns(own, length, kept, folded);
            } else {
                for turn in own.chunks(length) {
                    self.fold(lengths, body, turn, folded);
                }
            }
        }
    }
}

/// Adds the times of a loop, in which `kept` repetitions represent all.
fn few_turns(times: &[u64], length: usize, kept: usize, folded: &mut Vec<u64>) {
    let turns = times.len() / length;
    let chosen: Vec<&[u64]> = (0..kept)
        .map(|at| (2 * at + 1) * turns / (2 * kept) * length)
        .map(|at| &times[at..at + length])
        .collect();
    // The sums of the first turns and of the last, incomplete round differ a little from those of
    // whole rounds.
    let sum = |place: usize| -> f64 {
        let all = times.iter().skip(place).step_by(length);
        all.map(|nanos| *nanos as f64).sum()
    };
    let sum_of_kept = |place: usize| -> f64 {
        let all = (0..turns).map(|turn| chosen[turn % kept][place] as f64);
        all.sum()
    };
    let factors: Vec<Option<f64>> = (0..length)
        .map(|place| {
            let of_kept = sum_of_kept(place);
            (of_kept > 0.0).then(|| sum(place) / of_kept)
        })
        .collect();
    let means: Vec<u64> = (0..length)
        .map(|place| (sum(place) / turns as f64).round() as u64)
        .collect();
    for turn in 0..turns {
        let own = chosen[turn % kept].iter().zip(&factors).zip(&means);
        folded.extend(own.map(|((nanos, factor), mean)| match factor {
            Some(factor) => (*nanos as f64 * factor).round() as u64,
            None => *mean,
        }));
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
            steps: 1000,
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
