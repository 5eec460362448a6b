//! Rounds: libraries run alternately, because the machine's speed drifts and only runs close in
//! time are comparable. The order of the libraries rotates by one in every round.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use results::{Console, Unit};

use crate::benchmark::Benchmark;
use crate::job::Job;
use crate::library::Library;
use crate::measurement::{Measurement, merge};
use crate::message::Sample;
use crate::plan::WorkerPlan;

/// A benchmark's plan, and the number of ranks that run it.
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

impl Rounds<'_> {
    /// The number of steps of the progress bar for these cases.
    pub(crate) fn steps(&self, cases: &[Case]) -> usize {
        let sizes: usize = cases.iter().map(|case| case.plan.sizes.len()).sum();
        sizes * self.libraries.len() * self.rounds
    }

    /// Runs all cases with all libraries in every round. `each_round` is called once in a round and
    /// returns further figures.
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

    /// The figures of one message size, each with the value of one round.
    fn figures(&self, case: &Case, library: &Library, sample: Sample) -> Vec<Measurement> {
        let (size, unit) = (sample.size, case.plan.benchmark.unit());
        let part = |part, unit, value| Measurement {
            // In virtual time results do not depend on the number of iterations, so it is omitted.
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

    /// Measures the first messages of a pair of ranks: their time, and the memory that they take.
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

    /// Measures start-up: one run for the wall-clock time, another for the time of MPI_Init and the
    /// memory.
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
            // Each skew gets its own column.
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
