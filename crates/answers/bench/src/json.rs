//! Measurements as the JSON objects of `--json`.

use conditions::{Conditions, Disturbances};
use results::stats::{self, digits};
use serde::Serialize;

use crate::measurement::Measurement;
use crate::remarks;

/// A measurement as a JSON object, with the conditions of the run.
pub(crate) fn json(one: &Measurement, conditions: Option<&Conditions>) -> String {
    let interval = stats::median_interval(&one.rounds);
    let disturbances = one.disturbances.iter().copied().reduce(Disturbances::and);
    let percentile =
        |(p, values): &(f64, Vec<f64>)| (p.to_string(), digits(stats::median(values)).into());
    let object = Object {
        benchmark: &one.benchmark,
        library: &one.library,
        fabric: one.fabric.as_deref(),
        ranks: one.ranks,
        skew_us: one.skew,
        size: one.size,
        median: digits(one.median()),
        min: digits(stats::min(&one.rounds)),
        max: digits(stats::max(&one.rounds)),
        unit: one.unit.name(),
        iterations: one.iterations.iter().copied().min(),
        percentiles: one.percentiles.iter().map(percentile).collect(),
        interval: interval.map(|(low, high)| [digits(low), digits(high)]),
        remarks: remarks::on(one, conditions),
        binding: &one.binding,
        disturbances: disturbances.filter(|_| conditions.is_some()),
        conditions,
    };
    serde_json::to_string(&object).expect("numbers and strings are always JSON")
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
    /// The fewest timed iterations of any round.
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<usize>,
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    percentiles: serde_json::Map<String, serde_json::Value>,
    /// The interval that holds the median with a confidence of 95 %. `None`: there are fewer than
    /// two rounds.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::tests::measured;
    use results::Unit;

    #[test]
    fn json_has_the_promised_members_in_the_promised_order() {
        let rounds = [0.25, 0.125, 0.333_333_333_3];
        let mut one = measured("a", "latency", 8, Unit::Microseconds, &rounds);
        one.library = "fishplate".into();
        assert_eq!(
            json(&one, None),
            r#"{"benchmark":"latency","library":"fishplate","ranks":2,"size":8,"median":0.25,"min":0.125,"max":0.333333,"unit":"us","interval":[0.125,0.333333],"remarks":["the rounds differ by a factor of 2.7, more than usual; the kernel's counters show no reason"]}"#
        );
        one.percentiles = vec![(50.0, vec![0.5, 0.75, 1.0]), (99.9, vec![2.0])];
        let part = r#""unit":"us","percentiles":{"50":0.75,"99.9":2.0},"interval""#;
        assert!(json(&one, None).contains(part));
        one.iterations = vec![100, 80, 90];
        assert!(json(&one, None).contains(r#""unit":"us","iterations":80,"#));
    }
}
