//! The measurement of all sizes of a plan, one after the other.

use anyhow::Result;
use results::stats;

use crate::counts::{Before, Counts};
use crate::latency::{self, rounds};
use crate::plan::PerfPlan;
use crate::side::Side;
use crate::stream::{Stream, stream};
use crate::target::Target;

/// The results of a benchmark for one message size.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The size of a message, in bytes.
    pub size: usize,
    /// The number of messages on each queue pair.
    pub iterations: usize,
    /// The latencies or rates that were measured.
    pub found: Found,
    /// The counts of requests to both devices, and of packets.
    pub counts: Counts,
    /// The use of the resources of a modelled machine, the busiest first; only for sockets.
    pub uses: Vec<Use>,
}

/// The use of one kind of resource of a modelled machine, or of one kind of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// The kind of resource: copies (a processor that mainly copies), kernel (a processor with
    /// other work), memory, bus, HCA or link.
    pub resource: &'static str,
    /// The share of the time for which the busiest resource of its kind was busy.
    pub share: f64,
}

/// The figures of a benchmark for one message size.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The figures of a latency benchmark.
    Latency(Latency),
    /// The figures of a stream.
    Stream(Stream),
}

/// Statistics of latencies, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// The smallest latency.
    pub min: f64,
    /// The median latency, which perftest calls typical.
    pub median: f64,
    /// The mean latency.
    pub mean: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The largest latency.
    pub max: f64,
}

impl Latency {
    /// The statistics of the times of iterations, in picoseconds, each of which consists of `parts`
    /// latencies.
    pub fn of(picos: &[u64], parts: f64) -> Latency {
        let mut micros: Vec<f64> = picos
            .iter()
            .map(|&time| time as f64 / parts / 1e6)
            .collect();
        micros.sort_by(f64::total_cmp);
        Latency {
            min: stats::min(&micros),
            median: stats::median(&micros),
            mean: micros.iter().sum::<f64>() / micros.len() as f64,
            p99: stats::percentile(&micros, 99.0),
            p999: stats::percentile(&micros, 99.9),
            max: stats::max(&micros),
        }
    }
}

/// Runs this side of a plan. `step` is called after each size. The client returns all figures; the
/// server only those of streams.
pub fn measure(
    target: &mut dyn Target,
    plan: &PerfPlan,
    step: &mut dyn FnMut(usize),
) -> Result<Vec<Sample>> {
    plan.check()?;
    let modelled = target.is_modelled();
    let mut side = Side::open(target, plan)?;
    let mut samples = Vec::new();
    for size in side.sizes() {
        let iterations = plan.iterations(size, modelled);
        side.target.synchronise_pairs()?;
        let before = Before::new(&mut side);
        let found = match plan.benchmark.is_latency() {
            true => {
                let rounds = rounds(&mut side, size, iterations)?;
                Found::Latency(Latency::of(&rounds, latency::parts(plan.verb())))
            }
            false => Found::Stream(stream(&mut side, size, iterations)?),
        };
        samples.push(Sample {
            size,
            iterations,
            found,
            counts: before.since(&mut side)?,
            uses: Vec::new(),
        });
        step(size);
    }
    side.synchronise()?;
    Ok(samples)
}
