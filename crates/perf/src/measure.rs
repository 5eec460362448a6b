//! All sizes of a plan, one after the other.

use anyhow::Result;
use results::stats;

use crate::counts::{Before, Counts};
use crate::end::End;
use crate::latency::{self, rounds};
use crate::plan::Plan;
use crate::stream::{Stream, stream};
use crate::target::Place;

/// What was found for one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub size: usize,
    pub iterations: usize,
    pub found: Found,
    pub counts: Counts,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Latency(Latency),
    Stream(Stream),
}

/// Microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    pub min: f64,
    /// What perftest calls typical.
    pub median: f64,
    pub mean: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Latency {
    /// Of times in picoseconds, of which so many parts are told.
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

/// Runs this end of a plan. Only the client's samples of latencies say anything; streams are known to both.
pub fn measure(
    place: &mut dyn Place,
    plan: &Plan,
    step: &mut dyn FnMut(usize),
) -> Result<Vec<Sample>> {
    plan.check()?;
    let modelled = place.is_modelled();
    let mut end = End::open(place, plan)?;
    let mut samples = Vec::new();
    for size in end.sizes() {
        let iterations = plan.iterations(size, modelled);
        let before = Before::new(&mut end);
        let found = match plan.benchmark.is_latency() {
            true => {
                let rounds = rounds(&mut end, size, iterations)?;
                Found::Latency(Latency::of(&rounds, latency::parts(plan.verb())))
            }
            false => Found::Stream(stream(&mut end, size, iterations)?),
        };
        samples.push(Sample {
            size,
            iterations,
            found,
            counts: before.since(&mut end)?,
        });
        step(size);
    }
    end.meet()?;
    Ok(samples)
}
