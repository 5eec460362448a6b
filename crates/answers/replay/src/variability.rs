//! Computing that varies: nodes differ in their speed, and calls in their time.
//!
//! Invariants: a seed gives the same times on every machine; without variation the times are those
//! of the trace.

use sim::Random;

use crate::Computing;

/// The variation of computing between nodes and between calls. The values are those of a study of
/// 32 nodes of two processors (Cornebize and Legrand, mpi_calibration): 53 of 64 processors within
/// 0.9 %, 11 slower by 5 to 33 %, calls longer by 3.4 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variability {
    /// The standard deviation of a node's times, as a part of them.
    pub node: f64,
    /// The number of nodes of which one is slow. 0: none is.
    pub slow_one_in: u64,
    /// The part by which a slow node's times are longer.
    pub slower: f64,
    /// The deviation of a call's time, as a part of it: half of a normal distribution, as a call is
    /// delayed and never hastened.
    pub call: f64,
}

impl Default for Variability {
    fn default() -> Variability {
        Variability {
            node: 0.01,
            slow_one_in: 6,
            slower: 0.1,
            call: 0.034,
        }
    }
}

impl Variability {
    /// The variation between nodes that is none.
    pub const NONE: Variability = Variability {
        node: 0.0,
        slow_one_in: 0,
        slower: 0.0,
        call: 0.0,
    };

    /// The factor of a node's times.
    fn of_node(&self, seed: u64, node: usize) -> f64 {
        let mut random = Random::new(mixed(seed, node as u64));
        let is_slow = self.slow_one_in > 0 && random.below(self.slow_one_in) == 0;
        let slower = if is_slow { self.slower } else { 0.0 };
        (1.0 + self.node * normal(&mut random) + slower).max(0.5)
    }
}

impl Computing {
    /// The computing as it varies. `node` is that of a rank. The seed selects the speeds of nodes
    /// and the delays of calls.
    pub fn varied(&self, by: &Variability, seed: u64, node: impl Fn(usize) -> usize) -> Computing {
        let factors: Vec<f64> = (0..self.ranks())
            .map(|rank| by.of_node(seed, node(rank)))
            .collect();
        let mut calls: Vec<Random> = (0..self.ranks() as u64)
            .map(|rank| Random::new(mixed(!seed, rank)))
            .collect();
        self.with_nanos(|rank, nanos| {
            let delay = by.call * normal(&mut calls[rank]).abs();
            (nanos as f64 * factors[rank] * (1.0 + delay)).round() as u64
        })
    }
}

/// A seed of a part.
fn mixed(seed: u64, part: u64) -> u64 {
    let mut random = Random::new(seed);
    random.word() ^ Random::new(part).word()
}

/// A number of about a normal distribution: the sum of twelve even ones (Irwin and Hall), which has
/// the same bits on every machine.
fn normal(random: &mut Random) -> f64 {
    const PARTS: u64 = 1 << 32;
    let sum: u64 = (0..12).map(|_| random.below(PARTS)).sum();
    sum as f64 / PARTS as f64 - 6.0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::{Pattern, Recipe};

    use super::*;

    fn computing() -> Computing {
        let recipe = Recipe {
            pattern: Pattern::Ring,
            ranks: 240,
            steps: 20,
            bytes: 8,
            nanos: 1_000_000,
            sum_every: 0,
            seed: 1,
        };
        Computing::of(Arc::new(recipe.make("test".into()))).unwrap()
    }

    /// The computing time of each rank, over that of the trace.
    fn factors(of: &Computing, varied: &Computing) -> Vec<f64> {
        let time = |computing: &Computing, rank| {
            let calls = computing.calls(rank);
            calls.map(|(_, _, nanos)| nanos).sum::<u64>() as f64
        };
        (0..of.ranks())
            .map(|rank| time(varied, rank) / time(of, rank))
            .collect()
    }

    #[test]
    fn without_variation_times_are_those_of_the_trace() {
        let all = computing();
        assert_eq!(all.varied(&Variability::NONE, 1, |rank| rank), all);
    }

    #[test]
    fn ranks_of_a_node_are_equally_fast_and_a_seed_selects_the_slow_nodes() {
        let all = computing();
        let by = Variability {
            call: 0.0,
            ..Variability::default()
        };
        let one = factors(&all, &all.varied(&by, 7, |rank| rank / 4));
        for ranks in one.chunks(4) {
            assert!(ranks.iter().all(|own| (own - ranks[0]).abs() < 1e-6));
        }
        let slow = one.iter().filter(|factor| **factor > 1.05).count() / 4;
        assert!((3..=20).contains(&slow), "{slow} of 60 nodes");
        assert_eq!(one, factors(&all, &all.varied(&by, 7, |rank| rank / 4)));
        assert_ne!(one, factors(&all, &all.varied(&by, 8, |rank| rank / 4)));
    }

    #[test]
    fn calls_are_delayed_and_never_hastened() {
        let all = computing();
        let by = Variability {
            call: 0.034,
            ..Variability::NONE
        };
        let times = factors(&all, &all.varied(&by, 3, |rank| rank));
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!(times.iter().all(|factor| *factor >= 1.0));
        // The mean of half a normal distribution is 0.8 of its deviation.
        assert!((mean - 1.027).abs() < 0.002, "{mean}");
    }
}
