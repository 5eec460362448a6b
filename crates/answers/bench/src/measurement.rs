//! Measurements: one figure of one library, with its value in each round.

use conditions::Disturbances;
use results::Unit;
use results::stats;

/// One figure of a benchmark, measured once in each round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    /// The name of the benchmark, such as `latency`, or of one of its figures, such as
    /// `init/private`.
    pub(crate) benchmark: String,
    pub(crate) library: String,
    /// The label of the measured library in tables and plots.
    pub(crate) label: String,
    /// The modelled machine on which the benchmark ran, if any.
    pub(crate) fabric: Option<String>,
    pub(crate) ranks: usize,
    /// The delay of every second rank in microseconds, if the user chose one.
    pub(crate) skew: Option<f64>,
    pub(crate) size: usize,
    /// True if the benchmark's messages have a size.
    pub(crate) is_sized: bool,
    pub(crate) unit: Unit,
    pub(crate) rounds: Vec<f64>,
    /// The times of the fastest and of the slowest rank in each round, for collectives.
    pub(crate) extremes: Vec<(f64, f64)>,
    /// The number of timed iterations in each round, for benchmarks that have several.
    pub(crate) iterations: Vec<usize>,
    /// The percentiles, each with its values in all rounds.
    pub(crate) percentiles: Vec<(f64, Vec<f64>)>,
    /// The disturbances of each round. Empty on modelled machines.
    pub(crate) disturbances: Vec<Disturbances>,
    /// The hardware threads that each rank could use.
    pub(crate) binding: Vec<String>,
}

impl Measurement {
    pub(crate) fn median(&self) -> f64 {
        stats::median(&self.rounds)
    }

    fn key(&self) -> (&str, &str, usize, usize) {
        (&self.benchmark, &self.label, self.ranks, self.size)
    }

    /// Adds the disturbances and the binding of a round to its figure. A modelled machine's figure
    /// stays unchanged: disturbances of the computer do not affect it.
    pub(crate) fn under(self, disturbances: Disturbances, binding: &[String]) -> Measurement {
        match self.fabric {
            Some(_) => self,
            None => Measurement {
                disturbances: vec![disturbances],
                binding: binding.to_vec(),
                ..self
            },
        }
    }

    /// Adds the values of another round to those of the rounds before.
    fn add(&mut self, round: Measurement) {
        self.rounds.extend(round.rounds);
        self.extremes.extend(round.extremes);
        self.iterations.extend(round.iterations);
        self.disturbances.extend(round.disturbances);
        for ((_, values), (_, more)) in self.percentiles.iter_mut().zip(round.percentiles) {
            values.extend(more);
        }
    }
}

/// Adds the figures of a round to the figures of earlier rounds.
pub(crate) fn merge(all: &mut Vec<Measurement>, round: Vec<Measurement>) {
    for one in round {
        match all.iter_mut().find(|known| known.key() == one.key()) {
            Some(known) => known.add(one),
            None => all.push(one),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A figure of two ranks, with these values in its rounds.
    pub(crate) fn measured(
        label: &str,
        benchmark: &str,
        size: usize,
        unit: Unit,
        rounds: &[f64],
    ) -> Measurement {
        Measurement {
            benchmark: benchmark.into(),
            library: format!("/opt/{label}/lib/libmpi_abi.so.1"),
            label: label.into(),
            fabric: None,
            ranks: 2,
            skew: None,
            size,
            is_sized: size > 0,
            unit,
            rounds: rounds.into(),
            extremes: Vec::new(),
            iterations: Vec::new(),
            percentiles: Vec::new(),
            disturbances: Vec::new(),
            binding: Vec::new(),
        }
    }

    #[test]
    fn rounds_are_merged_by_what_they_measure() {
        let one = |label, size, value| measured(label, "bw", size, Unit::Microseconds, &[value]);
        let mut all = Vec::new();
        merge(
            &mut all,
            vec![one("a", 1, 1.0), one("a", 2, 2.0), one("b", 1, 3.0)],
        );
        merge(
            &mut all,
            vec![one("b", 1, 5.0), one("a", 1, 2.0), one("a", 2, 4.0)],
        );
        let rounds: Vec<&[f64]> = all.iter().map(|m| m.rounds.as_slice()).collect();
        assert_eq!(rounds, [&[1.0, 2.0], &[2.0, 4.0], &[3.0, 5.0]]);
        assert_eq!(all[0].median(), 1.5);
    }
}
