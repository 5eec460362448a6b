//! What was found, as a table, as lines of JSON, as a picture.

use std::path::Path;

use anyhow::Result;
use results::plot::{self, Across, Panel, Series};
use results::sizes::size_label;
use results::stats::digits;
use results::table::{distinct, lines, number, ratio, significant};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::counts::Counts;
use crate::measure::{Found, Sample};
use crate::plan::{Plan, Transport, Verb};

/// What was found at one place.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The modelled machine, or the device.
    pub label: String,
    pub modelled: bool,
    pub samples: Vec<Sample>,
}

impl Sample {
    /// In the unit of its benchmark: the median of latencies, the rate of what was sent.
    pub fn value(&self, plan: &Plan) -> f64 {
        match &self.found {
            Found::Latency(found) => found.median,
            Found::Stream(found) => self.rate(plan, found.sent_rate),
        }
    }

    /// Messages a second, in the benchmark's unit.
    fn rate(&self, plan: &Plan, messages: f64) -> f64 {
        match plan.benchmark.unit() {
            results::Unit::MegabytesPerSecond => messages * self.size as f64 / 1e6,
            _ => messages,
        }
    }
}

impl Outcome {
    fn at(&self, size: usize) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.size == size)
    }
}

/// The size at which a bandwidth reaches half of its peak (N/2), and the peak: between two sizes it is taken to grow
/// evenly. None where no size measured is below the half.
pub fn half_peak(points: &[(usize, f64)]) -> Option<(f64, f64)> {
    let peak = points.iter().map(|point| point.1).max_by(f64::total_cmp)?;
    let half = peak / 2.0;
    let above = points.iter().position(|point| point.1 >= half)?;
    let (low, high) = (points.get(above.checked_sub(1)?)?, points[above]);
    let share = (half - low.1) / (high.1 - low.1);
    Some((low.0 as f64 + share * (high.0 - low.0) as f64, peak))
}

fn half(plan: &Plan, outcome: &Outcome) -> Option<(f64, f64)> {
    if plan.benchmark.unit() != results::Unit::MegabytesPerSecond {
        return None;
    }
    let points = outcome
        .samples
        .iter()
        .map(|sample| (sample.size, sample.value(plan)));
    half_peak(&points.collect::<Vec<_>>())
}

/// Tables: one place with all its numbers, several side by side.
pub fn table(plan: &Plan, all: &[Outcome]) -> String {
    let mut text = format!("{}\n", title(plan, all));
    text += &match all {
        [one] => alone(plan, one),
        many => beside(plan, many),
    };
    for outcome in all {
        if let Some((size, peak)) = half(plan, outcome) {
            text += &format!(
                "{}: half of the peak of {peak:.0} MB/s at {size:.0} bytes (N/2)\n",
                outcome.label
            );
        }
    }
    text
}

fn title(plan: &Plan, all: &[Outcome]) -> String {
    let mut words = vec![
        plan.benchmark.name().to_owned(),
        plan.transport.name().to_owned(),
    ];
    if let [one] = all {
        words.push(one.label.clone());
    }
    if plan.qps > 1 {
        words.push(format!("{} queue pairs", plan.qps));
    }
    if plan.bidirectional {
        words.push("both ways".into());
    }
    let what = match (plan.benchmark.is_latency(), plan.verb()) {
        (true, Verb::Write | Verb::Send) => "µs, half of the round trip",
        (true, _) => "µs, the whole time",
        (false, _) => "MB are 10^6 bytes",
    };
    words.push(what.into());
    if all.len() > 1 {
        words.push(if plan.benchmark.is_latency() {
            "median".into()
        } else {
            plan.benchmark.unit().shown().to_owned()
        });
    }
    words.join(", ")
}

fn alone(plan: &Plan, one: &Outcome) -> String {
    let unit = plan.benchmark.unit();
    let lossy = plan.transport != Transport::Rc && plan.verb() == Verb::Send;
    let header = match (plan.benchmark.is_latency(), lossy) {
        (true, _) => &[
            "Size", "Count", "Min", "Median", "Mean", "99 %", "99.9 %", "Max",
        ][..],
        (false, false) => &["Size", "Count", "MB/s", "M msg/s"],
        (false, true) => &[
            "Size",
            "Count",
            "Sent MB/s",
            "Received MB/s",
            "Sent M msg/s",
            "Received M msg/s",
            "Lost",
        ],
    };
    let rows = one.samples.iter().map(|sample| {
        let mut cells = vec![size_label(sample.size), sample.iterations.to_string()];
        match &sample.found {
            Found::Latency(found) => {
                let all = [
                    found.min,
                    found.median,
                    found.mean,
                    found.p99,
                    found.p999,
                    found.max,
                ];
                cells.extend(all.map(|value| number(value, unit)));
            }
            Found::Stream(found) => {
                let rates = match found.received {
                    Some((_, received)) if lossy => vec![found.sent_rate, received],
                    _ => vec![found.sent_rate],
                };
                cells.extend(
                    rates
                        .iter()
                        .map(|rate| significant(rate * sample.size as f64 / 1e6)),
                );
                cells.extend(rates.iter().map(|rate| significant(rate / 1e6)));
                if let (Some((received, _)), true) = (found.received, lossy) {
                    let lost = found.sent.saturating_sub(received);
                    cells.push(format!("{:.1} %", lost as f64 / found.sent as f64 * 100.0));
                }
            }
        }
        cells
    });
    lines(
        header.iter().map(|word| word.to_string()).collect(),
        rows.collect(),
        0,
    )
}

fn beside(plan: &Plan, all: &[Outcome]) -> String {
    let mut header = vec!["Size".to_owned()];
    header.extend(all.iter().map(|outcome| outcome.label.clone()));
    header.extend(
        all[1..]
            .iter()
            .map(|outcome| format!("/ {}", outcome.label)),
    );
    let sizes = distinct(
        all.iter()
            .flat_map(|outcome| outcome.samples.iter().map(|sample| sample.size)),
    );
    let rows = sizes.iter().map(|&size| {
        let value = |outcome: &Outcome| {
            outcome
                .at(size)
                .map_or(f64::NAN, |sample| sample.value(plan))
        };
        let values: Vec<f64> = all.iter().map(value).collect();
        let mut cells = vec![size_label(size)];
        cells.extend(
            values
                .iter()
                .map(|&value| number(value, plan.benchmark.unit())),
        );
        cells.extend(values[1..].iter().map(|&other| ratio(values[0] / other)));
        cells
    });
    lines(header, rows.collect(), 0)
}

/// One object a line: each size of each place, and of bandwidths where half of the peak is reached.
pub fn json(plan: &Plan, all: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in all {
        for sample in &outcome.samples {
            text += &object(plan, outcome, sample);
        }
        if let Some((size, peak)) = half(plan, outcome) {
            let benchmark = format!("{}/half-peak", plan.benchmark.name());
            text += &Object {
                median: digits(peak / 2.0),
                ..Object::new(plan, outcome, &benchmark, size.round() as usize)
            }
            .line();
        }
    }
    text
}

#[derive(Default, Serialize)]
struct Object<'a> {
    benchmark: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fabric: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a str>,
    transport: &'a str,
    qps: usize,
    bidirectional: bool,
    size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<usize>,
    median: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    unit: &'a str,
    #[serde(skip_serializing_if = "Map::is_empty")]
    percentiles: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<usize>,
    /// What of the median came, in its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    received_rate: Option<f64>,
    /// Of both ends together.
    #[serde(skip_serializing_if = "Map::is_empty")]
    counts: Map<String, Value>,
}

impl<'a> Object<'a> {
    fn new(plan: &Plan, outcome: &'a Outcome, benchmark: &'a str, size: usize) -> Object<'a> {
        let label = Some(outcome.label.as_str());
        Object {
            benchmark,
            fabric: label.filter(|_| outcome.modelled),
            device: label.filter(|_| !outcome.modelled),
            transport: plan.transport.name(),
            qps: plan.qps,
            bidirectional: plan.bidirectional,
            size,
            unit: plan.benchmark.unit().name(),
            ..Object::default()
        }
    }

    fn line(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings are always JSON") + "\n"
    }
}

fn object(plan: &Plan, outcome: &Outcome, sample: &Sample) -> String {
    let mut object = Object::new(plan, outcome, plan.benchmark.name(), sample.size);
    object.iterations = Some(sample.iterations);
    object.median = digits(sample.value(plan));
    match &sample.found {
        Found::Latency(found) => {
            object.min = Some(digits(found.min));
            object.max = Some(digits(found.max));
            object.mean = Some(digits(found.mean));
            for (percent, value) in [("99", found.p99), ("99.9", found.p999)] {
                object
                    .percentiles
                    .insert(percent.into(), digits(value).into());
            }
        }
        Found::Stream(found) => {
            object.messages_per_second = Some(digits(found.sent_rate));
            object.sent = Some(found.sent);
            object.received = found.received.map(|(count, _)| count);
            object.received_rate = found
                .received
                .map(|(_, rate)| digits(sample.rate(plan, rate)));
        }
    }
    object.counts = counts(&sample.counts);
    object.line()
}

fn counts(counts: &Counts) -> Map<String, Value> {
    let asked = &counts.asked;
    let mut all = vec![
        ("work_requests", asked.work_requests),
        ("receives", asked.receives),
        ("completions", asked.completions),
    ];
    if let Some(traffic) = &counts.traffic {
        all.extend([
            ("packets", traffic.packets),
            ("acknowledgements", traffic.acknowledgements),
            ("wire_bytes", traffic.bytes),
        ]);
    }
    all.into_iter()
        .map(|(name, count)| (name.to_string(), count.into()))
        .collect()
}

/// One line for each place, two where what is received differs from what is sent.
pub fn draw(plan: &Plan, all: &[Outcome], path: &Path) -> Result<()> {
    let lossy = plan.transport != Transport::Rc && plan.verb() == Verb::Send;
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
                series.push(Series { name, points });
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
    if plan.bidirectional {
        words.push("both ways".into());
    }
    let panel = Panel {
        title: words.join(", "),
        unit,
        across,
        quantity: "message size".into(),
        series,
    };
    plot::draw(&[panel], path)
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
