//! Distinguishes two reasons for which ranks with equal calls compute for different times: some
//! have more work, or they were disturbed during the recording.
//!
//! If there are more ranks than cores, ranks share cores and find cold caches, so that their
//! computing takes longer or shorter from call to call. Such *noise* differs from one occurrence of
//! a call to the next. A rank that has more work has it each time. The computing of a rank before a
//! call, divided by the mean over all ranks with equal calls, is therefore computed for each
//! occurrence; the rank's *factor* is the median, weighted by the length of the computing. Ranks
//! are compared if they make the same calls, whatever their peers are.

use std::collections::HashMap;

use crate::main_loop::{Calls, Loop};

/// The differences of computing between ranks with equal calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unevenness {
    /// The number of ranks that make the same calls as another rank.
    pub ranks: usize,
    /// The time that these ranks wait for the rank with the most work, as a share of their
    /// computing.
    pub imbalance: f64,
    /// The additional time that these ranks wait because one or the other computes for longer by
    /// chance, as a share of their computing.
    pub noise: f64,
}

/// The share of the computing below which noise is not reported.
const NOTABLE: f64 = 0.03;

/// A rank has the work alone if its share of the computing of all ranks before a call is at least
/// this.
const ALONE: f64 = 0.9;

impl Unevenness {
    /// The share of the waiting that is noise.
    pub fn share_of_noise(&self) -> f64 {
        match self.imbalance + self.noise {
            0.0 => 0.0,
            all => self.noise / all,
        }
    }

    /// True if most of the difference is noise.
    pub fn is_noise(&self) -> bool {
        self.noise > NOTABLE && self.noise > 2.0 * self.imbalance
    }
}

/// Compares ranks with equal calls. They wait for each other at collective calls of all ranks, and
/// at the end of each iteration of a loop. `None` if no ranks have equal calls, or if such ranks
/// compute nothing.
pub fn unevenness(calls: &Calls, found: Option<&Loop>) -> Option<Unevenness> {
    let (mut ranks, mut computing, mut waiting, mut quiet_waiting) = (0, 0.0, 0.0, 0.0);
    for group in groups(calls) {
        let ends = group.ends(calls, found);
        let means = group.means(calls);
        let factors = group.factors(calls, &means);
        ranks += group.ranks.len();
        computing += group.ranks.len() as f64 * means.iter().sum::<f64>();
        waiting += group.waiting(&ends, |member, at| group.nanos(calls, member, at));
        quiet_waiting += group.waiting(&ends, |member, at| {
            means[at] * factors[member][group.kind_of[at]]
        });
    }
    (computing > 0.0).then(|| Unevenness {
        ranks,
        imbalance: quiet_waiting / computing,
        noise: ((waiting - quiet_waiting) / computing).max(0.0),
    })
}

/// The computing before each call, in nanoseconds, if ranks with equal calls all compute for their
/// mean time.
pub fn even(calls: &Calls) -> Vec<Vec<u64>> {
    leveled(calls, |_| None)
}

/// The computing before each call, in nanoseconds, if work that several ranks have is distributed
/// evenly among ranks with equal calls. Work that one of them has alone stays with it: it is
/// unknown whether it can be divided, and others wait for it because they need its result.
pub fn distributed(calls: &Calls) -> Vec<Vec<u64>> {
    let mut nanos = even(calls);
    for group in groups(calls) {
        for (at, mean) in group.means(calls).into_iter().enumerate() {
            let all = mean * group.ranks.len() as f64;
            let own = |member| group.nanos(calls, member, at);
            let longest = (0..group.ranks.len()).map(own).fold(0.0, f64::max);
            if longest >= ALONE * all {
                for rank in &group.ranks {
                    nanos[*rank][at] = calls.ranks[*rank][at].nanos;
                }
            }
        }
    }
    nanos
}

/// The computing before each call without noise, in nanoseconds: the mean of the ranks with equal
/// calls, times the factor of the rank. A rank that has more work keeps it.
pub fn quiet(calls: &Calls) -> Vec<Vec<u64>> {
    leveled(calls, |(group, means)| Some(group.factors(calls, means)))
}

/// The computing before each call, in nanoseconds: the mean of the ranks with equal calls, times
/// the factor of each rank and kind of call, if there are factors. Other ranks keep their
/// computing.
fn leveled(
    calls: &Calls,
    factors: impl Fn((&Group, &[f64])) -> Option<Vec<Vec<f64>>>,
) -> Vec<Vec<u64>> {
    let own = |calls: &Vec<_>| {
        calls
            .iter()
            .map(|call: &crate::main_loop::Call| call.nanos)
            .collect()
    };
    let mut nanos: Vec<Vec<u64>> = calls.ranks.iter().map(own).collect();
    for group in groups(calls) {
        let means = group.means(calls);
        let factors = factors((&group, &means));
        for (member, rank) in group.ranks.iter().enumerate() {
            for (at, mean) in means.iter().enumerate() {
                let factor = factors
                    .as_ref()
                    .map_or(1.0, |of| of[member][group.kind_of[at]]);
                nanos[*rank][at] = (mean * factor).round() as u64;
            }
        }
    }
    nanos
}

/// Ranks with the same calls.
struct Group {
    ranks: Vec<usize>,
    /// For each call, the number of its kind. A kind is a pair: a call and the call before it.
    kind_of: Vec<usize>,
    /// The number of kinds.
    kinds: usize,
}

/// The groups of at least two ranks whose calls are the same except for their peers.
fn groups(calls: &Calls) -> Vec<Group> {
    let keys = calls.merged(|symbol| symbol.peer = None);
    let keys_of = |rank: usize| {
        calls.ranks[rank]
            .iter()
            .map(|call| keys[call.symbol as usize])
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for rank in 0..calls.ranks.len() {
        let is_equal = |group: &&mut Vec<usize>| {
            let (one, other) = (&calls.ranks[group[0]], &calls.ranks[rank]);
            one.len() == other.len() && keys_of(group[0]).eq(keys_of(rank))
        };
        match groups.iter_mut().find(is_equal) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    groups.retain(|group| group.len() > 1);
    let with_kinds = |ranks: Vec<usize>| {
        let (mut numbers, mut before) = (HashMap::new(), None);
        let kind_of = keys_of(ranks[0]).map(|key| {
            let number = numbers.len();
            let kind = (before.replace(key), key);
            *numbers.entry(kind).or_insert(number)
        });
        Group {
            kind_of: kind_of.collect(),
            kinds: numbers.len(),
            ranks,
        }
    };
    groups.into_iter().map(with_kinds).collect()
}

impl Group {
    fn nanos(&self, calls: &Calls, member: usize, at: usize) -> f64 {
        calls.ranks[self.ranks[member]][at].nanos as f64
    }

    /// The mean of the ranks' computing before each call.
    fn means(&self, calls: &Calls) -> Vec<f64> {
        let members = self.ranks.len();
        let sum = |at| {
            (0..members)
                .map(|member| self.nanos(calls, member, at))
                .sum::<f64>()
        };
        let sums = (0..self.kind_of.len()).map(sum);
        sums.map(|sum| sum / members as f64).collect()
    }

    /// For each rank and kind of call, the rank's usual computing divided by the mean of the ranks.
    fn factors(&self, calls: &Calls, means: &[f64]) -> Vec<Vec<f64>> {
        let medians = (0..self.ranks.len()).map(|member| {
            let mut multiples = vec![Vec::new(); self.kinds];
            for (at, kind) in self.kind_of.iter().enumerate() {
                if means[at] > 0.0 {
                    let multiple = self.nanos(calls, member, at) / means[at];
                    multiples[*kind].push((multiple, means[at]));
                }
            }
            let medians = multiples.iter_mut().map(|of_kind| weighted_median(of_kind));
            medians.collect::<Vec<f64>>()
        });
        let mut factors: Vec<Vec<f64>> = medians.collect();
        for kind in 0..self.kinds {
            let sum: f64 = factors.iter().map(|of_rank| of_rank[kind]).sum();
            let mean = sum / factors.len() as f64;
            for of_rank in &mut factors {
                of_rank[kind] = if mean > 0.0 {
                    of_rank[kind] / mean
                } else {
                    1.0
                };
            }
        }
        factors
    }

    /// The numbers of the calls before which the ranks of a group wait for each other.
    fn ends(&self, calls: &Calls, found: Option<&Loop>) -> Vec<usize> {
        let own = &calls.ranks[self.ranks[0]];
        let everywhere = (0..own.len()).filter(|at| calls.symbol(&own[*at]).everywhere);
        let mut ends: Vec<usize> = everywhere.collect();
        let boundaries = found
            .iter()
            .flat_map(|found| &found.boundaries[self.ranks[0]]);
        ends.extend(boundaries.filter(|boundary| **boundary < own.len()));
        ends.extend(own.len().checked_sub(1));
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// The sum of the times that all ranks wait for the slowest one at each of `ends`, in
    /// nanoseconds.
    fn waiting(&self, ends: &[usize], nanos: impl Fn(usize, usize) -> f64) -> f64 {
        let mut first = 0;
        let until = |end: &usize| {
            let own = |member| (first..=*end).map(|at| nanos(member, at)).sum::<f64>();
            let of_ranks: Vec<f64> = (0..self.ranks.len()).map(own).collect();
            first = end + 1;
            let longest = of_ranks.iter().copied().fold(0.0, f64::max);
            of_ranks.iter().map(|own| longest - own).sum::<f64>()
        };
        ends.iter().map(until).sum()
    }
}

/// The weighted median of (value, weight) pairs; 1 without any.
fn weighted_median(values: &mut [(f64, f64)]) -> f64 {
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let reaches_half = |(_, weight): &&(f64, f64)| {
        sum += weight;
        sum >= half
    };
    values
        .iter()
        .find(reaches_half)
        .map_or(1.0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::main_loop::{Call, Symbol};

    /// Ranks that compute, send, compute and add up in each of 200 steps. `computing` returns
    /// nanoseconds for a rank and a step.
    fn steps(ranks: usize, computing: impl Fn(usize, usize) -> u64) -> Calls {
        let symbol = |name: &str, peer, everywhere| Symbol {
            name: name.into(),
            peer,
            everywhere,
            ..Symbol::default()
        };
        let mut calls = Calls {
            symbols: vec![symbol("MPI_Allreduce", None, true)],
            ranks: Vec::new(),
        };
        for rank in 0..ranks {
            let own = calls.symbols.len() as u32;
            calls
                .symbols
                .push(symbol("MPI_Sendrecv", Some(rank as i32), false));
            let step = |step| {
                let nanos = computing(rank, step);
                [
                    Call {
                        symbol: own,
                        nanos: nanos / 10,
                    },
                    Call {
                        symbol: 0,
                        nanos: nanos - nanos / 10,
                    },
                ]
            };
            calls.ranks.push((0..200).flat_map(step).collect());
        }
        calls
    }

    /// A pseudo-random number from 0 to 999.
    fn chance(rank: usize, step: usize) -> u64 {
        let mixed =
            (rank as u64 * 1_000_003 + step as u64 + 17).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) % 1000
    }

    fn with_noise(rank: usize, step: usize) -> u64 {
        // One time in eight, a rank takes half as long again.
        let disturbed = chance(rank, step) < 125;
        100_000 + chance(rank, step + 1000) * 4 + if disturbed { 50_000 } else { 0 }
    }

    #[test]
    fn work_of_one_rank_alone_is_not_distributed() {
        // In even steps rank 1 has more work; in odd ones rank 0 works alone.
        let computing = |rank, step: usize| match (step % 2, rank) {
            (0, 1) => 160_000,
            (0, _) => 80_000,
            (_, 0) => 100_000,
            _ => 1_000,
        };
        let calls = steps(4, computing);
        let found = distributed(&calls);
        for step in 0..200 {
            let of_step = |rank: usize| found[rank][2 * step] + found[rank][2 * step + 1];
            let wanted = |rank| match step % 2 {
                0 => 100_000,
                _ => computing(rank, step),
            };
            for rank in 0..4 {
                assert_eq!(of_step(rank), wanted(rank), "rank {rank}, step {step}");
            }
        }
    }

    #[test]
    fn noise_is_told_from_imbalance() {
        let found = unevenness(&steps(8, with_noise), None).unwrap();
        assert!(found.is_noise(), "{found:?}");
        assert!(found.noise > 0.15 && found.imbalance < 0.01, "{found:?}");
        let planted = |rank: usize, step: usize| {
            with_noise(rank, step) * if rank == 3 { 12 } else { 10 } / 10
        };
        let found = unevenness(&steps(8, planted), None).unwrap();
        assert!((0.14..0.20).contains(&found.imbalance), "{found:?}");
        let found = unevenness(&steps(4, planted), None).unwrap();
        assert!((0.14..0.16).contains(&found.imbalance), "{found:?}");
        let found = unevenness(&steps(4, |_, _| 100_000), None).unwrap();
        assert_eq!((found.ranks, found.imbalance, found.noise), (4, 0.0, 0.0));
        assert!(!found.is_noise());
    }

    #[test]
    fn evening_removes_all_differences_and_quieting_those_of_chance() {
        let planted = |rank: usize, step: usize| {
            with_noise(rank, step) * if rank == 3 { 12 } else { 10 } / 10
        };
        let calls = steps(4, planted);
        let total = |nanos: &[Vec<u64>]| nanos.iter().flatten().sum::<u64>();
        let recorded: u64 = calls.ranks.iter().flatten().map(|call| call.nanos).sum();
        let evened = even(&calls);
        assert!(evened.iter().all(|of_rank| *of_rank == evened[0]));
        assert!(total(&evened).abs_diff(recorded) < 2000);
        let quieted = quiet(&calls);
        assert!(total(&quieted).abs_diff(recorded) < 2000);
        let sums: Vec<u64> = quieted.iter().map(|of_rank| of_rank.iter().sum()).collect();
        let ratio = sums[3] as f64 / sums[0] as f64;
        assert!((1.18..1.22).contains(&ratio), "{ratio}");
    }

    #[test]
    fn ranks_with_other_calls_keep_their_computing() {
        let mut calls = steps(3, with_noise);
        calls.ranks[1].pop();
        let nanos = even(&calls);
        let own: Vec<u64> = calls.ranks[1].iter().map(|call| call.nanos).collect();
        assert_eq!(nanos[1], own);
        assert_eq!(nanos[0], nanos[2]);
        calls.ranks.truncate(2);
        assert_eq!(unevenness(&calls, None), None);
    }
}
