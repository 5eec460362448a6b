//! Calibration: builds a machine from figures that a user has measured on it. The values of a known
//! system that no document states are changed towards the figures ([`fabric::fit`]).
//!
//! Predictions are made as by `fishplate study score`: by jobs that run the same benchmark as the
//! measuring tool, in virtual time.

mod near;
mod runs;
mod show;
mod warn;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use fabric::catalogue::{Catalogue, FieldValue, Sheet};
use fabric::components::Part;
use fabric::figures::Figures;
use fabric::fit::{Coordinates, Fitted, FreeValue, Movement, Observation, fit, movements};
use fabric::outputs::Reading;
use fabric::quantity::Raw;
use fabric::{GbPerSec, System};
use results::Console;

use crate::score::figures::PublishedFigure;
use runs::{Change, Runs};

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

/// The catalogued system from which a calibration starts.
#[derive(Clone)]
pub struct Base {
    /// The catalogue that contains the system before the calibration.
    pub catalogue: Catalogue,
    /// The name of the system in the catalogue.
    pub name: String,
    /// The text of the file that defines the system; empty for a built-in system.
    pub text: String,
}

impl Base {
    fn sheet(&self) -> Result<Sheet> {
        let sheet = self.catalogue.sheet(System::KIND, &self.name);
        sheet.map_err(|why| anyhow::anyhow!("{why}"))
    }
}

/// A machine that was calibrated with measured figures, and the results of the calibration.
pub struct CalibratedMachine {
    name: String,
    base: Base,
    /// The nearest systems of the catalogue with their distances, if the nearest was searched.
    nearest: Vec<(String, f64)>,
    changes: Vec<Change>,
    moved: Vec<Moved>,
    rows: Vec<Row>,
    /// Warnings about measured figures that contradict the hardware.
    pub warnings: Vec<String>,
}

/// A value of the machine that the calibration has changed.
struct Moved {
    free: FreeValue,
    value: Raw,
}

/// A measured figure with the predictions that a calibration made of it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) place: String,
    pub(crate) figure: PublishedFigure,
    pub(crate) measured: f64,
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// The prediction with values that are fitted to the other figures only.
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
        .any(|field| matches!(field.value, FieldValue::List(_)));
    ensure!(
        !has_list,
        "{}: a system with a list of rails cannot be calibrated; choose one with a number of equal rails",
        base.name
    );
    let system = sheet.build::<System>();
    let system = system.map_err(|why| anyhow::anyhow!("{}: {why}", base.name))?;
    let warnings = warn::contradictions(&base.name, &system, &request.figures);
    let mut changes = Vec::new();
    let stated_mtu = system.hca.mtu.0;
    if let Some((mtu, place)) = request.mtu.as_ref().filter(|(mtu, _)| *mtu != stated_mtu) {
        changes.push(Change {
            path: "hca.mtu".into(),
            raw: Raw::Text(format!("{mtu} B")),
            source: format!("published: {place}"),
        });
    }
    if let Some(hops) = request.hops {
        changes.push(Change {
            path: "hops".into(),
            raw: Raw::Integer(hops.into()),
            source: "published: --hops".into(),
        });
    }
    let runs = Runs::new(command, &base, &figures, changes.clone())?;
    let one_way = request
        .figures
        .iter()
        .filter(|(_, one)| one.test.ends_with("_bw") && one.size >= 65536);
    let most = one_way.map(|(_, one)| one.value).max_by(f64::total_cmp);
    let free = movements(&sheet, longest(&system, most));
    let observations: Vec<Observation> = figures.iter().map(observed).collect::<Result<_>>()?;
    let found = search(&runs, &free, &observations, &mut console)?;
    let rows = figures.into_iter().enumerate().map(|(at, figure)| Row {
        place: request.figures[at].0.clone(),
        measured: observations[at].value,
        before: found.before[at],
        after: found.after[at],
        left_out: found.left_out[at],
        figure,
    });
    let rows = rows.collect();
    let moved = moved(&free, &found.moved);
    Ok(CalibratedMachine {
        name: request.name.into(),
        base,
        nearest,
        changes,
        moved,
        rows,
        warnings,
    })
}

/// Fits a machine to some of its figures, the anchors. Returns the changed values, and for every
/// figure its errors before and after.
pub(crate) fn fitted(
    command: &Path,
    base: &Base,
    figures: &[PublishedFigure],
    anchors: &[usize],
) -> Result<(Vec<String>, Vec<[f64; 2]>)> {
    let mut console = Console::without_libraries(0);
    let sheet = base.sheet()?;
    let system = sheet.build::<System>();
    let system = system.map_err(|why| anyhow::anyhow!("{}: {why}", base.name))?;
    let chosen: Vec<PublishedFigure> = anchors.iter().map(|at| figures[*at].clone()).collect();
    let observations: Vec<Observation> = chosen.iter().map(observed).collect::<Result<_>>()?;
    let most = chosen
        .iter()
        .zip(&observations)
        .filter(|(figure, _)| figure.unit == "MB/s");
    let most = most.map(|(_, one)| one.value).max_by(f64::total_cmp);
    let free = movements(&sheet, longest(&system, most));
    let runs = Runs::new(command, base, &chosen, Vec::new())?;
    let found = search(&runs, &free, &observations, &mut console)?;
    let machines = [Vec::new(), changes_of(&free, &found.moved)];
    let runs = Runs::new(command, base, figures, Vec::new())?;
    let predictions = runs.predict(&machines, "the other figures", &mut console)?;
    let errors = figures.iter().enumerate().map(|(at, figure)| {
        let value = observed(figure)?.value;
        Ok([0, 1].map(|machine| predictions[machine][at] / value - 1.0))
    });
    let moved = moved(&free, &found.moved).into_iter().map(|one| {
        let shown = |raw: &Raw| raw.to_string().trim_matches('"').to_owned();
        let [before, after] = [&one.free.written, &one.value].map(shown);
        format!("{} ({before} to {after})", one.free.paths[0])
    });
    Ok((moved.collect(), errors.collect::<Result<_>>()?))
}

/// Runs the fit, with a progress bar for each of its phases.
fn search(
    runs: &Runs,
    free: &[Movement],
    observations: &[Observation],
    console: &mut Console,
) -> Result<Fitted> {
    let mut part = "each value alone";
    fit(free, observations, |trials: &[Coordinates]| {
        let all: Vec<Vec<Change>> = trials.iter().map(|trial| changes_of(free, trial)).collect();
        let found = runs.predict(&all, part, console);
        part = "the best values together";
        found
    })
}

/// The changed values of a machine with these coordinates.
fn changes_of(free: &[Movement], trial: &[(usize, f64)]) -> Vec<Change> {
    let each = trial.iter().flat_map(|(place, at)| free[*place].at(*at));
    let changes = each.map(|(path, raw)| Change {
        path: path.to_owned(),
        raw,
        source: "inferred: a trial".into(),
    });
    changes.collect()
}

/// The values that the calibration has changed.
fn moved(free: &[Movement], coordinates: &[(usize, f64)]) -> Vec<Moved> {
    let each = coordinates.iter().flat_map(|(place, at)| {
        free[*place].values.iter().map(|one| Moved {
            value: one.at(*at),
            free: one.clone(),
        })
    });
    each.collect()
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

/// A figure with its standard deviation, as a share: that of measurements, and that of the model
/// where the fitted values cannot change the shape of its curve. The deviations were chosen with
/// the anchors of the published figures in view.
pub(crate) fn observed(figure: &PublishedFigure) -> Result<Observation> {
    let value = figure
        .number()
        .with_context(|| format!("{}: no number", figure.id))?;
    let size = figure
        .size()
        .with_context(|| format!("{}: no size", figure.id))?;
    let deviation = match (figure.unit.as_str(), size) {
        ("us", ..=128) => 0.03,
        ("us", ..8192) => 0.05,
        // Several packets or a rendezvous: phases overlap, so the model's shape matters.
        ("us", ..65536) => 0.1,
        ("us", _) => 0.04,
        (_, 65536..) => 0.05,
        (_, 2048..) => 0.1,
        _ => 0.3,
    };
    Ok(Observation { value, deviation })
}

/// The bandwidth of the longest messages: the highest measured one, `most` in MB/s, but at most
/// that of the system.
fn longest(system: &System, most: Option<f64>) -> GbPerSec {
    let own = Figures::of(system, 0).peak;
    most.map_or(own, |most| {
        let bits = (most * 8e6) as u64;
        GbPerSec::from_bits_per_sec(bits.min(own.bits_per_sec()).max(1_000_000))
    })
}

/// An error if a figure cannot be predicted; it names the figure's location.
fn refused(figures: &[PublishedFigure], reasons: &[Option<String>]) -> Result<()> {
    for (figure, reason) in figures.iter().zip(reasons) {
        if let Some(why) = reason {
            bail!("{}: {why}", figure.id);
        }
    }
    Ok(())
}
