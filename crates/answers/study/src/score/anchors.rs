//! Calibrations of machines with three of their published figures, the *anchors*, and the errors of
//! the predictions of all other figures of the same level: messages, or work requests.
//!
//! The anchors are latencies of 8 B, 16 KiB and 1 MiB, or streams of 64 B, 8 KiB and 1 MiB, of one
//! test each, or of the nearest sizes that a machine has within a factor of two.

use std::path::Path;

use anyhow::{Context, Result};
use results::Console;
use results::stats::{median, percentile};
use results::table::aligned;
use serde_json::{Value, json};

use super::ScoreRequest;
use super::figures::{self, PublishedFigure};
use super::kinds::{GROUPS, network, pair};
use super::machines::FigureMachines;
use crate::calibrate::series::{Property, SeriesKind, kind_of};
use crate::calibrate::{Base, fitted};

/// The greatest factor between the size of an anchor and the wanted one.
const AWAY: usize = 2;
/// The greatest error of an anchor, as a share.
const REACHED: f64 = 0.01;

/// The three sizes of the anchors of a property, in bytes.
fn wanted(property: Property) -> [usize; 3] {
    match property {
        Property::Latency => [8, 16 << 10, 1 << 20],
        Property::Stream => [64, 8 << 10, 1 << 20],
    }
}

/// A figure with the errors of its prediction before and after a calibration.
struct Other {
    system: String,
    network: &'static str,
    figure: PublishedFigure,
    kind: SeriesKind,
    size: usize,
    /// The kind of the anchors.
    anchors: SeriesKind,
    is_anchor: bool,
    before: f64,
    after: f64,
}

/// The errors of machines that were calibrated with anchors.
pub(crate) struct Anchored {
    others: Vec<Other>,
    /// Each machine with its anchors, and the values that they changed.
    systems: Vec<(String, String, Vec<String>)>,
}

/// Calibrates each machine that has the anchors of a test, and predicts its other figures.
pub(crate) fn run(command: &Path, request: ScoreRequest) -> Result<Anchored> {
    let all = figures::read(request.figures, super::FIGURES)?;
    let machines = FigureMachines::read(request.fabrics, super::MACHINES)?;
    calibrated(command, &all, &machines)
}

/// As [`run`], for the systems of this project from which no value was inferred.
pub(super) fn of_unseen(command: &Path) -> Result<Anchored> {
    let all = figures::parse("unseen.csv", super::unseen::FIGURES)?;
    let machines = FigureMachines::read(None, super::unseen::MACHINES)?;
    calibrated(command, &all, &machines)
}

fn calibrated(
    command: &Path,
    all: &[PublishedFigure],
    machines: &FigureMachines,
) -> Result<Anchored> {
    let mut names: Vec<&str> = all.iter().map(|figure| figure.model_cfg.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut found = Anchored {
        others: Vec::new(),
        systems: Vec::new(),
    };
    for name in names {
        let own = all.iter().filter(|figure| {
            figure.model_cfg == name && figure.over.is_none() && !figure.test.is_empty()
        });
        let own = own.filter_map(|figure| Some((figure.clone(), figure.size()?, kind_of(figure)?)));
        let own: Vec<(PublishedFigure, usize, SeriesKind)> = own.collect();
        let Some(base) = machines.base(name) else {
            continue;
        };
        let mut tests: Vec<&str> = own
            .iter()
            .map(|(figure, ..)| figure.test.as_str())
            .collect();
        tests.sort_unstable();
        tests.dedup();
        for test in tests {
            if let Some(anchors) = anchors(&own, test) {
                found.add(command, name, &base, &own, &anchors)?;
            }
        }
    }
    Ok(found)
}

/// The indices of the anchors among the figures of a machine, of one test. `None`: the machine
/// lacks some of them.
fn anchors(own: &[(PublishedFigure, usize, SeriesKind)], test: &str) -> Option<[usize; 3]> {
    let of_test = own.iter().enumerate();
    let of_test = of_test.filter(|(_, (figure, ..))| figure.test == test);
    let (_, (_, _, kind)) = of_test.clone().next()?;
    let apart = |size: usize, middle: usize| {
        size.max(1).max(middle) as f64 / size.max(1).min(middle) as f64
    };
    let nearest = |(number, middle): (usize, usize)| {
        // Latencies to 8 B are equal.
        let is_close = |size: usize| {
            apart(size, middle) <= AWAY as f64
                || (number == 0 && kind.1 == Property::Latency && size <= middle)
        };
        let close = of_test.clone().filter(|(_, (_, size, _))| is_close(*size));
        let found = close
            .min_by(|(_, one), (_, other)| apart(one.1, middle).total_cmp(&apart(other.1, middle)));
        found.map(|(at, _)| at)
    };
    let places = wanted(kind.1).into_iter().enumerate().map(nearest);
    let places: Vec<usize> = places.collect::<Option<_>>()?;
    places.try_into().ok()
}

impl Anchored {
    fn add(
        &mut self,
        command: &Path,
        name: &str,
        base: &Base,
        own: &[(PublishedFigure, usize, SeriesKind)],
        anchors: &[usize; 3],
    ) -> Result<()> {
        let figures: Vec<PublishedFigure> = own.iter().map(|(figure, ..)| figure.clone()).collect();
        let mut console = Console::without_libraries(0);
        let found = fitted(command, (base, &[]), &figures, anchors, &mut console);
        let found = found.with_context(|| format!("cannot calibrate {name}"))?;
        let system = base.catalogue.system(&base.name);
        let system = system.map_err(|why| anyhow::anyhow!("{why}"))?;
        let values = found.changes.iter().map(|one| one.path.clone());
        let (_, _, kind) = &own[anchors[0]];
        let sizes = anchors.map(|at| own[at].1.to_string());
        let said = format!("{} of {} B", figures[anchors[0]].test, sizes.join(", "));
        self.systems.push((name.to_owned(), said, values.collect()));
        let level = kind.0;
        for (at, (figure, size, of)) in own.iter().enumerate() {
            let Some(value) = figure.number().filter(|_| of.0 == level) else {
                continue;
            };
            let [before, after] = found.predicted[at].map(|predicted| predicted / value - 1.0);
            self.others.push(Other {
                system: name.to_owned(),
                network: network(&system, figure),
                figure: figure.clone(),
                kind: *of,
                size: *size,
                anchors: *kind,
                is_anchor: anchors.contains(&at),
                before,
                after,
            });
        }
        Ok(())
    }

    /// The errors, before and after the calibration, of the figures that no anchors are and for
    /// which `wanted` is true.
    fn errors(&self, wanted: impl Fn(&Other) -> bool) -> [Vec<f64>; 2] {
        let mut both = [Vec::new(), Vec::new()];
        for other in self
            .others
            .iter()
            .filter(|other| !other.is_anchor && wanted(other))
        {
            both[0].push(other.before.abs());
            both[1].push(other.after.abs());
        }
        for errors in &mut both {
            errors.sort_by(f64::total_cmp);
        }
        both
    }

    /// The header and the rows of the table: network, kind, anchors, numbers, and the errors before
    /// and after.
    pub(crate) fn rows(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let mut rows = Vec::new();
        for group in &GROUPS {
            for is_same in [true, false] {
                let has = |other: &Other| {
                    group.has(other.network, other.kind, other.size)
                        && (other.kind == other.anchors) == is_same
                };
                let [before, after] = self.errors(has);
                if after.is_empty() {
                    continue;
                }
                let mut systems: Vec<&str> = self
                    .others
                    .iter()
                    .filter(|other| has(other) && !other.is_anchor)
                    .map(|other| other.system.as_str())
                    .collect();
                systems.sort_unstable();
                systems.dedup();
                let (middle, far) = (median(&after), percentile(&after, 90.0));
                let met = |[most, most_far]: [f64; 2]| match middle <= most && far <= most_far {
                    true => "met",
                    false => "missed",
                };
                let limit = group.anchored.filter(|_| is_same);
                rows.push(vec![
                    group.network.to_owned(),
                    group.name.to_owned(),
                    if is_same {
                        "of the kind"
                    } else {
                        "of the other kind"
                    }
                    .to_owned(),
                    format!("{} of {}", after.len(), systems.len()),
                    pair([median(&before), percentile(&before, 90.0)]),
                    pair([middle, far]),
                    limit.map_or(String::new(), |most| {
                        format!("{}: {}", pair(most), met(most))
                    }),
                ]);
            }
        }
        let header = vec![
            "network",
            "figures",
            "anchors",
            "number, systems",
            "before",
            "after",
            "limit",
        ];
        (header, rows)
    }

    /// The number of anchors, and of those that their machine does not reach.
    pub(super) fn reached(&self) -> (usize, usize) {
        let anchors = self.others.iter().filter(|other| other.is_anchor);
        let missed = anchors.clone().filter(|other| other.after.abs() > REACHED);
        (anchors.count(), missed.count())
    }

    /// The lines with the values that the calibration has changed, for each machine.
    fn moved(&self) -> String {
        let lines = self.systems.iter().map(|(name, anchors, values)| {
            let own = |other: &&Other| other.system == *name && other.is_anchor;
            let own = self.others.iter().filter(own);
            let missed = own.filter(|other| {
                other.after.abs() > REACHED && anchors.starts_with(&other.figure.test)
            });
            let missed: Vec<String> = missed
                .map(|other| format!("{} B {:+.1} %", other.size, other.after * 100.0))
                .collect();
            let missed = match missed.is_empty() {
                true => String::new(),
                false => format!("; not reached: {}", missed.join(", ")),
            };
            format!("{name}, {anchors}: {}{missed}\n", values.join(", "))
        });
        lines.collect()
    }

    /// The table of the errors, and the values that calibrations changed.
    pub(crate) fn text(&self) -> String {
        let (header, rows) = self.rows();
        let header = header.into_iter().map(String::from).collect();
        let table = aligned(header, rows, |column| column != 3);
        let (all, missed) = self.reached();
        format!(
            "{table}\n{} of {all} anchors are within {:.0} %\n\n{}",
            all - missed,
            REACHED * 100.0,
            self.moved()
        )
    }

    /// JSON, one object per line: the figures, then the groups.
    pub(crate) fn json(&self) -> String {
        let mut lines: Vec<Value> = Vec::new();
        let percent = |share: f64| (share * 1e4).round() / 100.0;
        for other in &self.others {
            lines.push(json!({
                "figure": other.figure.id, "machine": other.system, "test": other.figure.test,
                "size": other.size, "network": other.network,
                "anchors": match other.anchors.1 {
                    Property::Latency => "latencies",
                    Property::Stream => "streams",
                },
                "anchor": other.is_anchor,
                "error_percent": {"before": percent(other.before), "after": percent(other.after)},
            }));
        }
        let (_, rows) = self.rows();
        for row in rows {
            lines.push(
                json!({"network": row[0], "group": row[1], "anchors": row[2],
                "figures": row[3], "before": row[4], "after": row[5], "limit": row[6]}),
            );
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(test: &str, size: usize) -> (PublishedFigure, usize, SeriesKind) {
        let figure = PublishedFigure {
            test: test.into(),
            msg_size: size.to_string(),
            value: "1".into(),
            unit: if test.contains("lat") { "us" } else { "MB/s" }.into(),
            ..PublishedFigure::default()
        };
        let kind = kind_of(&figure).unwrap();
        (figure, size, kind)
    }

    #[test]
    fn anchors_are_chosen_by_size() {
        let own = [
            figure("ib_write_lat", 64),
            figure("ib_write_lat", 2),
            figure("ib_write_lat", 8192),
            figure("ib_write_lat", 20000),
            figure("ib_write_lat", 1 << 20),
            figure("ib_write_bw", 64),
            figure("ib_write_bw", 1 << 20),
            figure("ib_write_bw", 4096),
        ];
        assert_eq!(anchors(&own, "ib_write_lat"), Some([1, 3, 4]));
        assert_eq!(anchors(&own, "ib_write_bw"), Some([5, 7, 6]));
        assert_eq!(anchors(&own[..7], "ib_write_bw"), None);
        assert_eq!(anchors(&own, "osu_bw"), None);
    }
}
