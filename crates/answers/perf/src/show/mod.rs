//! Results as a table, as lines of JSON, and as a plot.

mod json;
mod remarks;
mod table;

use anyhow::Result;
use results::origin::Made;
use results::plot::{Across, Panel, Plot, PlotFile, Series, Values};
use results::sizes::size_label;
use results::table::distinct;

use crate::benchmark::Verb;
use crate::measure::{Found, Sample};
use crate::plan::PerfPlan;
pub use json::json;
pub(crate) use remarks::Met;
pub use remarks::remarks;
pub use table::table;

/// The results of one modelled machine or device.
#[derive(Clone, Debug)]
pub struct TargetResults {
    /// The name of the modelled machine or of the device.
    pub label: String,
    /// True if the results are those of a modelled machine.
    pub modelled: bool,
    /// The results of all sizes.
    pub samples: Vec<Sample>,
}

impl Sample {
    /// The main figure in the benchmark's unit: the median latency, or the rate of sent messages.
    pub fn value(&self, plan: &PerfPlan) -> f64 {
        match &self.found {
            Found::Latency(found) => found.median,
            Found::Stream(found) => self.rate(plan, found.sent_rate),
        }
    }

    /// Converts messages per second to the benchmark's unit.
    fn rate(&self, plan: &PerfPlan, messages: f64) -> f64 {
        match plan.benchmark.unit() {
            results::Unit::MegabytesPerSecond => messages * self.size as f64 / 1e6,
            _ => messages,
        }
    }
}

impl TargetResults {
    fn at(&self, size: usize) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.size == size)
    }
}

/// The size at which a bandwidth reaches half of its peak (N/2), interpolated linearly, and the
/// peak. `None` if no measured size is below the half.
pub fn half_peak(points: &[(usize, f64)]) -> Option<(f64, f64)> {
    let peak = points.iter().map(|point| point.1).max_by(f64::total_cmp)?;
    let half = peak / 2.0;
    let above = points.iter().position(|point| point.1 >= half)?;
    let (low, high) = (points.get(above.checked_sub(1)?)?, points[above]);
    let share = (half - low.1) / (high.1 - low.1);
    Some((low.0 as f64 + share * (high.0 - low.0) as f64, peak))
}

fn half(plan: &PerfPlan, outcome: &TargetResults) -> Option<(f64, f64)> {
    if plan.benchmark.unit() != results::Unit::MegabytesPerSecond {
        return None;
    }
    let points = outcome
        .samples
        .iter()
        .map(|sample| (sample.size, sample.value(plan)));
    half_peak(&points.collect::<Vec<_>>())
}

/// Draws one curve for each target, or two if the received rate can differ from the sent rate.
pub fn draw(plan: &PerfPlan, all: &[TargetResults], file: PlotFile) -> Result<()> {
    let lossy = !plan.transport.is_reliable() && plan.verb() == Verb::Send;
    let unit = plan.benchmark.unit();
    let mut series = Vec::new();
    for outcome in all {
        let mut add = |name: String, value: &dyn Fn(&Sample) -> Option<f64>| {
            let points = outcome
                .samples
                .iter()
                .filter_map(|sample| Some((sample.size as f64, unit.scaled(value(sample)?))));
            let points: Vec<(f64, f64)> = points.filter(|point| point.1 > 0.0).collect();
            if !points.is_empty() {
                series.push(Series::line(name, points));
            }
        };
        let received = |sample: &Sample| match &sample.found {
            Found::Stream(found) => Some(sample.rate(plan, found.received?.1)),
            Found::Latency(_) => None,
        };
        let both = lossy && !plan.benchmark.is_latency();
        let name = if both {
            format!("{}, sent", outcome.label)
        } else {
            outcome.label.clone()
        };
        add(name, &|sample| Some(sample.value(plan)));
        if both {
            add(format!("{}, received", outcome.label), &received);
        }
    }
    let sizes = distinct(
        all.iter()
            .flat_map(|outcome| outcome.samples.iter().map(|sample| sample.size)),
    );
    let across = if sizes.len() > 1 {
        Across::Sizes
    } else {
        Across::Nothing
    };
    let mut words = vec![
        plan.benchmark.name().to_owned(),
        plan.transport.name().to_owned(),
    ];
    if let [size] = sizes[..] {
        words.push(size_label(size));
    }
    if plan.qps > 1 {
        words.push(format!("{} queue pairs", plan.qps));
    }
    if plan.pairs > 1 {
        words.push(format!("{} pairs", plan.pairs));
    }
    if plan.bidirectional {
        words.push("both ways".into());
    }
    let panel = Panel {
        title: words.join(", "),
        unit,
        across,
        quantity: "message size".into(),
        values: Values::Logarithmic,
        bands: Vec::new(),
        series,
    };
    let plot = Plot {
        caption: Made::here().line(),
        ..Plot::from(&panel)
    };
    file.draw(&[plot])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_peak_lies_between_two_sizes() {
        assert_eq!(
            half_peak(&[(2, 10.0), (4, 20.0), (8, 80.0), (16, 100.0)]),
            Some((6.0, 100.0))
        );
        assert_eq!(half_peak(&[(2, 50.0), (4, 100.0)]), None);
        assert_eq!(half_peak(&[(64, 50.0)]), None);
        assert_eq!(half_peak(&[]), None);
    }
}
