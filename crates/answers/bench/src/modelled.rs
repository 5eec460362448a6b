//! Benchmarks on modelled machines, for the experiments of a study.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use results::Console;
use results::sizes::parse_bytes;

use crate::benchmark::Benchmark;
use crate::job::Job;
use crate::library::{Fabrics, Library};
use crate::operation::Collective;
use crate::plan::WorkerPlan;
use crate::sizes::SizeRange;

/// One benchmark on a modelled machine, with settings of the library.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name of the experiment's curve.
    pub label: String,
    /// The modelled machine: a name from the catalogue, or a file.
    pub fabric: String,
    /// The benchmark's name on the command line.
    pub benchmark: &'static str,
    /// The number of ranks.
    pub ranks: usize,
    /// The number of ranks on each host.
    pub ppn: usize,
    /// The message sizes: ranges as on the command line, and single sizes, separated by commas.
    /// They are measured in ascending order.
    pub sizes: String,
    /// The number of timed iterations; `None`: the benchmark's default.
    pub iterations: Option<usize>,
    /// True to predict the MPI library that the machine names, if it names one: the defaults of the
    /// settings are then that library's protocols.
    pub named: bool,
    /// The environment variables that set the library, with their values.
    pub settings: Vec<(String, String)>,
    /// The delay with which every second rank begins its iterations, in microseconds. `None`: no
    /// rank is delayed. Benchmarks in which one rank waits for the other anyway ignore it.
    pub skew: Option<f64>,
}

/// The result of an experiment: a value for each message size.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name of the curve.
    pub label: String,
    /// The points of the curve in the order of measurement: a size in bytes, and the value.
    pub points: Vec<(usize, f64)>,
}

impl Curve {
    /// The value of the curve at a message size.
    pub fn at(&self, size: usize) -> Option<f64> {
        let point = self.points.iter().find(|(at, _)| *at == size)?;
        Some(point.1)
    }

    /// The highest value of the curve.
    pub fn peak(&self) -> Option<f64> {
        self.points
            .iter()
            .map(|(_, value)| *value)
            .max_by(f64::total_cmp)
    }
}

/// The longest time without output of a job. A busy computer may take minutes for a size; a
/// deadlock in virtual time is reported at once.
const PATIENCE: Duration = Duration::from_secs(600);

/// The number of steps of a progress bar for an experiment.
pub fn steps(experiment: &Experiment) -> Result<usize> {
    Ok(plan(experiment)?.sizes.len())
}

/// Runs an experiment. `command` is the path of the executable that starts jobs and workers.
pub fn run(command: &Path, experiment: &Experiment, console: &mut Console) -> Result<Curve> {
    let plan = plan(experiment)?;
    console.doing(format!("{}, {}", experiment.benchmark, experiment.label));
    let library = library(command, experiment)?;
    let job = Job {
        command,
        library: &library,
        ranks: experiment.ranks,
        plan: &plan,
        timeout: PATIENCE,
    };
    let outcome = job.run(console)?;
    let points = outcome
        .samples
        .iter()
        .map(|sample| (sample.size, sample.value));
    Ok(Curve {
        label: experiment.label.clone(),
        points: points.collect(),
    })
}

fn plan(experiment: &Experiment) -> Result<WorkerPlan> {
    let benchmark = named(experiment.benchmark)?;
    let mut plan = WorkerPlan::new(benchmark, None)?;
    plan.sizes = sizes(benchmark, &experiment.sizes)?;
    plan.modelled = true;
    plan.iterations = experiment.iterations;
    plan.skew = experiment.skew.filter(|_| benchmark.takes_skew());
    Ok(plan)
}

/// The sizes of a list of ranges and single sizes.
fn sizes(benchmark: Benchmark, list: &str) -> Result<Vec<usize>> {
    let mut all = Vec::new();
    for part in list.split(',') {
        let range = match part.contains(':') {
            true => SizeRange::parse(part)?,
            false => SizeRange::exactly(parse_bytes(part)?),
        };
        all.extend(WorkerPlan::new(benchmark, Some(&range))?.sizes);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn library(command: &Path, experiment: &Experiment) -> Result<Library> {
    let fabrics = Fabrics {
        names: vec![experiment.fabric.clone()],
        predict: match experiment.named {
            true => "named",
            false => "own",
        },
        ppn: experiment.ppn,
        seed: 1,
        placement: None,
        trace: None,
    };
    let mut library = fabrics
        .libraries(command)?
        .pop()
        .context("no modelled machine was named")?;
    library.label = experiment.label.clone();
    let settings = experiment.settings.iter();
    library.environment = settings
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    Ok(library)
}

fn named(name: &str) -> Result<Benchmark> {
    match name {
        "latency" => Ok(Benchmark::Latency),
        "bw" => Ok(Benchmark::Bw),
        "bibw" => Ok(Benchmark::Bibw),
        "sweep" => Ok(Benchmark::Sweep),
        "sort" => Ok(Benchmark::Sort),
        "mbw-mr" => Ok(Benchmark::MbwMr),
        other => match Collective::named(other) {
            Some(collective) => Ok(Benchmark::Collective(collective)),
            None => bail!("{other} is not a benchmark of a study"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_sizes_hold_ranges_and_single_sizes() {
        let sizes = |list| sizes(Benchmark::Bw, list);
        assert_eq!(sizes("4:16,6,8:8").unwrap(), [4, 6, 8, 16]);
        assert_eq!(sizes("1K:2K,1536").unwrap(), [1024, 1536, 2048]);
        assert!(sizes("4:16,").is_err());
        assert!(sizes("0").unwrap_err().to_string().contains("cannot be 0"));
    }
}
