//! Rounds: libraries run alternately, because the machine's speed drifts and only runs side by side
//! are comparable. The order of libraries rotates by one in every round.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use conditions::{Conditions, Disturbances};
use results::stats::{self, digits};
use results::{Console, Unit};
use serde::Serialize;

use crate::job::Job;
use crate::library::Library;
use crate::message::Sample;
use crate::plan::{Benchmark, WorkerPlan};
use crate::remarks;

/// A plan on a number of ranks.
pub(crate) struct Case {
    pub(crate) plan: WorkerPlan,
    pub(crate) ranks: usize,
}

/// The libraries to run, and the number of rounds.
pub(crate) struct Rounds<'a> {
    pub(crate) command: &'a Path,
    pub(crate) libraries: &'a [Library],
    pub(crate) rounds: usize,
    pub(crate) timeout: Duration,
}

/// One figure, measured once in each round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    /// The benchmark, such as `latency`, or one of its figures, such as `init/private`.
    pub(crate) benchmark: String,
    pub(crate) library: String,
    /// The library's label in tables and plots.
    pub(crate) label: String,
    /// The modelled machine, if any.
    pub(crate) fabric: Option<String>,
    pub(crate) ranks: usize,
    /// The skew of every second rank in microseconds, if the user chose one.
    pub(crate) skew: Option<f64>,
    pub(crate) size: usize,
    /// Whether its messages have a size.
    pub(crate) is_sized: bool,
    pub(crate) unit: Unit,
    pub(crate) rounds: Vec<f64>,
    /// Collectives: the times of the fastest and the slowest rank in each round.
    pub(crate) extremes: Vec<(f64, f64)>,
    /// The timed iterations in each round, of benchmarks that have several.
    pub(crate) iterations: Vec<usize>,
    /// The percentiles with their values in each round.
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

    /// The figure of a round that met these disturbances. Those of a modelled machine's computer
    /// change no figure.
    fn under(self, disturbances: Disturbances, binding: &[String]) -> Measurement {
        match self.fabric {
            Some(_) => self,
            None => Measurement {
                disturbances: vec![disturbances],
                binding: binding.to_vec(),
                ..self
            },
        }
    }

    /// Adds another round of this figure.
    fn add(&mut self, round: Measurement) {
        self.rounds.extend(round.rounds);
        self.extremes.extend(round.extremes);
        self.iterations.extend(round.iterations);
        self.disturbances.extend(round.disturbances);
        for ((_, values), (_, more)) in self.percentiles.iter_mut().zip(round.percentiles) {
            values.extend(more);
        }
    }

    /// The object of `--json`, with the conditions of the run.
    pub(crate) fn json(&self, conditions: Option<&Conditions>) -> String {
        let interval = stats::median_interval(&self.rounds);
        let disturbances = self.disturbances.iter().copied().reduce(Disturbances::and);
        let percentile =
            |(p, values): &(f64, Vec<f64>)| (p.to_string(), digits(stats::median(values)).into());
        let object = Object {
            benchmark: &self.benchmark,
            library: &self.library,
            fabric: self.fabric.as_deref(),
            ranks: self.ranks,
            skew_us: self.skew,
            size: self.size,
            median: digits(self.median()),
            min: digits(stats::min(&self.rounds)),
            max: digits(stats::max(&self.rounds)),
            unit: self.unit.name(),
            iterations: self.iterations.iter().copied().min(),
            percentiles: self.percentiles.iter().map(percentile).collect(),
            interval: interval.map(|(low, high)| [digits(low), digits(high)]),
            remarks: remarks::on(self, conditions),
            binding: &self.binding,
            disturbances: disturbances.filter(|_| conditions.is_some()),
            conditions,
        };
        serde_json::to_string(&object).expect("numbers and strings are always JSON")
    }
}

#[derive(Serialize)]
struct Object<'a> {
    benchmark: &'a str,
    library: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fabric: Option<&'a str>,
    ranks: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    skew_us: Option<f64>,
    size: usize,
    median: f64,
    min: f64,
    max: f64,
    unit: &'a str,
    /// The fewest of all rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<usize>,
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    percentiles: serde_json::Map<String, serde_json::Value>,
    /// The interval that holds the median with a confidence of 95 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    binding: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    disturbances: Option<Disturbances>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<&'a Conditions>,
}

/// Adds the figures of a round to those of earlier rounds.
pub(crate) fn merge(all: &mut Vec<Measurement>, round: Vec<Measurement>) {
    for one in round {
        match all.iter_mut().find(|known| known.key() == one.key()) {
            Some(known) => known.add(one),
            None => all.push(one),
        }
    }
}

impl Rounds<'_> {
    /// The number of steps of the progress bar.
    pub(crate) fn steps(&self, cases: &[Case]) -> usize {
        let sizes: usize = cases.iter().map(|case| case.plan.sizes.len()).sum();
        sizes * self.libraries.len() * self.rounds
    }

    /// Runs all cases in every round; `each_round` adds further figures of a round.
    pub(crate) fn run(
        &self,
        cases: &[Case],
        console: &mut Console,
        mut each_round: impl FnMut(&mut Console) -> Result<Vec<Measurement>>,
    ) -> Result<Vec<Measurement>> {
        let mut all = Vec::new();
        for round in 0..self.rounds {
            merge(&mut all, each_round(console)?);
            for case in cases {
                for turn in 0..self.libraries.len() {
                    let library = &self.libraries[(round + turn) % self.libraries.len()];
                    merge(&mut all, self.one(case, library, console)?);
                }
            }
        }
        Ok(all)
    }

    fn one(
        &self,
        case: &Case,
        library: &Library,
        console: &mut Console,
    ) -> Result<Vec<Measurement>> {
        let benchmark = case.plan.benchmark.name();
        console.doing(format!(
            "{benchmark}, {} ranks, {}",
            case.ranks, library.label
        ));
        match case.plan.benchmark {
            Benchmark::Init => self.start(case, library, console),
            Benchmark::FirstTouch => self.first_touch(case, library, console),
            _ => self.samples(case, library, console),
        }
    }

    /// The version strings of the libraries.
    pub(crate) fn versions(&self, console: &mut Console) -> Result<Vec<String>> {
        let plan = WorkerPlan {
            iterations: Some(1),
            skip: Some(0),
            ..WorkerPlan::new(Benchmark::collective("barrier"), None)?
        };
        let version = |library| {
            Ok(self
                .job(&plan, 2, library)
                .run(console)?
                .version
                .unwrap_or_default())
        };
        self.libraries.iter().map(version).collect()
    }

    fn samples(
        &self,
        case: &Case,
        library: &Library,
        console: &mut Console,
    ) -> Result<Vec<Measurement>> {
        let job = self.job(&case.plan, case.ranks, library);
        let (outcome, disturbances) = job.run_watched(console)?;
        let binding = outcome.binding();
        let measurements = |sample| self.figures(case, library, sample);
        let all = outcome.samples.into_iter().flat_map(measurements);
        Ok(all.map(|one| one.under(disturbances, &binding)).collect())
    }

    /// The figures of one size.
    fn figures(&self, case: &Case, library: &Library, sample: Sample) -> Vec<Measurement> {
        let (size, unit) = (sample.size, case.plan.benchmark.unit());
        let part = |part, unit, value| Measurement {
            // In virtual time the number changes nothing.
            iterations: match library.fabric {
                Some(_) => Vec::new(),
                None => vec![sample.iterations],
            },
            ..self.number(case, library, part, unit, size, value)
        };
        let percentiles = case.plan.percentiles.iter().copied();
        let whole = Measurement {
            extremes: sample.ranks.into_iter().collect(),
            percentiles: percentiles
                .zip(&sample.percentiles)
                .map(|(p, &v)| (p, vec![v]))
                .collect(),
            ..part("", unit, sample.value)
        };
        let Some(overlap) = &sample.overlap else {
            return vec![whole];
        };
        vec![
            whole,
            part("/overall", unit, overlap.overall),
            part("/compute", unit, overlap.compute),
            part("/overlap", Unit::Percent, overlap.percent),
        ]
    }

    /// The first messages of a pair of ranks: their time, and the memory that they take.
    fn first_touch(
        &self,
        case: &Case,
        library: &Library,
        console: &mut Console,
    ) -> Result<Vec<Measurement>> {
        let job = self.job(&case.plan, case.ranks, library);
        let (outcome, disturbances) = job.run_watched(console)?;
        let binding = outcome.binding();
        let (memory, samples) = (outcome.memory.unwrap_or_default(), outcome.samples);
        let figures = samples.into_iter().flat_map(|sample| {
            let count = sample.iterations;
            [
                (format!("/{count}"), Unit::Microseconds, sample.value),
                (format!("/{count}/pair"), Unit::Kibibytes, memory.pair_kib),
                (
                    format!("/{count}/rank"),
                    Unit::Kibibytes,
                    memory.resident_kib,
                ),
            ]
            .map(|(part, unit, value)| self.number(case, library, &part, unit, sample.size, value))
        });
        let under = |one: Measurement| one.under(disturbances, &binding);
        Ok(figures.map(under).collect())
    }

    /// Start-up: one run measures the wall-clock time, another the time of MPI_Init and the memory.
    fn start(
        &self,
        case: &Case,
        library: &Library,
        console: &mut Console,
    ) -> Result<Vec<Measurement>> {
        let job = self.job(&case.plan, case.ranks, library);
        let (quick, disturbances) = job.run_watched(console)?;
        let plan = WorkerPlan {
            inspect: true,
            ..case.plan.clone()
        };
        let start = self
            .job(&plan, case.ranks, library)
            .run(console)?
            .start
            .unwrap_or_default();
        console.step();
        let wall = quick.wall.as_secs_f64() * 1e3;
        let numbers = [
            ("", Unit::Milliseconds, wall),
            ("/call", Unit::Milliseconds, start.init),
            ("/resident", Unit::Kibibytes, start.resident_kib),
            ("/private", Unit::Kibibytes, start.private_kib),
        ];
        let number = |(part, unit, value)| {
            let one = self.number(case, library, part, unit, 0, value);
            one.under(disturbances, &[])
        };
        Ok(numbers.map(number).into())
    }

    fn job<'a>(&'a self, plan: &'a WorkerPlan, ranks: usize, library: &'a Library) -> Job<'a> {
        Job {
            command: self.command,
            library,
            ranks,
            plan,
            timeout: self.timeout,
        }
    }

    fn number(
        &self,
        case: &Case,
        library: &Library,
        part: &str,
        unit: Unit,
        size: usize,
        value: f64,
    ) -> Measurement {
        Measurement {
            benchmark: format!("{}{part}", case.plan.benchmark.name()),
            library: library.name.clone(),
            // A column for each skew.
            label: match case.plan.skew {
                None => library.label.clone(),
                Some(skew) => format!("{}, skew {skew} µs", library.label),
            },
            fabric: library.fabric.clone(),
            ranks: case.ranks,
            skew: case.plan.skew,
            size,
            is_sized: case.plan.benchmark.sized(),
            unit,
            rounds: vec![value],
            extremes: Vec::new(),
            iterations: Vec::new(),
            percentiles: Vec::new(),
            disturbances: Vec::new(),
            binding: Vec::new(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A figure of two ranks, with a value for each round.
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
    fn json_has_the_promised_members_in_the_promised_order() {
        let rounds = [0.25, 0.125, 0.333_333_333_3];
        let mut one = measured("a", "latency", 8, Unit::Microseconds, &rounds);
        one.library = "fishplate".into();
        assert_eq!(
            one.json(None),
            r#"{"benchmark":"latency","library":"fishplate","ranks":2,"size":8,"median":0.25,"min":0.125,"max":0.333333,"unit":"us","interval":[0.125,0.333333],"remarks":["the rounds differ by a factor of 2.7, more than usual; the kernel's counters show no reason"]}"#
        );
        one.percentiles = vec![(50.0, vec![0.5, 0.75, 1.0]), (99.9, vec![2.0])];
        let part = r#""unit":"us","percentiles":{"50":0.75,"99.9":2.0},"interval""#;
        assert!(one.json(None).contains(part));
        one.iterations = vec![100, 80, 90];
        assert!(one.json(None).contains(r#""unit":"us","iterations":80,"#));
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
