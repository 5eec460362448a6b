//! Computing that varies: nodes differ in their speed, and calls in their time.
//!
//! Invariants: a seed gives the same times on every machine; without variation the times are those
//! of the trace.

use sim::Random;

use crate::Computing;

/// The most times of nodes that a text may have.
const MOST_NODES: usize = 100_000;

/// The variation of computing between nodes and between calls. The values are those of a study of
/// 32 nodes of two processors (Cornebize and Legrand, mpi_calibration): 53 of 64 processors within
/// 0.9 %, 11 slower by 5 to 33 %, calls longer by 3.4 %.
#[derive(Clone, Debug, PartialEq)]
pub struct Variability {
    /// The times of the same work on measured nodes, as parts of their mean. A draw deals them to
    /// the job's nodes, from the first again where these are more, in place of the three values
    /// below. Empty: those values.
    pub nodes: Vec<f64>,
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
            nodes: Vec::new(),
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
        nodes: Vec::new(),
        node: 0.0,
        slow_one_in: 0,
        slower: 0.0,
        call: 0.0,
    };

    /// Reads the times of nodes from the lines of a text: a number each, in any unit. Empty lines
    /// and comments behind `#` are ignored.
    ///
    /// # Errors
    ///
    /// The number of a line that is not a positive number, or a text without two times.
    pub fn of_times(text: &str) -> Result<Variability, String> {
        let mut times = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let value = line.split('#').next().unwrap_or_default().trim();
            if value.is_empty() {
                continue;
            }
            let time: Option<f64> = value.parse().ok().filter(|time| is_time(*time));
            let why = || format!("line {number}: {value:?} is not the time of a node");
            times.push(time.ok_or_else(why)?);
            if times.len() > MOST_NODES {
                return Err(format!("more than {MOST_NODES} times"));
            }
        }
        if times.len() < 2 {
            return Err("it needs the times of two nodes or more, one a line".into());
        }
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        Ok(Variability {
            nodes: times.iter().map(|time| time / mean).collect(),
            ..Variability::default()
        })
    }

    /// The factors of the times of so many nodes.
    fn of_nodes(&self, seed: u64, nodes: usize) -> Vec<f64> {
        if self.nodes.is_empty() {
            return (0..nodes).map(|node| self.of_node(seed, node)).collect();
        }
        let mut dealt: Vec<usize> = (0..self.nodes.len()).collect();
        dealt.sort_by_cached_key(|at| mixed(seed, *at as u64));
        let dealt = dealt.iter().map(|at| self.nodes[*at]);
        dealt.cycle().take(nodes).collect()
    }

    /// The factor of a node's times, where no times of nodes are given.
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
        let nodes = (0..self.ranks())
            .map(&node)
            .max()
            .map_or(0, |last| last + 1);
        let of_nodes: Vec<f64> = by.of_nodes(seed, nodes);
        let factors: Vec<f64> = (0..self.ranks()).map(|rank| of_nodes[node(rank)]).collect();
        let mut calls: Vec<Random> = (0..self.ranks() as u64)
            .map(|rank| Random::new(mixed(!seed, rank)))
            .collect();
        self.with_nanos(|rank, nanos| {
            let delay = by.call * normal(&mut calls[rank]).abs();
            (nanos as f64 * factors[rank] * (1.0 + delay)).round() as u64
        })
    }
}

/// True if a number is a time of a node: positive, and within nine decades of one.
fn is_time(time: f64) -> bool {
    (1e-9..=1e9).contains(&time)
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
    fn measured_times_are_dealt_to_the_nodes_by_the_seed() {
        let text = "# seconds\n2.0\n\n3.0 # slow\n1.0\n";
        let by = Variability {
            call: 0.0,
            ..Variability::of_times(text).unwrap()
        };
        let all = computing();
        let deal = |seed| factors(&all, &all.varied(&by, seed, |rank| rank));
        let mut first = deal(1)[..3].to_vec();
        assert_eq!(first, deal(1)[3..6]);
        assert!((2..20).any(|seed| deal(seed)[..3] != first));
        first.sort_by(f64::total_cmp);
        assert_eq!(first, [0.5, 1.0, 1.5]);
    }

    #[test]
    fn a_line_that_is_no_time_is_named() {
        let why = |text| Variability::of_times(text).unwrap_err();
        let line = "line 2: \"fast\" is not the time of a node";
        assert_eq!(why("1\nfast\n"), line);
        assert!(why("1\n-1\n").contains("line 2"));
        assert!(why("inf\n1\n").contains("line 1"));
        assert!(why("1\n").contains("two nodes"));
        assert!(why(&"1\n".repeat(MOST_NODES + 1)).contains("more than"));
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
