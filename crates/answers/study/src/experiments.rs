//! The experiments of a study: jobs of MPI benchmarks, and benchmarks of devices, on modelled
//! machines.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use bench::modelled::{Curve, Experiment};
use child_guard::WatchedFolder;
use results::Console;
use results::sizes::parse_bytes;
use serde_json::Value;

use crate::benchmark::Benchmark;
use crate::check::Missing;
use crate::curves::{Curves, Measured};
use crate::document::{Configuration, Document, HplSystem, Machine, Measure, Reads, Sweep};
use crate::hpl::Hpl;

/// The options that limit or change a study's experiments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effort {
    /// True to measure fewer sizes, and no programs.
    pub(crate) quick: bool,
    /// The order of the linear system that `hpl` solves. `None`: that of the document.
    pub(crate) order: Option<usize>,
    /// The delay of every second rank in MPI benchmarks, in microseconds. `None`: no rank is
    /// delayed.
    pub(crate) skew: Option<f64>,
}

/// One job, or one run of a device benchmark, and the name of the curve to which its points belong.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) label: String,
    pub(crate) fabric: String,
    pub(crate) benchmark: Benchmark,
    /// The message sizes. `None`: those of `fishplate perf`.
    pub(crate) sizes: Option<String>,
    pub(crate) iterations: Option<usize>,
    pub(crate) ranks: usize,
    pub(crate) ppn: usize,
    /// True to predict the MPI library that the machine names instead of our own.
    pub(crate) named: bool,
    /// The environment variables that set the library, with their values; only for MPI.
    pub(crate) settings: Vec<(String, String)>,
    /// Further options for `fishplate perf`, which only benchmarks of devices get.
    pub(crate) options: Vec<String>,
    pub(crate) reads: Reads,
    /// The linear system that `hpl` solves, with its order; `None` for other benchmarks.
    pub(crate) hpl: Option<(HplSystem, usize)>,
    /// The delay of every second rank in an MPI benchmark, in microseconds. `None`: no rank is
    /// delayed.
    pub(crate) skew: Option<f64>,
}

/// The points of one run, each with a size and a value.
pub(crate) type Points = Vec<(usize, f64)>;

/// The files of machines that are not in the catalogue. They are removed when this value is
/// dropped.
pub(crate) struct Machines {
    folder: WatchedFolder,
    names: Vec<String>,
}

impl Machines {
    /// Writes a file for each machine. `command` is the path of this program's executable.
    pub(crate) fn write(command: &Path, machines: &[Machine]) -> Result<Machines> {
        let folder = WatchedFolder::new(command).context("cannot make a folder for machines")?;
        for machine in machines {
            let file = folder.path().join(&machine.name).with_extension("toml");
            std::fs::write(&file, &machine.text)
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        let names = machines.iter().map(|machine| machine.name.clone());
        Ok(Machines {
            folder,
            names: names.collect(),
        })
    }

    /// The name of a machine on command lines: the path of its file, or its name in the catalogue.
    pub(crate) fn word(&self, name: &str) -> String {
        let file = |name: &str| -> PathBuf { self.folder.path().join(name).with_extension("toml") };
        match self.names.iter().any(|own| own == name) {
            true => file(name).display().to_string(),
            false => name.into(),
        }
    }
}

/// Runs all measurements of a document. Returns the curves, and the measurements without results.
/// `command` is the path of the executable that starts jobs and workers.
pub(crate) fn run(
    command: &Path,
    name: &str,
    document: &Document,
    effort: Effort,
) -> Result<(Curves, Missing)> {
    let machines = Machines::write(command, &document.machines)?;
    let mut missing = Missing::new();
    let mut hpl = Hpl::default();
    let mut plans: Vec<(Measure, Vec<Run>)> = Vec::new();
    for measure in &document.measures {
        let Some(sizes) = measure.sizes(effort.quick) else {
            missing.insert(measure.name.clone(), QUICK.into());
            continue;
        };
        if measure.hpl.is_some()
            && let Err(why) = hpl.prepare(command)?
        {
            missing.insert(measure.name.clone(), why);
            continue;
        }
        let measure = measure.clone().with_order(effort.order);
        let curves = document.curves_of(&measure);
        let runs = curves.flat_map(|curve| runs(document, &machines, &measure, curve, sizes));
        let skew = effort.skew;
        plans.push((
            measure.clone(),
            runs.map(|run| Run { skew, ..run }).collect(),
        ));
    }
    let steps = plans.iter().flat_map(|(_, runs)| runs).map(Run::steps);
    let mut console = Console::without_libraries(steps.sum::<Result<usize>>()?);
    console.say(&announced(name, &plans));
    let all: Vec<&Run> = plans.iter().flat_map(|(_, runs)| runs).collect();
    hpl.solve(command, &all, &mut console)?;
    let mut curves = Curves::default();
    let mut said = "";
    for (measure, runs) in &plans {
        if measure.name != said {
            said = &measure.name;
            let same = plans.iter().filter(|(other, _)| other.name == said);
            let count = same.map(|(_, runs)| runs.len()).sum();
            console.say_without_bar(&format!("{}: {}", measure.title(), runs_shown(count)));
        }
        let mut points = Vec::new();
        for run in runs {
            points.push(match &run.hpl {
                Some(_) => {
                    console.step();
                    hpl.point(run)?
                }
                None => run.run(command, &mut console)?,
            });
        }
        add(&mut curves, measure, runs, points)?;
    }
    // Measurements with one name form one, and some of them may have results.
    missing.retain(|name, _| !curves.0.contains_key(name));
    Ok((curves, missing))
}

/// The points of each run; several runs are made at once. `console` advances by a step for each
/// run.
pub(crate) fn at_once(command: &Path, runs: &[Run], console: &mut Console) -> Result<Vec<Points>> {
    each_at_once(runs, console, |run| {
        run.run(command, &mut Console::hidden())
    })
}

/// The results of some work on each item, several at once. `console` advances by a step for each
/// item.
pub(crate) fn each_at_once<T: Sync, R: Send>(
    items: &[T],
    console: &mut Console,
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let found: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let console = Mutex::new(console);
    let worker = || -> Result<()> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else {
                return Ok(());
            };
            // No further item begins after an error.
            let done = work(item).inspect_err(|_| next.store(items.len(), Ordering::Relaxed))?;
            *found[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            console
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .step();
        }
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let all: Vec<_> = (0..workers.min(items.len()))
            .map(|_| scope.spawn(worker))
            .collect();
        let done = all.into_iter().map(|worker| {
            let done = worker.join();
            done.unwrap_or_else(|_| bail!("a run ended with a panic"))
        });
        done.collect::<Vec<_>>().into_iter().collect::<Result<()>>()
    })?;
    let found = found.into_iter();
    let found = found.map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner));
    found
        .map(|one| one.context("a run has no result"))
        .collect()
}

/// The line that announces the runs of a study before the first one.
fn announced(name: &str, plans: &[(Measure, Vec<Run>)]) -> String {
    let runs = plans.iter().map(|(_, runs)| runs.len()).sum();
    format!(
        "study {name}: {} of benchmarks on modelled machines, one after the other",
        runs_shown(runs)
    )
}

fn runs_shown(runs: usize) -> String {
    match runs {
        1 => "1 run".into(),
        runs => format!("{runs} runs"),
    }
}

const QUICK: &str = "not measured by --quick";

/// The runs of one measurement for one curve: one for each value of the swept parameter.
fn runs(
    document: &Document,
    machines: &Machines,
    measure: &Measure,
    curve: &Configuration,
    sizes: Option<&str>,
) -> Vec<Run> {
    let run = || Run {
        label: curve.name.clone(),
        fabric: machines.word(&curve.fabric),
        benchmark: measure.benchmark,
        sizes: sizes.map(String::from),
        iterations: measure.iterations,
        ranks: measure.ranks,
        ppn: 1,
        named: curve.is_of_named_library(),
        settings: document.settings(curve).into_iter().collect(),
        options: [curve.options.as_slice(), &measure.options].concat(),
        reads: measure.reads,
        hpl: measure.hpl.clone().map(|system| (system, 0)),
        skew: None,
    };
    match &measure.sweep {
        None => vec![run()],
        Some(sweep) => {
            let values = sweep.values.iter();
            values.map(|value| sweep.applied(run(), value)).collect()
        }
    }
}

impl Sweep {
    fn applied(&self, mut run: Run, value: &str) -> Run {
        match self.over.as_str() {
            "pairs" => {
                let pairs = value.parse().unwrap_or(1);
                (run.ranks, run.ppn) = (2 * pairs, pairs);
            }
            "order" => {
                let order = value.parse().unwrap_or_default();
                run.hpl = run.hpl.map(|(system, _)| (system, order));
            }
            option if option.starts_with("--") => {
                run.options.extend([option.to_owned(), value.to_owned()]);
            }
            variable => run.settings.push((variable.into(), value.into())),
        }
        run
    }

    /// The positions of the swept values on a horizontal axis: the numbers themselves, or 1, 2, 3
    /// if they are not numbers.
    fn places(&self) -> Vec<usize> {
        let values = self.values.iter();
        let numbers: Option<Vec<usize>> = values.map(|value| parse_bytes(value).ok()).collect();
        numbers.unwrap_or_else(|| (1..=self.values.len()).collect())
    }
}

/// Adds the points of a measurement's runs to the curves; `points` are in the order of `runs`.
fn add(curves: &mut Curves, measure: &Measure, runs: &[Run], points: Vec<Points>) -> Result<()> {
    let mut found: Vec<Curve> = Vec::new();
    let places = measure.sweep.as_ref().map(Sweep::places);
    let many = places.as_ref().map_or(1, Vec::len);
    for (runs, points) in runs.chunks(many).zip(points.chunks(many)) {
        let points = match &places {
            None => points[0].clone(),
            Some(places) => {
                let values = points.iter().map(|points| match points.as_slice() {
                    [(_, value)] => Ok(*value),
                    several => bail!("{} has {} sizes in a sweep", measure.name, several.len()),
                });
                let values: Result<Vec<f64>> = values.collect();
                places.iter().copied().zip(values?).collect()
            }
        };
        found.push(Curve {
            label: runs[0].label.clone(),
            points,
        });
    }
    let swept = measure.sweep.as_ref().map(|sweep| sweep.values.clone());
    let known = curves.0.entry(measure.name.clone()).or_insert(Measured {
        benchmark: measure.benchmark,
        swept: swept.unwrap_or_default(),
        curves: Vec::new(),
    });
    for curve in found {
        match known.curves.iter_mut().find(|own| own.label == curve.label) {
            Some(own) => own.points.extend(curve.points),
            None => known.curves.push(curve),
        }
    }
    Ok(())
}

impl Run {
    /// A copy of this run, made on another machine.
    pub(crate) fn on(&self, fabric: &str) -> Run {
        Run {
            fabric: fabric.into(),
            ..self.clone()
        }
    }

    /// The number of steps by which the run advances a progress bar.
    pub(crate) fn steps(&self) -> Result<usize> {
        match self.benchmark.is_of_devices() || self.benchmark.is_of_hpl() {
            true => Ok(1),
            false => bench::modelled::steps(&self.experiment()?),
        }
    }

    /// Runs the benchmark, and returns a point for each size.
    pub(crate) fn run(&self, command: &Path, console: &mut Console) -> Result<Points> {
        if !self.benchmark.is_of_devices() {
            return Ok(bench::modelled::run(command, &self.experiment()?, console)?.points);
        }
        console.doing(format!("{}, {}", self.benchmark.name(), self.label));
        let mut points = Vec::new();
        match &self.sizes {
            None => points = self.perf(command, None)?,
            Some(list) => {
                for size in list.split(',') {
                    points.extend(self.perf(command, Some(size))?);
                }
            }
        }
        console.step();
        Ok(points)
    }

    fn experiment(&self) -> Result<Experiment> {
        let sizes = self.sizes.clone();
        ensure!(
            self.options.is_empty(),
            "{} takes no options of device benchmarks",
            self.benchmark.name()
        );
        Ok(Experiment {
            label: self.label.clone(),
            fabric: self.fabric.clone(),
            benchmark: self.benchmark.name(),
            ranks: self.ranks,
            ppn: self.ppn,
            sizes: sizes.with_context(|| format!("{} needs sizes", self.benchmark.name()))?,
            iterations: self.iterations,
            named: self.named,
            settings: self.settings.clone(),
            skew: self.skew,
        })
    }

    /// The medians that `fishplate perf` measures: at one size, or at all its sizes.
    fn perf(&self, command: &Path, size: Option<&str>) -> Result<Points> {
        let name = self.benchmark.name();
        let mut words = ["perf", name, "--fabric", &self.fabric, "--json"]
            .map(String::from)
            .to_vec();
        if let Some(size) = size {
            words.extend(["--size".into(), size.into()]);
        }
        words.extend(self.options.iter().cloned());
        let shown = format!("fishplate {}", words.join(" "));
        let said = child_guard::command(command)
            .args(&words)
            .output()
            .with_context(|| format!("cannot start {}", command.display()))?;
        if !said.status.success() {
            let why = String::from_utf8_lossy(&said.stderr);
            bail!("{shown} failed ({}): {}", said.status, why.trim());
        }
        let lines = serde_json::Deserializer::from_slice(&said.stdout).into_iter::<Value>();
        let mut points = Vec::new();
        for line in lines {
            let line = line.with_context(|| format!("{shown} printed no JSON"))?;
            if line["benchmark"] == name {
                let point = self.point(&line);
                points.push(point.with_context(|| format!("{shown} printed no figure"))?);
            }
        }
        Ok(points)
    }

    fn point(&self, line: &Value) -> Option<(usize, f64)> {
        let key = match self.reads {
            Reads::Median => "median",
            // A reliable transport has no such figure: all sent bytes are received.
            Reads::Received if line["received_rate"].is_null() => "median",
            Reads::Received => "received_rate",
        };
        let size = line["size"].as_u64()?;
        Some((size as usize, line[key].as_f64()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run {
            label: "one".into(),
            fabric: "qdr".into(),
            benchmark: Benchmark::SendBw,
            sizes: None,
            iterations: None,
            ranks: 2,
            ppn: 1,
            named: false,
            settings: Vec::new(),
            options: Vec::new(),
            reads: Reads::Received,
            hpl: None,
            skew: None,
        }
    }

    #[test]
    fn sweeps_change_ranks_options_or_settings() {
        let sweep = |over: &str, value: &str| {
            let sweep = Sweep {
                over: over.into(),
                values: Vec::new(),
            };
            sweep.applied(run(), value)
        };
        let pairs = sweep("pairs", "4");
        assert_eq!((pairs.ranks, pairs.ppn), (8, 4));
        assert_eq!(sweep("--mtu", "256").options, ["--mtu", "256"]);
        let settings = sweep("FISHPLATE_X", "1K").settings;
        assert_eq!(settings, [("FISHPLATE_X".into(), "1K".into())]);
    }

    #[test]
    fn swept_values_have_places() {
        let places = |values: &[&str]| {
            let values = values.iter().map(|value| value.to_string()).collect();
            Sweep {
                over: "--x".into(),
                values,
            }
            .places()
        };
        assert_eq!(places(&["1K", "16K"]), [1024, 16384]);
        assert_eq!(places(&["rc", "uc", "ud"]), [1, 2, 3]);
    }

    #[test]
    fn received_rates_are_those_of_the_receiver_if_it_has_its_own() {
        let line = |text: &str| run().point(&serde_json::from_str(text).unwrap());
        let unreliable = r#"{"size":2048,"median":3.0,"received_rate":2.0}"#;
        assert_eq!(line(unreliable), Some((2048, 2.0)));
        assert_eq!(line(r#"{"size":8,"median":3.0}"#), Some((8, 3.0)));
        assert_eq!(line(r#"{"size":8}"#), None);
    }

    #[test]
    fn machines_of_the_document_are_files_and_others_are_names() {
        let machine = Machine {
            name: "mine".into(),
            text: "[system.mine]\n".into(),
        };
        let machines = Machines::write(Path::new("true"), &[machine]).unwrap();
        assert_eq!(machines.word("qdr"), "qdr");
        let file = machines.word("mine");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "[system.mine]\n");
    }
}
