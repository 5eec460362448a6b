//! `--every-choice`: compares the default settings with every protocol, rail policy and algorithm
//! that a setting can force, for each size, and computes the regret of each size.
//!
//! The library itself lists its alternatives with their settings ([`explained`]), so a new protocol
//! or algorithm is measured without a change here. For each size, the default and the choices that
//! are effective there alternate in [`Rounds`], close enough in time to find the machine in the
//! same state.

mod beside;
mod explained;
mod kept;
mod point;
mod table;

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::Path;

use anyhow::{Context, Result, bail};
use conditions::{Proximity, RunStart};
use results::Console;
use results::arguments::usage;
use results::sizes::size_label;
use results::terminal::fitted;

use crate::benchmark::Benchmark;
use crate::cli::{BenchCommand, MeasureOptions};
use crate::library::Library;
use crate::measurement::Measurement;
use crate::plan::WorkerPlan;
use crate::rounds::{Case, Rounds};
use explained::{Alternatives, Explainer};
use kept::KeptPoint;
use point::{Choice, DEFAULT, Point};

/// The number of measuring rounds on a real machine, unless the user chooses another.
const ROUNDS: usize = 15;

/// The width of tables that are not written to a terminal, in columns.
const COLUMNS: usize = 120;

/// Measures every choice, prints the regrets, and keeps or compares figures as the user wants.
pub(crate) fn run(command: &Path, what: &BenchCommand, options: &MeasureOptions) -> Result<()> {
    let cases = what.cases().map_err(usage)?;
    let bases = options.choice.libraries(command).map_err(usage)?;
    let earlier = options.every.beside.as_deref().map(kept::read).transpose();
    let earlier = earlier.map_err(usage)?;
    let start = (!options.choice.modelled()).then(RunStart::now);
    let mut points = Vec::new();
    for base in &bases {
        let series = Series {
            command,
            base,
            rounds: options.choice.rounds(ROUNDS),
            timeout: options.choice.timeout().map_err(usage)?,
        };
        for case in &cases {
            points.extend(series.points(case)?);
        }
    }
    let conditions = start.map(|start| conditions::after(start).0);
    let kept: Vec<KeptPoint> = points
        .iter()
        .map(|point| KeptPoint::of(point, false))
        .collect();
    if let Some(file) = &options.every.keep {
        kept::write(file, &kept)?;
    }
    // Output that is no terminal is a page of a document or a log.
    results::terminal::limit_elsewhere(COLUMNS);
    let mut text = match options.output.json {
        true => points
            .iter()
            .map(|point| KeptPoint::of(point, true).line())
            .collect(),
        false => table::render(&points, conditions.as_ref()),
    };
    if let Some(earlier) = &earlier {
        let comparison = beside::compare(earlier, &kept);
        text += &comparison.text(options.output.json);
    }
    if !options.output.json {
        text = fitted(&text);
    }
    stdout()
        .write_all(text.as_bytes())
        .context("cannot write the results")
}

/// The measurement of points with one library on one machine.
struct Series<'a> {
    command: &'a Path,
    /// The library with default settings.
    base: &'a Library,
    rounds: usize,
    timeout: std::time::Duration,
}

impl Series<'_> {
    /// The points of all sizes of a case.
    fn points(&self, case: &Case) -> Result<Vec<Point>> {
        let mut console = Console::new(0);
        let explainer = Explainer {
            command: self.command,
            timeout: self.timeout,
            case,
        };
        let named = named(self.base, DEFAULT, &BTreeMap::new());
        let default = explainer.by_size(&named, &mut console)?;
        let forced = self.forced(&explainer, &default[0], &mut console)?;
        let sizes = 0..case.plan.sizes.len();
        let plans: Vec<SizePlan> = sizes
            .map(|at| self.plan(case, at, &default[at], &forced))
            .collect();
        let steps = plans.iter().map(|plan| plan.libraries.len() * self.rounds);
        let mut console = Console::new(steps.sum());
        plans
            .into_iter()
            .map(|plan| self.point(case, plan, &mut console))
            .collect()
    }

    /// All choices that settings can force, each as a library with these settings. The first group
    /// includes the choice that the default settings make; the other groups, such as rail policies,
    /// omit it.
    fn forced(
        &self,
        explainer: &Explainer,
        default: &Alternatives,
        console: &mut Console,
    ) -> Result<Vec<Forced>> {
        let benchmark = explainer.case.plan.benchmark;
        let groups = default.of(benchmark);
        if groups.is_empty() {
            let name = benchmark.name();
            bail!("--every-choice: the library lists no alternatives for {name}");
        }
        let mut forced = Vec::new();
        for (number, group) in groups.into_iter().enumerate() {
            for alternative in &group.forced {
                let choice = &alternative.choice;
                let label = match number {
                    0 => choice.clone(),
                    _ if group.taken(0) == Some(choice) => continue,
                    _ => format!("{} {choice}", group.kind),
                };
                let library = named(self.base, &label, &alternative.settings);
                let explained = explainer.by_size(&library, console)?;
                forced.push(Forced {
                    library,
                    kind: group.kind.clone(),
                    choice: choice.clone(),
                    explained,
                });
            }
        }
        Ok(forced)
    }

    /// The libraries to measure at a size: the default, then those whose settings have an effect
    /// there, first the one that forces the default's choice.
    fn plan(&self, case: &Case, at: usize, default: &Alternatives, forced: &[Forced]) -> SizePlan {
        let (benchmark, size) = (case.plan.benchmark, case.plan.sizes[at]);
        let bytes = counted_bytes(benchmark, size, case.ranks);
        let groups = default.of(benchmark);
        let taken = groups.first().and_then(|group| group.taken(bytes));
        let taken = taken.unwrap_or("?").to_owned();
        let takes = |one: &&Forced| {
            let of_size = &one.explained[at];
            of_size.taken(benchmark, &one.kind, bytes) == Some(&*one.choice)
        };
        let taking = forced.iter().filter(takes).map(|one| &one.library);
        let (own, others): (Vec<_>, Vec<_>) = taking.partition(|one| one.label == taken);
        let has_own = !own.is_empty();
        let mut libraries = vec![named(self.base, DEFAULT, &BTreeMap::new())];
        libraries.extend(own.into_iter().chain(others).cloned());
        SizePlan {
            size,
            libraries,
            own: has_own.then(|| taken.clone()),
            taken,
        }
    }

    /// Measures one message size in several rounds.
    fn point(&self, case: &Case, plan: SizePlan, console: &mut Console) -> Result<Point> {
        let is_real = self.base.fabric.is_none();
        let place = || is_real.then(Proximity::now).flatten();
        let rounds = Rounds {
            command: self.command,
            libraries: &plan.libraries,
            rounds: self.rounds,
            timeout: self.timeout,
        };
        let single = [Case {
            plan: WorkerPlan {
                sizes: vec![plan.size],
                ..case.plan.clone()
            },
            ranks: case.ranks,
        }];
        let mut places = Vec::new();
        let all = rounds.run(&single, console, |_| {
            places.push(place());
            Ok(Vec::new())
        });
        let all = all.with_context(|| format!("--every-choice, {}", size_label(plan.size)))?;
        places.push(place());
        let name = case.plan.benchmark.name();
        let figures: Vec<&Measurement> = all.iter().filter(|one| one.benchmark == name).collect();
        let choice = |library: &Library| {
            let found = figures.iter().find(|one| one.label == library.label);
            Choice {
                name: library.label.clone(),
                settings: settings(library, self.base),
                rounds: found.map(|one| one.rounds.clone()).unwrap_or_default(),
            }
        };
        let mut choices: Vec<Choice> = plan.libraries.iter().map(choice).collect();
        let default = choices.remove(0);
        Ok(Point {
            benchmark: name.to_owned(),
            fabric: self.base.fabric.clone(),
            ranks: case.ranks,
            size: plan.size,
            is_sized: case.plan.benchmark.sized(),
            is_collective: matches!(case.plan.benchmark, Benchmark::Collective(_)),
            unit: case.plan.benchmark.unit(),
            places: point::of_rounds(&places),
            taken: plan.taken,
            own: plan.own,
            default: default.rounds,
            choices,
        })
    }
}

/// A library whose settings force a choice.
struct Forced {
    library: Library,
    kind: String,
    choice: String,
    /// For each size, the choices that the library makes under these settings.
    explained: Vec<Alternatives>,
}

/// The libraries to measure at one message size, with default settings and with forced choices.
struct SizePlan {
    size: usize,
    /// The libraries, of which the first has the default settings.
    libraries: Vec<Library>,
    /// The choice that the library makes with default settings.
    taken: String,
    /// The label of the library that forces the default's choice, if one does.
    own: Option<String>,
}

/// A copy of the library with another label and further settings.
fn named(base: &Library, label: &str, settings: &BTreeMap<String, String>) -> Library {
    let mut library = base.clone();
    library.label = label.into();
    let settings = settings.iter();
    let settings = settings.map(|(name, value)| (name.into(), value.into()));
    library.environment.extend(settings);
    library
}

/// The settings of a library that the library with default settings does not have.
fn settings(library: &Library, base: &Library) -> Vec<(String, String)> {
    let further = library.environment[base.environment.len()..].iter();
    let text = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
    further
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

/// The number of bytes by which the library makes its choice.
fn counted_bytes(benchmark: Benchmark, size: usize, ranks: usize) -> usize {
    match benchmark {
        Benchmark::Collective(collective) => collective.operation.chosen_bytes(size, ranks),
        _ => size,
    }
}
