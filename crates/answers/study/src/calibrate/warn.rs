//! Warnings about figures that contradict the hardware: they are faster than links or slots allow.

use fabric::limits::limits;
use fabric::outputs::{Reading, ReadingUnit};
use fabric::{Bytes, Costs, Resource, System};

use super::Row;

/// The factor by which a figure may exceed a limit because of rounding and clocks.
const SLACK: f64 = 1.02;

/// Warnings about figures that exceed the limits of the system's link or slot: one line for each
/// tool, about its worst figure.
pub(super) fn contradictions(
    name: &str,
    system: &System,
    figures: &[(String, Reading)],
) -> Vec<String> {
    let mut worst: Vec<(&'static str, f64, String)> = Vec::new();
    for (place, one) in figures {
        let Some((over, bound)) = excess(system, one) else {
            continue;
        };
        let unit = one.unit.name();
        let said = format!(
            "{place}: {} of {} B: {:.4} {unit} contradicts the hardware of {name}: {bound}; --like a machine with faster parts, or check the figure",
            one.test, one.size, one.value
        );
        match worst.iter_mut().find(|(test, ..)| *test == one.test) {
            Some(known) if known.1 >= over => {}
            Some(known) => *known = (one.test, over, said),
            None => worst.push((one.test, over, said)),
        }
    }
    worst.into_iter().map(|(_, _, said)| said).collect()
}

/// The error beyond which a calibrated machine does not reach one of its figures.
const MISSED: f64 = 0.01;

/// A warning about each figure that the calibrated machine does not reach.
pub(super) fn missed(rows: &[Row]) -> Vec<String> {
    let missed = rows.iter().filter(|row| row.errors()[1].abs() > MISSED);
    let said = missed.map(|row| {
        format!(
            "{}: {} of {} B is predicted {:+.1} % off: no value explains it beside the other figures; give this figure alone, or start from another machine with --like",
            row.place,
            row.figure.test,
            row.figure.msg_size,
            row.errors()[1] * 100.0
        )
    });
    said.collect()
}

/// The factor by which a figure exceeds a limit, and a description of the limit. `None`: it exceeds
/// none.
fn excess(system: &System, one: &Reading) -> Option<(f64, String)> {
    let rails = f64::from(system.rails.count());
    let costs = Costs::of(system, 0);
    let parts = [Resource::Link, Resource::BusUp, Resource::BusDown];
    let limits = limits(&costs, Bytes(one.size));
    let of_parts = limits
        .iter()
        .filter(|limit| parts.contains(&limit.resource));
    let both_ways = one.test.contains("bibw");
    let rates = of_parts.map(|limit| {
        let rate = match both_ways {
            true => limit.both_ways,
            false => limit.one_way,
        };
        (rate.as_mb_per_sec() * rails, limit.resource.name())
    });
    let (most, part) = rates.min_by(|one, other| one.0.total_cmp(&other.0))?;
    match one.unit {
        ReadingUnit::MegabytesPerSecond => {
            let over = one.value / most;
            (over > SLACK).then(|| (over, format!("{part} carries {most:.0} MB/s")))
        }
        ReadingUnit::Microseconds => {
            // Bytes divided by megabytes per second are microseconds.
            let least = one.size as f64 / most;
            let over = least / one.value;
            (over > SLACK).then(|| (over, format!("{part} needs {least:.2} us")))
        }
        ReadingUnit::MillionsPerSecond => None,
    }
}
