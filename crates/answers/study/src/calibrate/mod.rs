//! Calibration: builds a machine from figures that a user has measured on it. The machine reaches
//! its figures: what no value of the catalogue explains becomes times by length
//! ([`fabric::curve`]), in the manner of an interpolation between the figures.
//!
//! Predictions are made as by `fishplate study score`: by jobs that run the same benchmark as the
//! measuring tool, in virtual time.

mod base;
mod near;
mod next;
mod runs;
mod search;
pub(crate) mod series;
mod show;
mod trial;
mod warn;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use fabric::catalogue::FieldValue;
use fabric::curve::MOST_POINTS;
use fabric::outputs::Reading;
use fabric::quantity::Raw;
use fabric::{Nanos, System};
use results::Console;

use crate::score::figures::PublishedFigure;
pub use base::Base;
use runs::{Change, Runs};
use search::{Wanted, approach, speed};
use series::{GRID, KEPT, KINDS, Level, SeriesKind, kind_of, targets, time_of, usual_test};
use trial::{Speed, Trial};

/// A request for a calibration: figures of a machine, and the system that it resembles.
pub struct CalibrateRequest<'a> {
    /// The figures, each with the file and line that contains it, such as `osu.txt:7`.
    pub figures: Vec<(String, Reading)>,
    /// The largest packet in bytes, if the tools' outputs contain it, with the file and line.
    pub mtu: Option<(u64, String)>,
    /// The system that supplies all other values. `None`: the nearest system of the catalogue.
    pub like: Option<Base>,
    /// The name of the calibrated system.
    pub name: &'a str,
    /// The number of switches between the measured hosts, if it is known.
    pub hops: Option<u32>,
}

/// A machine that was calibrated with measured figures, and the results of the calibration.
pub struct CalibratedMachine {
    name: String,
    base: Base,
    /// The nearest systems of the catalogue with their distances, if the nearest was searched.
    nearest: Vec<(String, f64)>,
    /// The values by which the machine differs from the base.
    changes: Vec<Change>,
    rows: Vec<Row>,
    /// The benchmarks and sizes whose figures would help most next.
    next: Vec<(&'static str, usize)>,
    /// Warnings about measured figures: they contradict the hardware, or the machine does not reach
    /// them.
    pub warnings: Vec<String>,
}

/// A measured figure with the predictions that a calibration made of it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) place: String,
    pub(crate) figure: PublishedFigure,
    pub(crate) measured: f64,
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// The prediction of a machine that the other figures alone determine.
    pub(crate) left_out: f64,
}

impl Row {
    pub(crate) fn errors(&self) -> [f64; 3] {
        [self.before, self.after, self.left_out].map(|found| found / self.measured - 1.0)
    }
}

/// Calibrates a machine. `command` is the path of the executable that starts jobs and workers.
pub fn calibrate(command: &Path, request: &CalibrateRequest) -> Result<CalibratedMachine> {
    let mut console = Console::without_libraries(0);
    let figures: Vec<PublishedFigure> = request.figures.iter().map(published).collect();
    let (base, nearest) = match &request.like {
        Some(base) => (base.clone(), Vec::new()),
        None => near::nearest(command, &figures, &mut console)?,
    };
    let sheet = base.sheet()?;
    let has_list = sheet
        .fields
        .iter()
        .any(|field| field.key.name == "rails" && matches!(field.value, FieldValue::List(_)));
    ensure!(
        !has_list,
        "{}: a system with a list of rails cannot be calibrated; choose one with a number of equal rails",
        base.name
    );
    let system = sheet.build::<System>();
    let system = system.map_err(|why| anyhow::anyhow!("{}: {why}", base.name))?;
    let mut warnings = warn::contradictions(&base.name, &system, &request.figures);
    let mut stated = Vec::new();
    let stated_mtu = system.hca.mtu.0;
    if let Some((mtu, place)) = request.mtu.as_ref().filter(|(mtu, _)| *mtu != stated_mtu) {
        stated.push(Change {
            path: "hca.mtu".into(),
            raw: Raw::Text(format!("{mtu} B")),
            source: format!("published: {place}"),
        });
    }
    if let Some(hops) = request.hops {
        stated.push(Change {
            path: "hops".into(),
            raw: Raw::Integer(hops.into()),
            source: "published: --hops".into(),
        });
    }
    let all: Vec<usize> = (0..figures.len()).collect();
    let found = fitted(command, (&base, &stated), &figures, &all, &mut console)?;
    let rows = figures.into_iter().zip(&found.predicted).enumerate();
    let rows = rows.map(|(at, (figure, [before, after]))| {
        let measured = figure.number().context("a figure without a number")?;
        Ok(Row {
            place: request.figures[at].0.clone(),
            measured,
            before: *before,
            after: *after,
            left_out: found.left_out[at].unwrap_or(*after),
            figure,
        })
    });
    let rows: Vec<Row> = rows.collect::<Result<_>>()?;
    warnings.extend(warn::missed(&rows));
    Ok(CalibratedMachine {
        name: request.name.into(),
        nearest,
        next: next::helpful(rows.iter().map(|row| &row.figure)),
        changes: stated.into_iter().chain(found.changes).collect(),
        base,
        rows,
        warnings,
    })
}

/// A machine that reaches some of its figures, the anchors.
pub(crate) struct Fitted {
    /// The values by which it differs from the base.
    pub(crate) changes: Vec<Change>,
    /// For each figure, the predictions of the base and of this machine, in the figure's unit.
    pub(crate) predicted: Vec<[f64; 2]>,
    /// For each figure, the value that the other anchors alone would give. `None`: it is no anchor
    /// that determines a value.
    pub(crate) left_out: Vec<Option<f64>>,
}

/// Calibrates the system `base`, with values that are stated, by those of `figures` whose indices
/// are in `anchors`. Predicts all figures.
pub(crate) fn fitted(
    command: &Path,
    (base, stated): (&Base, &[Change]),
    figures: &[PublishedFigure],
    anchors: &[usize],
    console: &mut Console,
) -> Result<Fitted> {
    let sheet = base.sheet()?;
    let system = sheet.build::<System>();
    let system = system.map_err(|why| anyhow::anyhow!("{}: {why}", base.name))?;
    let mut plans: Vec<Plan> = KINDS
        .into_iter()
        .filter_map(|kind| Plan::of(kind, figures, anchors))
        .collect();
    ensure!(
        !plans.is_empty(),
        "no figure determines a value: latencies, bandwidths or message rates of two processes are needed"
    );
    let source = format!("inferred: {} figures of this machine", anchors.len());
    let own = [Trial::of(Speed::OWN)];
    let setting = Setting {
        command,
        base,
        stated,
        system: &system,
        source: &source,
    };
    let found = setting.predict(&plans, &own, "the machine before", console)?;
    let found = found.into_iter().next().unwrap_or_default();
    let mut left_out = vec![None; figures.len()];
    for (plan, before) in plans.iter_mut().zip(&found) {
        plan.set(before);
        for (at, time) in plan.left_out(figures, anchors, before) {
            left_out[at] = Some(value_of(&figures[at], time));
        }
    }
    let wanted =
        |plans: &[Plan]| -> Vec<Wanted> { plans.iter().map(|plan| plan.wanted.clone()).collect() };
    let mut measured: Vec<Plan> = plans.iter().map(Plan::of_measured).collect();
    let mut trial = Trial::of(Speed::OWN);
    let mut is_kept = false;
    for _ in 0..ATTEMPTS {
        let speed = speed(&wanted(&measured), |trials: &[Trial]| {
            setting.predict(&measured, trials, "faster parts", console)
        })?;
        if speed != Speed::OWN && !std::mem::replace(&mut is_kept, true) {
            plans.extend(setting.kept(&plans, console)?);
        }
        let found;
        (trial, found) = approach(&wanted(&plans), speed, |trials: &[Trial]| {
            setting.predict(&plans, trials, "times by length", console)
        })?;
        // Times by length of short messages also delay the steps of long ones, so these need
        // parts that are faster still.
        let mut is_over = false;
        for ((plan, own), found) in measured.iter_mut().zip(&plans).zip(&found) {
            for (size, times) in own.wanted.measured(found) {
                if times > 1.0 + MISSED {
                    is_over = true;
                    plan.lower(size, times);
                }
            }
        }
        if !is_over {
            break;
        }
    }
    let changes = trial.changes(&system, &source);
    let runs = Runs::new(command, base, figures, stated.to_vec())?;
    let machines = [Vec::new(), changes.clone()];
    let predictions = runs.predict(&machines, "all figures", console)?;
    let predicted = (0..figures.len()).map(|at| [predictions[0][at], predictions[1][at]]);
    Ok(Fitted {
        predicted: predicted.collect(),
        changes,
        left_out,
    })
}

/// The most speeds from which times by length are added.
const ATTEMPTS: usize = 3;
/// The share by which a measured time may be exceeded.
const MISSED: f64 = 0.008;

/// The value of a figure, in its unit, that a time of one message means.
fn value_of(figure: &PublishedFigure, micros: f64) -> f64 {
    match figure.unit.as_str() {
        "us" => micros,
        _ => time_of(figure, 1.0) / micros,
    }
}

/// A series to calibrate: one test at the sizes of a grid, with its anchors.
struct Plan {
    wanted: Wanted,
    test: String,
    unit: String,
    /// The sizes in bytes, in ascending order, with the measured times in microseconds.
    anchors: Vec<(usize, f64)>,
}

impl Plan {
    /// The series of a kind whose test has most of the anchors. `None`: no anchor is of the kind.
    fn of(kind: SeriesKind, figures: &[PublishedFigure], anchors: &[usize]) -> Option<Plan> {
        let own: Vec<&PublishedFigure> = anchors
            .iter()
            .map(|at| &figures[*at])
            .filter(|figure| kind_of(figure) == Some(kind))
            .collect();
        let count = |test: &str| own.iter().filter(|one| one.test == test).count();
        // Of tests with as many anchors the first one of the list is chosen.
        let most = own.iter().map(|one| count(&one.test)).max()?;
        let test = &own.iter().find(|one| count(&one.test) == most)?.test;
        let of_test = own.iter().filter(|one| one.test == *test);
        let mut sizes: Vec<usize> = of_test.clone().filter_map(|one| one.size()).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let times = |size: usize| {
            let same = of_test.clone().filter(|one| one.size() == Some(size));
            let logs: Vec<f64> = same
                .filter_map(|one| Some(time_of(one, one.number()?).ln()))
                .collect();
            (logs.iter().sum::<f64>() / logs.len() as f64).exp()
        };
        let anchors: Vec<(usize, f64)> = sizes.iter().map(|size| (*size, times(*size))).collect();
        let unit = of_test.clone().next()?.unit.clone();
        let mut sizes: Vec<usize> = sizes.into_iter().map(|size| size.max(1)).collect();
        sizes.truncate(MOST_POINTS);
        let room = MOST_POINTS - sizes.len();
        let new = GRID.into_iter().filter(|size| !sizes.contains(size));
        let new: Vec<usize> = new.take(room).collect();
        sizes.extend(new);
        sizes.sort_unstable();
        sizes.dedup();
        Some(Plan {
            wanted: Wanted {
                kind,
                sizes,
                times: Vec::new(),
                measured: anchors.iter().map(|(size, _)| *size.max(&1)).collect(),
            },
            test: test.clone(),
            unit,
            anchors: anchors
                .into_iter()
                .map(|(size, time)| (size.max(1), time))
                .collect(),
        })
    }

    /// The series with its measured sizes alone.
    fn of_measured(&self) -> Plan {
        let Wanted {
            kind,
            sizes,
            times,
            measured,
        } = &self.wanted;
        let own = sizes.iter().zip(times);
        let own = own.filter(|(size, _)| measured.contains(size));
        let (sizes, times) = own.map(|(size, time)| (*size, *time)).unzip();
        Plan {
            wanted: Wanted {
                kind: *kind,
                sizes,
                times,
                measured: measured.clone(),
            },
            test: self.test.clone(),
            unit: self.unit.clone(),
            anchors: self.anchors.clone(),
        }
    }

    /// The usual test of a kind, without anchors.
    fn usual(kind: SeriesKind) -> Plan {
        let (test, unit) = usual_test(kind);
        Plan {
            wanted: Wanted {
                kind,
                sizes: KEPT.to_vec(),
                times: Vec::new(),
                measured: Vec::new(),
            },
            test: test.into(),
            unit: unit.into(),
            anchors: Vec::new(),
        }
    }

    /// Divides the wanted time of a size by a factor.
    fn lower(&mut self, size: usize, by: f64) {
        let Wanted { sizes, times, .. } = &mut self.wanted;
        for (_, time) in sizes.iter().zip(times).filter(|(own, _)| **own == size) {
            *time /= by;
        }
    }

    /// Sets the times to reach, given those of the uncalibrated machine.
    fn set(&mut self, before: &[f64]) {
        let Wanted {
            kind, sizes, times, ..
        } = &mut self.wanted;
        *times = targets(kind.1, sizes, before, &self.anchors);
    }

    /// For each figure that is an anchor, the time that the others give.
    fn left_out(
        &self,
        figures: &[PublishedFigure],
        anchors: &[usize],
        before: &[f64],
    ) -> Vec<(usize, f64)> {
        let Wanted { kind, sizes, .. } = &self.wanted;
        let own = anchors.iter().filter(|at| {
            let figure = &figures[**at];
            kind_of(figure) == Some(*kind) && figure.test == self.test
        });
        let each = own.filter_map(|at| {
            let size = figures[*at].size()?.max(1);
            let others: Vec<(usize, f64)> = (self.anchors.iter().copied())
                .filter(|(other, _)| *other != size)
                .collect();
            let place = sizes.iter().position(|own| *own == size)?;
            Some((*at, targets(kind.1, sizes, before, &others)[place]))
        });
        each.collect()
    }

    /// The figures by which the series is predicted.
    fn figures(&self) -> impl Iterator<Item = PublishedFigure> + '_ {
        self.wanted.sizes.iter().map(|size| PublishedFigure {
            id: format!("{} of {size} B", self.test),
            test: self.test.clone(),
            msg_size: size.to_string(),
            value: "1".into(),
            unit: self.unit.clone(),
            pairs: Some(1),
            ..PublishedFigure::default()
        })
    }
}

/// A base with its stated values, on which machines are tried.
struct Setting<'a> {
    command: &'a Path,
    base: &'a Base,
    stated: &'a [Change],
    system: &'a System,
    source: &'a str,
}

impl Setting<'_> {
    /// The series whose times faster parts change though no figure asks for it. Further curves
    /// keep them.
    fn kept(&self, plans: &[Plan], console: &mut Console) -> Result<Vec<Plan>> {
        let has_library = self.system.software.send > Nanos::ZERO;
        let others = KINDS.into_iter().filter(|kind| {
            let is_new = plans.iter().all(|plan| plan.wanted.kind != *kind);
            is_new && (has_library || kind.0 == Level::Requests)
        });
        let mut others: Vec<Plan> = others.map(Plan::usual).collect();
        let own = [Trial::of(Speed::OWN)];
        let found = self.predict(&others, &own, "the machine before", console)?;
        for (plan, before) in others.iter_mut().zip(found.into_iter().flatten()) {
            plan.wanted.times = before;
        }
        Ok(others)
    }

    /// For each machine and each series, the predicted times of one message, in microseconds.
    fn predict(
        &self,
        plans: &[Plan],
        trials: &[Trial],
        part: &str,
        console: &mut Console,
    ) -> Result<Vec<Vec<Vec<f64>>>> {
        let figures: Vec<PublishedFigure> = plans.iter().flat_map(Plan::figures).collect();
        let runs = Runs::new(self.command, self.base, &figures, self.stated.to_vec())?;
        let machines: Vec<Vec<Change>> = trials
            .iter()
            .map(|trial| trial.changes(self.system, self.source))
            .collect();
        let found = runs.predict(&machines, part, console)?;
        let each = found.into_iter().map(|values| {
            let pairs = figures.iter().zip(values);
            let mut times = pairs.map(|(figure, value)| time_of(figure, value));
            let of_plan = |plan: &Plan| times.by_ref().take(plan.wanted.sizes.len()).collect();
            plans.iter().map(of_plan).collect()
        });
        Ok(each.collect())
    }
}

/// A measured figure as an entry of the list of published figures.
fn published((place, reading): &(String, Reading)) -> PublishedFigure {
    PublishedFigure {
        id: place.clone(),
        test: reading.test.into(),
        model_cfg: String::new(),
        msg_size: reading.size.to_string(),
        value: reading.value.to_string(),
        unit: reading.unit.name().into(),
        pairs: Some(reading.pairs),
        ..PublishedFigure::default()
    }
}
