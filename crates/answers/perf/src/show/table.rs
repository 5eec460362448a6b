//! Tables of results: all figures of one target, or the main figure of several targets in columns.

use results::sizes::size_label;
use results::table::{distinct, lines, number, ratio, ratio_legend, significant};

use super::{TargetResults, half};
use crate::benchmark::Verb;
use crate::measure::Found;
use crate::plan::PerfPlan;

/// A table: all figures of a single target, or the main figure of several targets in columns.
pub fn table(plan: &PerfPlan, all: &[TargetResults]) -> String {
    let mut text = format!("{}\n", title(plan, all));
    text += &match all {
        [one] => alone(plan, one),
        many => beside(plan, many),
    };
    for outcome in all {
        text += &busiest(outcome).unwrap_or_default();
        if let Some((size, peak)) = half(plan, outcome) {
            text += &format!(
                "{}: half of the peak of {peak:.0} MB/s at {size:.0} bytes (N/2)\n",
                outcome.label
            );
        }
    }
    text
}

/// A line about the busiest resource at the largest size, if it is known.
fn busiest(outcome: &TargetResults) -> Option<String> {
    let sample = outcome.samples.last()?;
    let most = sample.uses.first()?;
    let (label, size) = (&outcome.label, size_label(sample.size));
    let (resource, share) = (most.resource, most.share * 100.0);
    Some(format!(
        "{label}: the busiest resource at {size} is {resource}, {share:.0} % of the time\n"
    ))
}

fn title(plan: &PerfPlan, all: &[TargetResults]) -> String {
    let mut words = vec![
        plan.benchmark.name().to_owned(),
        plan.transport.name().to_owned(),
    ];
    words.extend(plan.ip.map(|ip| format!("{} mode", ip.name())));
    if let [one] = all {
        words.push(one.label.clone());
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

fn alone(plan: &PerfPlan, one: &TargetResults) -> String {
    let unit = plan.benchmark.unit();
    let lossy = !plan.transport.is_reliable() && plan.verb() == Verb::Send;
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

fn beside(plan: &PerfPlan, all: &[TargetResults]) -> String {
    let mut header = vec!["Size".to_owned()];
    header.extend(all.iter().map(|outcome| outcome.label.clone()));
    header.extend(
        all[1..]
            .iter()
            .map(|outcome| format!("{} / {}", all[0].label, outcome.label)),
    );
    let sizes = distinct(
        all.iter()
            .flat_map(|outcome| outcome.samples.iter().map(|sample| sample.size)),
    );
    let rows = sizes.iter().map(|&size| {
        let value = |outcome: &TargetResults| {
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
    lines(header, rows.collect(), 0) + &ratio_legend(&all[0].label, plan.benchmark.unit())
}
