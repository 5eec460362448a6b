//! HPL on modelled machines, without its computing: the kernel of `examples/kernels`, compiled by
//! the `mpicc` beside this command. Its computing takes the time that the stated rates give.
//!
//! The sources are part of this program, so an installed tree needs no others.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use results::Console;
use serde_json::Value;
use tempfile::TempDir;

use crate::benchmark::Benchmark;
use crate::document::HplSystem;
use crate::experiments::Run;

macro_rules! sources {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../examples/kernels/", $name)))),*]
    };
}

const SOURCES: [(&str, &str); 8] = sources!(
    "hpl.c",
    "hpl_blas.h",
    "hpl_folded.h",
    "hpl_layout.h",
    "hpl_panel.h",
    "hpl_swap.h",
    "hpl_trace.h",
    "kernel.h"
);

/// The compiled kernel, and the results of its runs: one run gives several figures.
#[derive(Default)]
pub(crate) struct Hpl {
    folder: Option<Result<TempDir, String>>,
    found: BTreeMap<Vec<String>, Figures>,
}

/// The figures of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    milliseconds: f64,
    /// The share of their time that the ranks compute, in percent; their mean.
    computing: f64,
}

impl Hpl {
    /// Compiles the kernel, unless that is done. The inner error is the reason that this machine
    /// has no means to.
    pub(crate) fn prepare(&mut self, command: &Path) -> Result<Result<(), String>> {
        if self.folder.is_none() {
            self.folder = Some(compile(command)?);
        }
        Ok(match &self.folder {
            Some(Err(why)) => Err(why.clone()),
            _ => Ok(()),
        })
    }

    /// Runs it on the machine of `run`, and returns the point of its benchmark.
    pub(crate) fn run(
        &mut self,
        command: &Path,
        run: &Run,
        console: &mut Console,
    ) -> Result<Vec<(usize, f64)>> {
        console.doing(format!("{}, {}", run.benchmark.name(), run.label));
        let (Some((system, order)), Some(Ok(folder))) = (&run.hpl, &self.folder) else {
            bail!("{} needs a system to solve", run.benchmark.name());
        };
        let words = words(system, *order, run);
        let figures = match self.found.get(&words) {
            Some(known) => *known,
            None => {
                write_trace(command, folder.path(), system, *order)?;
                solve(command, folder.path(), &words)?
            }
        };
        self.found.insert(words, figures);
        console.step();
        let value = match run.benchmark {
            Benchmark::Hpl => figures.milliseconds,
            _ => figures.computing,
        };
        Ok(vec![(*order, value)])
    }
}

/// Compiles the kernel in a folder of its own.
fn compile(command: &Path) -> Result<Result<TempDir, String>> {
    let folder = TempDir::new().context("cannot make a folder for the kernel hpl")?;
    for (name, text) in SOURCES {
        let file = folder.path().join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let mpicc: PathBuf = command.with_file_name("mpicc");
    let built = Command::new(&mpicc)
        .args(["-std=c11", "-O2", "-o", "hpl", "hpl.c", "-lm"])
        .current_dir(&folder)
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

/// The kernel and its own arguments.
fn kernel(system: &HplSystem, order: usize) -> String {
    let HplSystem {
        block,
        grid: [rows, columns],
        ..
    } = system;
    format!("./hpl {order} {block} {rows} {columns} --skeleton")
}

fn split(words: &str) -> impl Iterator<Item = String> {
    words.split_whitespace().map(String::from)
}

const TRACE: &str = "hpl.trace";
const SUMMARY: &str = "summary.json";

/// The arguments of `fishplate` for a run.
fn words(system: &HplSystem, order: usize, run: &Run) -> Vec<String> {
    let ranks = system.grid[0] * system.grid[1];
    let predict = match run.named {
        true => "named",
        false => "own",
    };
    let placed = format!("run -n {ranks} --ppn {} --predict {predict}", system.ppn);
    let files = format!("--compute replay {TRACE} --summary json={SUMMARY}");
    let mut words: Vec<String> = split(&placed).chain(split(&files)).collect();
    words.extend(["--fabric".into(), run.fabric.clone()]);
    for (name, value) in &run.settings {
        words.extend(["-x".into(), format!("{name}={value}")]);
    }
    words.extend(split(&kernel(system, order)));
    words
}

/// Writes the time of computing before each call of each rank.
fn write_trace(command: &Path, folder: &Path, system: &HplSystem, order: usize) -> Result<()> {
    let kernel = kernel(system, order);
    let gflops = &system.gflops;
    let words = format!("run -n 1 {kernel} --gflops {gflops} --write-trace {TRACE}");
    said(command, folder, &split(&words).collect::<Vec<_>>()).map(drop)
}

fn solve(command: &Path, folder: &Path, words: &[String]) -> Result<Figures> {
    let out = said(command, folder, words)?;
    let seconds =
        seconds(&out).with_context(|| format!("the kernel hpl printed no time: {out}"))?;
    let file = folder.join(SUMMARY);
    let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let summary = serde_json::from_slice(&text).context("cannot read a summary")?;
    Ok(Figures {
        milliseconds: seconds * 1e3,
        computing: computing(&summary).context("a summary has no times of ranks")?,
    })
}

/// The seconds in the kernel's line: `HPL … on 8 x 10 ranks: 6.5 s, …`.
fn seconds(out: &str) -> Option<f64> {
    let line = out.lines().find(|line| line.starts_with("HPL"))?;
    let (time, _) = line.split_once("ranks: ")?.1.split_once(" s")?;
    time.parse().ok()
}

/// The mean share of computing in the time of the ranks, in percent.
fn computing(summary: &Value) -> Option<f64> {
    let ranks = summary["per_rank"].as_array()?;
    let of = |key: &str| -> Option<f64> { ranks.iter().map(|rank| rank[key].as_f64()).sum() };
    let (computing, communicating) = (of("compute_s")?, of("mpi_s")?);
    Some(100.0 * computing / (computing + communicating))
}

/// The output of `fishplate` with these arguments.
fn said(command: &Path, folder: &Path, words: &[String]) -> Result<String> {
    let shown = format!("fishplate {}", words.join(" "));
    let ran = Command::new(command)
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
