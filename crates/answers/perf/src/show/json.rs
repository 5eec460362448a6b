//! Results as lines of JSON.

use conditions::{Conditions, Disturbances};
use results::stats::digits;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Met, TargetResults, half, remarks};
use crate::counts::Counts;
use crate::measure::{Found, Sample};
use crate::plan::{IpMode, PerfPlan};

/// One object per line for each size of each target; for bandwidths also the size at which half of
/// the peak is reached.
pub fn json(
    plan: &PerfPlan,
    all: &[TargetResults],
    met: Option<&(Conditions, Disturbances)>,
) -> String {
    let mut text = String::new();
    for outcome in all {
        for sample in &outcome.samples {
            text += &object(plan, outcome, sample).under(met).line();
        }
        if let Some((size, peak)) = half(plan, outcome) {
            let benchmark = format!("{}/half-peak", plan.benchmark.name());
            text += &Object {
                median: digits(peak / 2.0),
                ..Object::new(plan, outcome, &benchmark, size.round() as usize)
            }
            .under(met)
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
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    transport: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<&'a str>,
    qps: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<usize>,
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
    /// The rate of received messages, in the unit of the median. `None`: received messages were not
    /// counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    received_rate: Option<f64>,
    /// The use of each kind of resource of a modelled machine, the busiest first.
    #[serde(skip_serializing_if = "Map::is_empty")]
    usage: Map<String, Value>,
    /// The counts of requests and packets by their names, summed over both sides.
    #[serde(skip_serializing_if = "Map::is_empty")]
    counts: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disturbances: Option<&'a Disturbances>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<&'a Conditions>,
}

impl<'a> Object<'a> {
    fn new(
        plan: &PerfPlan,
        outcome: &'a TargetResults,
        benchmark: &'a str,
        size: usize,
    ) -> Object<'a> {
        let label = Some(outcome.label.as_str());
        Object {
            benchmark,
            fabric: label.filter(|_| outcome.modelled),
            device: label.filter(|_| !outcome.modelled && !plan.benchmark.is_of_sockets()),
            host: label.filter(|_| !outcome.modelled && plan.benchmark.is_of_sockets()),
            transport: plan.transport.name(),
            ip: plan.ip.map(IpMode::name),
            qps: plan.qps,
            pairs: (plan.pairs > 1).then_some(plan.pairs),
            bidirectional: plan.bidirectional,
            size,
            unit: plan.benchmark.unit().name(),
            ..Object::default()
        }
    }

    /// Adds the conditions and disturbances of the run. A modelled machine has none.
    fn under(self, met: Option<&'a Met>) -> Object<'a> {
        match met {
            Some((conditions, disturbances)) => Object {
                remarks: remarks::on(disturbances).into_iter().collect(),
                disturbances: Some(disturbances),
                conditions: Some(conditions),
                ..self
            },
            None => self,
        }
    }

    fn line(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings are always JSON") + "\n"
    }
}

fn object<'a>(plan: &PerfPlan, outcome: &'a TargetResults, sample: &Sample) -> Object<'a> {
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
    let uses = sample.uses.iter();
    object.usage = uses
        .map(|one| (one.resource.into(), digits(one.share).into()))
        .collect();
    if !plan.benchmark.is_of_sockets() {
        object.counts = counts(&sample.counts);
    }
    object
}

fn counts(counts: &Counts) -> Map<String, Value> {
    let asked = &counts.requests;
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
