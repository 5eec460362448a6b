//! HPL on modelled machines, without its computing: the kernel of `examples/kernels`, compiled with
//! the `mpicc` in the folder of this command. Its computing takes the time that follows from the
//! document's rates.
//!
//! The sources are part of this program, so an installed tree is complete without them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::{self, available_parallelism};

use anyhow::{Context, Result, anyhow, bail};
use child_guard::WatchedFolder;
use results::Console;
use serde_json::Value;

use crate::benchmark::Benchmark;
use crate::document::HplSystem;
use crate::experiments::Run;

macro_rules! sources {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../../examples/kernels/", $name)))),*]
    };
}

const SOURCES: [(&str, &str); 8] = sources!(
    "hpl.c",
    "hpl_blas.h",
    "hpl_folded.h",
    "hpl_layout.h",
    "hpl_panel.h",
    "hpl_swap.h",
    "hpl_time.h",
    "kernel.h"
);

/// The compiled kernel, and the results of its runs. One run gives several figures.
#[derive(Default)]
pub(crate) struct Hpl {
    folder: Option<Result<WatchedFolder, String>>,
    found: Vec<(Job, Figures)>,
}

/// The figures that a run of the kernel `hpl` printed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    milliseconds: f64,
    /// The share of computing in the time of all ranks together, in percent.
    computing: f64,
}

impl Hpl {
    /// Compiles the kernel, unless that is done. The inner error is the reason why this computer
    /// cannot compile it.
    pub(crate) fn prepare(&mut self, command: &Path) -> Result<Result<(), String>> {
        if self.folder.is_none() {
            self.folder = Some(compile(command)?);
        }
        Ok(match &self.folder {
            Some(Err(why)) => Err(why.clone()),
            _ => Ok(()),
        })
    }

    /// Runs the kernel for these runs, several jobs at once. Runs with the same machine and linear
    /// system share one job.
    pub(crate) fn solve(
        &mut self,
        command: &Path,
        runs: &[&Run],
        console: &mut Console,
    ) -> Result<()> {
        let Some(Ok(folder)) = &self.folder else {
            return Ok(());
        };
        let folder = folder.path();
        let mut jobs: Vec<Job> = Vec::new();
        for run in runs {
            let job = Job::new(run, format!("summary-{}.json", jobs.len()));
            jobs.extend(job.filter(|job| !jobs.iter().any(|other| other.is_same(job))));
        }
        // A job uses only one core, because its ranks run one at a time.
        let cores = available_parallelism().map_or(1, usize::from);
        for jobs in jobs.chunks(cores) {
            let names = jobs.iter().map(|job| job.fabric.as_str());
            console.doing(format!("hpl, {}", names.collect::<Vec<_>>().join(" and ")));
            let figures: Vec<_> = thread::scope(|scope| {
                let started = jobs
                    .iter()
                    .map(|job| scope.spawn(|| job.figures(command, folder)));
                let started: Vec<_> = started.collect();
                started.into_iter().map(|job| job.join()).collect()
            });
            for (job, figures) in jobs.iter().zip(figures) {
                let figures = figures.map_err(|_| anyhow!("a run of hpl ended early"))??;
                self.found.push((job.clone(), figures));
            }
        }
        Ok(())
    }

    /// The only point of the curve that a run of HPL adds to: the order of the linear system, and
    /// the time or the share of computing.
    pub(crate) fn point(&self, run: &Run) -> Result<Vec<(usize, f64)>> {
        let found = Job::new(run, String::new()).and_then(|job| {
            let mut found = self.found.iter();
            let (_, figures) = found.find(|(other, _)| other.is_same(&job))?;
            let value = match run.benchmark {
                Benchmark::Hpl => figures.milliseconds,
                _ => figures.computing,
            };
            Some(vec![(job.order, value)])
        });
        found.with_context(|| format!("{} was not run", run.benchmark.name()))
    }
}

/// A run of the kernel `hpl`: its linear system, machine and settings.
#[derive(Clone, Debug)]
struct Job {
    system: HplSystem,
    order: usize,
    fabric: String,
    named: bool,
    settings: Vec<(String, String)>,
    /// The name of the file to which the job's summary is written.
    summary: String,
}

impl Job {
    /// The job of a run; `None`: the run does not use this kernel.
    fn new(run: &Run, summary: String) -> Option<Job> {
        let (system, order) = run.hpl.clone()?;
        Some(Job {
            system,
            order,
            fabric: run.fabric.clone(),
            named: run.named,
            settings: run.settings.clone(),
            summary,
        })
    }

    /// True if both jobs have the same results.
    fn is_same(&self, other: &Job) -> bool {
        let of = |job: &Job| (job.order, job.named);
        of(self) == of(other)
            && self.system == other.system
            && self.fabric == other.fabric
            && self.settings == other.settings
    }

    /// The command line of the kernel.
    fn kernel(&self) -> String {
        let HplSystem {
            block,
            grid,
            gflops,
            ..
        } = &self.system;
        let [rows, columns] = grid;
        let order = self.order;
        format!("./hpl {order} {block} {rows} {columns} --skeleton --gflops {gflops}")
    }

    /// The arguments with which `fishplate` runs the job.
    fn words(&self) -> Vec<String> {
        let ranks = self.system.grid[0] * self.system.grid[1];
        let predict = match self.named {
            true => "named",
            false => "own",
        };
        let placed = format!(
            "run -n {ranks} --ppn {} --predict {predict}",
            self.system.ppn
        );
        let summary = format!("--summary json={}", self.summary);
        let mut words: Vec<String> = split(&placed).chain(split(&summary)).collect();
        words.extend(["--fabric".into(), self.fabric.clone()]);
        for (name, value) in &self.settings {
            words.extend(["-x".into(), format!("{name}={value}")]);
        }
        words.extend(split(&self.kernel()));
        words
    }

    fn figures(&self, command: &Path, folder: &Path) -> Result<Figures> {
        let out = said(command, folder, &self.words())?;
        let seconds =
            seconds(&out).with_context(|| format!("the kernel hpl printed no time: {out}"))?;
        let file = folder.join(&self.summary);
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let summary = serde_json::from_slice(&text).context("cannot read a summary")?;
        Ok(Figures {
            milliseconds: seconds * 1e3,
            computing: computing(&summary).context("a summary has no times of ranks")?,
        })
    }
}

/// Compiles the kernel in a new folder. The inner error is the reason why this is impossible.
fn compile(command: &Path) -> Result<Result<WatchedFolder, String>> {
    let folder = WatchedFolder::new(command).context("cannot make a folder for the kernel hpl")?;
    for (name, text) in SOURCES {
        let file = folder.path().join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let mpicc: PathBuf = command.with_file_name("mpicc");
    let built = Command::new(&mpicc)
        .args(["-std=c11", "-O2", "-o", "hpl", "hpl.c", "-lm"])
        .current_dir(folder.path())
        .output();
    Ok(match built {
        Ok(built) if built.status.success() => Ok(folder),
        Ok(built) => Err(format!(
            "{} cannot compile the kernel hpl; it needs a C compiler: {}",
            mpicc.display(),
            last_line(&built)
        )),
        Err(why) => Err(format!(
            "the kernel hpl needs {}, which cannot be started: {why}",
            mpicc.display()
        )),
    })
}

fn split(words: &str) -> impl Iterator<Item = String> {
    words.split_whitespace().map(String::from)
}

/// The time in seconds from the kernel's output line `HPL … on 8 x 10 ranks: 6.5 s, …`. `None`:
/// there is no such line.
fn seconds(out: &str) -> Option<f64> {
    let line = out.lines().find(|line| line.starts_with("HPL"))?;
    let (time, _) = line.split_once("ranks: ")?.1.split_once(" s")?;
    time.parse().ok()
}

/// The share of computing in the time of all ranks together, in percent; `None` if the summary
/// lacks the times.
fn computing(summary: &Value) -> Option<f64> {
    let ranks = summary["per_rank"].as_array()?;
    let of = |key: &str| -> Option<f64> { ranks.iter().map(|rank| rank[key].as_f64()).sum() };
    let (computing, communicating) = (of("compute_s")?, of("mpi_s")?);
    Some(100.0 * computing / (computing + communicating))
}

/// The standard output of `fishplate`, run with these arguments.
fn said(command: &Path, folder: &Path, words: &[String]) -> Result<String> {
    let shown = format!("fishplate {}", words.join(" "));
    let ran = child_guard::command(command)
        .args(words)
        .current_dir(folder)
        .output()
        .with_context(|| format!("cannot start {}", command.display()))?;
    if !ran.status.success() {
        bail!("{shown} failed ({}): {}", ran.status, last_line(&ran));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn last_line(ran: &Output) -> String {
    let text = String::from_utf8_lossy(&ran.stderr);
    text.trim().lines().last().unwrap_or("no reason").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_from_the_kernels_line() {
        let out = "HPL skeleton N 2000 NB 192 on 4 x 2 ranks: 0.019347 s, 275.975 Gflop/s\n";
        assert_eq!(seconds(out), Some(0.019347));
        assert_eq!(seconds("no line"), None);
    }

    #[test]
    fn the_share_of_computing_is_that_of_all_ranks() {
        let summary =
            r#"{"per_rank":[{"mpi_s":1.0,"compute_s":3.0},{"mpi_s":3.0,"compute_s":5.0}]}"#;
        let share = computing(&serde_json::from_str(summary).unwrap());
        assert_eq!(share, Some(100.0 * 8.0 / 12.0));
        assert_eq!(computing(&Value::Null), None);
    }

    #[test]
    fn without_mpicc_the_reason_is_given() {
        let nowhere = Path::new("/nowhere/bin/fishplate");
        let why = Hpl::default().prepare(nowhere).unwrap().unwrap_err();
        assert!(why.contains("/nowhere/bin/mpicc"), "{why}");
    }
}
