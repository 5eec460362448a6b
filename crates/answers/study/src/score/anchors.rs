//! Calibrations of machines with a few of their published figures, the *anchors*, and the errors of
//! the predictions of the other figures.
//!
//! The anchors of a machine are three figures: its shortest latency, the latency nearest to 16 KiB,
//! and the bandwidth of the longest messages; or four: also the bandwidth nearest to 8 KiB. A
//! figure is near an anchor if both are latencies, or both bandwidths, and the sizes differ by at
//! most a factor of four. Near latencies are not scored. With the fourth anchor, streams are scored
//! unless they are an anchor: nearly all of them lie within a factor of four of 8 KiB.

use std::path::Path;

use anyhow::{Context, Result};
use results::stats::{median, percentile};
use results::table::aligned;
use serde_json::{Value, json};

use super::ScoreRequest;
use super::figures::{self, PublishedFigure};
use super::machines::FigureMachines;
use crate::calibrate::{Base, fitted};

/// The greatest factor between the sizes of a figure and of an anchor that is near it.
const NEAR: usize = 4;
/// The size in bytes to which the second anchor is nearest.
const MIDDLE: usize = 16 << 10;
/// The size in bytes to which the fourth anchor is nearest.
const STREAM: usize = 8 << 10;
/// The greatest factor between the size of the second anchor and [`MIDDLE`], and between that of
/// the fourth anchor and [`STREAM`].
const AWAY: usize = 2;
/// The size from which on a message counts as long, in bytes.
const LONG: usize = 64 << 10;

/// A group of figures, and the limits for its errors.
struct Limits {
    name: &'static str,
    /// True if a figure with this size in bytes belongs to the group.
    has: fn(&PublishedFigure, usize) -> bool,
    /// The greatest acceptable median of the errors, as a share.
    median: f64,
    /// The greatest acceptable 90th percentile of the errors, as a share.
    percentile: f64,
    /// True if the figures are predicted with four anchors, otherwise with three.
    fourth: bool,
}

const LIMITS: [Limits; 2] = [
    Limits {
        name: "latencies, three anchors",
        has: |figure, _| is_latency(figure),
        median: 0.05,
        percentile: 0.15,
        fourth: false,
    },
    Limits {
        name: "streams of 2 to 63 KiB, four anchors",
        has: |figure, size| !is_latency(figure) && (2048..LONG).contains(&size),
        median: 0.12,
        percentile: 0.30,
        fourth: true,
    },
];

/// A figure that is not an anchor, with the errors of its prediction before and after the
/// calibration.
struct Other {
    system: String,
    figure: PublishedFigure,
    size: usize,
    fourth: bool,
    /// True if the figure's size is near that of an anchor.
    is_near: bool,
    before: f64,
    after: f64,
}

/// The errors of machines that were calibrated with anchors.
pub(crate) struct Anchored {
    others: Vec<Other>,
    systems: Vec<(String, bool, Vec<String>)>,
}

fn is_latency(figure: &PublishedFigure) -> bool {
    figure.unit == "us"
}

/// Calibrates each machine that has all anchors, and predicts its other figures.
pub(crate) fn run(command: &Path, request: ScoreRequest) -> Result<Anchored> {
    let all = figures::read(request.figures, super::FIGURES)?;
    let machines = FigureMachines::read(request.fabrics, super::MACHINES)?;
    let mut names: Vec<&str> = all.iter().map(|figure| figure.model_cfg.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut found = Anchored {
        others: Vec::new(),
        systems: Vec::new(),
    };
    for name in names {
        let own: Vec<(PublishedFigure, usize)> = all
            .iter()
            .filter(|figure| figure.model_cfg == name && figure.over.is_none())
            .filter(|figure| !figure.test.is_empty())
            .filter_map(|figure| Some((figure.clone(), figure.size()?)))
            .collect();
        for fourth in [false, true] {
            let Some(anchors) = anchors(&own, fourth) else {
                continue;
            };
            let Some(base) = machines.base(name) else {
                continue;
            };
            found.add(command, name, &base, &own, &anchors, fourth)?;
        }
    }
    Ok(found)
}

/// The indices of the anchors among the figures of a machine. `None`: the machine lacks some of
/// them.
fn anchors(own: &[(PublishedFigure, usize)], fourth: bool) -> Option<Vec<usize>> {
    let of = |wanted: fn(&PublishedFigure) -> bool| {
        own.iter()
            .enumerate()
            .filter(move |(_, (figure, _))| wanted(figure))
    };
    let apart = |size: usize, middle: usize| size.max(middle) as f64 / size.min(middle) as f64;
    let nearest = |wanted: fn(&PublishedFigure) -> bool, middle: usize| {
        let close = of(wanted).filter(|(_, (_, size))| apart(*size, middle) <= AWAY as f64);
        let found = close
            .min_by(|(_, one), (_, other)| apart(one.1, middle).total_cmp(&apart(other.1, middle)));
        found.map(|(at, _)| at)
    };
    // Reads take a round trip more than writes, so they are not used as anchors.
    let latency: fn(&PublishedFigure) -> bool =
        |figure| is_latency(figure) && !figure.test.contains("read");
    let bandwidth: fn(&PublishedFigure) -> bool =
        |figure| figure.unit == "MB/s" && figure.test.ends_with("_bw");
    let short = of(latency).min_by_key(|(_, (_, size))| *size)?;
    let middle = nearest(latency, MIDDLE)?;
    let long = of(bandwidth)
        .filter(|(_, (_, size))| *size >= LONG)
        .max_by_key(|(_, (_, size))| *size)?;
    let mut places = vec![short.0, middle, long.0];
    if fourth {
        places.push(nearest(bandwidth, STREAM)?);
    }
    Some(places)
}

impl Anchored {
    fn add(
        &mut self,
        command: &Path,
        name: &str,
        base: &Base,
        own: &[(PublishedFigure, usize)],
        anchors: &[usize],
        fourth: bool,
    ) -> Result<()> {
        let figures: Vec<PublishedFigure> = own.iter().map(|(figure, _)| figure.clone()).collect();
        let (moved, rows) = fitted(command, base, &figures, anchors)
            .with_context(|| format!("cannot calibrate {name}"))?;
        self.systems.push((name.to_owned(), fourth, moved));
        for (at, ((figure, size), [before, after])) in own.iter().zip(rows).enumerate() {
            if anchors.contains(&at) {
                continue;
            }
            let is_near = anchors.iter().any(|anchor| {
                let (other, anchored) = &own[*anchor];
                is_latency(other) == is_latency(figure)
                    && size.max(anchored) / size.min(anchored) <= NEAR
                    && (size.max(anchored) <= &(size.min(anchored) * NEAR))
            });
            self.others.push(Other {
                system: name.to_owned(),
                figure: figure.clone(),
                size: *size,
                fourth,
                is_near,
                before,
                after,
            });
        }
        Ok(())
    }

    /// The errors, before and after the calibration, of a group's figures: of one machine, or of
    /// all.
    fn errors(&self, limits: &Limits, system: Option<&str>) -> [Vec<f64>; 2] {
        let wanted = self.others.iter().filter(|other| {
            other.fourth == limits.fourth
                && (limits.has)(&other.figure, other.size)
                && (limits.fourth || !other.is_near)
                && system.is_none_or(|name| other.system == name)
        });
        let mut both = [Vec::new(), Vec::new()];
        for other in wanted {
            both[0].push(other.before.abs());
            both[1].push(other.after.abs());
        }
        for errors in &mut both {
            errors.sort_by(f64::total_cmp);
        }
        both
    }

    /// The header and the rows of the table: group, machine, number of figures, and the errors
    /// before and after.
    pub(crate) fn rows(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let mut rows = Vec::new();
        for limits in &LIMITS {
            let mut names: Vec<Option<&str>> = Vec::new();
            for (name, fourth, _) in &self.systems {
                if *fourth == limits.fourth {
                    names.push(Some(name));
                }
            }
            names.push(None);
            for name in names {
                let [before, after] = self.errors(limits, name);
                if after.is_empty() {
                    continue;
                }
                let (middle, far) = (median(&after), percentile(&after, 90.0));
                let met = middle <= limits.median && far <= limits.percentile;
                rows.push(vec![
                    limits.name.to_owned(),
                    name.unwrap_or("all").to_owned(),
                    after.len().to_string(),
                    format!(
                        "{}, {}",
                        percent(median(&before)),
                        percent(percentile(&before, 90.0))
                    ),
                    format!("{}, {}", percent(middle), percent(far)),
                    match name {
                        Some(_) => String::new(),
                        None => format!(
                            "{}, {}: {}",
                            percent(limits.median),
                            percent(limits.percentile),
                            if met { "met" } else { "missed" }
                        ),
                    },
                ]);
            }
        }
        let header = vec![
            "figures that are no anchors",
            "machine",
            "number",
            "before",
            "after",
            "limit",
        ];
        (header, rows)
    }

    /// The lines with the values that the calibration has changed, for each machine.
    fn moved(&self) -> String {
        let lines = self.systems.iter().map(|(name, fourth, moved)| {
            let anchors = if *fourth { "four" } else { "three" };
            let moved = match moved.as_slice() {
                [] => "nothing".to_owned(),
                some => some.join(", "),
            };
            format!("{name}, {anchors} anchors move {moved}\n")
        });
        lines.collect()
    }

    /// The table of the errors, and the values that calibrations changed.
    pub(crate) fn text(&self) -> String {
        let (header, rows) = self.rows();
        let header = header.into_iter().map(String::from).collect();
        let table = aligned(header, rows, |column| ![2].contains(&column));
        format!("{table}\n{}", self.moved())
    }

    /// JSON, one object per line: the figures, then the groups.
    pub(crate) fn json(&self) -> String {
        let mut lines: Vec<Value> = Vec::new();
        let percent = |share: f64| (share * 1e4).round() / 100.0;
        for other in &self.others {
            lines.push(json!({
                "figure": other.figure.id, "machine": other.system, "size": other.size,
                "anchors": if other.fourth { 4 } else { 3 }, "near": other.is_near,
                "error_percent": {"before": percent(other.before), "after": percent(other.after)},
            }));
        }
        let (_, rows) = self.rows();
        for row in rows {
            lines.push(
                json!({"group": row[0], "machine": row[1], "figures": row[2], "before": row[3],
                "after": row[4], "limit": row[5]}),
            );
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(test: &str, size: usize) -> (PublishedFigure, usize) {
        let figure = PublishedFigure {
            test: test.into(),
            msg_size: size.to_string(),
            value: "1".into(),
            unit: if test.contains("lat") { "us" } else { "MB/s" }.into(),
            ..PublishedFigure::default()
        };
        (figure, size)
    }

    #[test]
    fn anchors_are_chosen_by_size() {
        let own = [
            figure("ib_read_lat", 1),
            figure("ib_write_lat", 64),
            figure("ib_write_lat", 2),
            figure("ib_write_lat", 8192),
            figure("ib_write_lat", 20000),
            figure("ib_write_bw", 65536),
            figure("ib_write_bw", 1 << 20),
            figure("ib_write_bw", 4096),
        ];
        assert_eq!(anchors(&own, false), Some(vec![2, 4, 6]));
        assert_eq!(anchors(&own, true), Some(vec![2, 4, 6, 7]));
        assert_eq!(anchors(&own[..7], true), None);
        assert_eq!(anchors(&own[..5], false), None);
    }
}
