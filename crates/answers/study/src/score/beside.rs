//! Errors on systems from which no value of the catalogue was inferred, beside those on systems
//! from which values were inferred, and beside a null model: a constant and the rate of the link.

use fabric::System;
use fabric::figures::Figures;
use results::stats::{median, percentile};

use super::Scored;
use super::kinds::{GROUPS, network, pair};
use super::machines::FigureMachines;
use crate::calibrate::series::{Level, Property, SeriesKind, kind_of, time_of};

/// The longest message whose time is that of the null model's constant, in bytes.
const SHORT: usize = 128;

/// A figure with the error of its prediction and that of the null model.
struct Entry {
    system: String,
    network: &'static str,
    kind: SeriesKind,
    size: usize,
    error: f64,
    null: Option<f64>,
}

/// The figures that belong to a group, of these scores.
fn entries(scores: &[Scored], machines: &FigureMachines) -> Vec<Entry> {
    struct Known<'a> {
        one: &'a Scored,
        network: &'static str,
        kind: SeriesKind,
        size: usize,
        /// The measured time of one message, in microseconds.
        time: f64,
        /// The time of its bytes at the rate of the link, in microseconds.
        bytes: f64,
    }
    let known = scores.iter().filter_map(|one| {
        let figure = &one.figure;
        let system = machines.system(&figure.model_cfg)?;
        let size = figure.size()?;
        // Figures of sockets and of many processes are in groups of their own.
        let kind = kind_of(figure).unwrap_or(match figure.is_latency() {
            true => (Level::Messages, Property::Latency),
            false => (Level::Messages, Property::Stream),
        });
        one.error()?;
        Some(Known {
            one,
            network: network(&system, figure),
            kind,
            size,
            time: time_of(figure, figure.number()?),
            bytes: size as f64 / rate(&system),
        })
    });
    let known: Vec<Known> = known.collect();
    let constant = |own: &Known| {
        let others = known.iter().filter(|other| {
            (other.network, other.kind) == (own.network, own.kind)
                && other.size <= SHORT
                && other.one.figure.system() != own.one.figure.system()
        });
        let mut times: Vec<f64> = others.map(|other| other.time).collect();
        times.sort_by(f64::total_cmp);
        (!times.is_empty()).then(|| median(&times))
    };
    let entry = |own: &Known| {
        let null = constant(own).map(|constant| match own.kind.1 {
            Property::Latency => constant + own.bytes,
            Property::Stream => constant.max(own.bytes),
        });
        // An error of a stream is that of its rate, the inverse of the time.
        let share = |time: f64| match own.one.figure.unit.as_str() {
            "us" => time / own.time - 1.0,
            _ => own.time / time - 1.0,
        };
        Some(Entry {
            system: own.one.figure.system().to_owned(),
            network: own.network,
            kind: own.kind,
            size: own.size,
            error: own.one.error()?,
            null: null.map(share),
        })
    };
    known.iter().filter_map(entry).collect()
}

/// The rate of a machine's rails together, in bytes a microsecond.
fn rate(system: &System) -> f64 {
    Figures::of(system, 0).peak.as_mb_per_sec() * f64::from(system.rails.count())
}

/// The median and the 90th percentile of the absolute values of errors; `None` without errors.
fn summed(errors: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let mut all: Vec<f64> = errors.map(f64::abs).collect();
    all.sort_by(f64::total_cmp);
    (!all.is_empty()).then(|| [median(&all), percentile(&all, 90.0)])
}

/// Figures with their machines.
pub(super) type Set<'a> = (&'a [Scored], &'a FigureMachines);

/// The header and the rows of the table, a row for each group.
pub(super) fn table(
    (seen, of_seen): Set,
    (unseen, of_unseen): Set,
) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let (seen, unseen) = (entries(seen, of_seen), entries(unseen, of_unseen));
    let rows = GROUPS.iter().filter_map(|group| {
        let has = |one: &&Entry| group.has(one.network, one.kind, one.size);
        let own: Vec<&Entry> = unseen.iter().filter(has).collect();
        let found = summed(own.iter().map(|one| one.error))?;
        let mut systems: Vec<&str> = own.iter().map(|one| one.system.as_str()).collect();
        systems.sort_unstable();
        systems.dedup();
        let mut signed: Vec<f64> = own.iter().map(|one| one.error).collect();
        signed.sort_by(f64::total_cmp);
        let met = |most: [f64; 2]| match found[0] <= most[0] && found[1] <= most[1] {
            true => "met",
            false => "missed",
        };
        let shown = |errors: Option<[f64; 2]>| errors.map_or(String::new(), pair);
        Some(vec![
            group.network.to_owned(),
            group.name.to_owned(),
            format!("{} of {}", own.len(), systems.len()),
            pair(found),
            format!("{:+.1} %", median(&signed) * 100.0),
            shown(summed(own.iter().filter_map(|one| one.null))),
            shown(summed(seen.iter().filter(has).map(|one| one.error))),
            group.unseen.map_or(String::new(), |most| {
                format!("{}: {}", pair(most), met(most))
            }),
        ])
    });
    let header = vec![
        "network",
        "figures",
        "number, systems",
        "unseen",
        "signed",
        "null model",
        "seen",
        "wanted of unseen",
    ];
    (header, rows.collect())
}
