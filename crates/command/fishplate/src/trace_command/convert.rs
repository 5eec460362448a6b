//! `fishplate trace import` and `export`: traces of other tools, and traces for them.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use trace::{Trace, goal, time_independent};

use super::written;
use crate::output::Output;
use crate::trace_file::read;

/// A format whose traces can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// Schedules of LogGOPSim and ATLAHS, as text
    Goal,
    /// Time-independent traces of SimGrid (SMPI)
    Simgrid,
}

/// A format in which traces can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// Schedules of LogGOPSim and ATLAHS, as text
    Goal,
}

#[derive(Args)]
pub(super) struct ImportArguments {
    /// The files: a schedule; or one for all ranks, one for each rank, or a list of their names
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The format
    #[arg(long, value_name = "FORMAT")]
    from: From,

    /// The operations that a rank computes in a second, such as 2.5Gflop/s: traces of SimGrid count
    /// operations
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,

    /// The file to write
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Args)]
pub(super) struct ExportArguments {
    /// The trace
    file: PathBuf,

    /// The format
    #[arg(long, value_name = "FORMAT")]
    to: To,

    /// The file to write
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,
}

/// Parses a rate of computing with its unit, into operations a second.
fn rate(word: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 5] = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)];
    let number = ["flop/s", "flops", "f"]
        .iter()
        .find_map(|unit| word.strip_suffix(unit));
    let parsed = number.and_then(|number| {
        let prefix = UNITS.iter().find(|(prefix, _)| number.ends_with(prefix))?;
        let digits = number.strip_suffix(prefix.0)?.trim();
        Some(digits.parse::<f64>().ok()? * prefix.1)
    });
    let parsed = parsed.filter(|rate| (1.0..=1e18).contains(rate));
    parsed.ok_or("valid are a number and a unit, such as 2.5Gflop/s, 1Gf or 800Mflop/s".into())
}

pub(super) fn import(arguments: &ImportArguments) -> Result<String, String> {
    let program = |format: &str| format!("trace import from {format}");
    let trace = match arguments.from {
        From::Goal => {
            if arguments.rate.is_some() {
                return Err("--rate: GOAL counts nanoseconds, not operations".into());
            }
            let [file] = arguments.files.as_slice() else {
                return Err("a schedule of GOAL is one file".into());
            };
            let read = goal::read(&text(file)?, program("GOAL"));
            read.map_err(|why| format!("{}: {why}", file.display()))?
        }
        From::Simgrid => {
            let files = listed(&arguments.files)?;
            let texts = files.iter().map(|file| text(file));
            let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
            let names: Vec<String> = files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            let pairs = names.iter().zip(&texts);
            let pairs: Vec<_> = pairs
                .map(|(name, text)| (name.as_str(), text.as_str()))
                .collect();
            time_independent::read(&pairs, arguments.rate, program("SimGrid"))?
        }
    };
    replay::check(&trace)?;
    written(&arguments.output, &trace)?;
    let ranks = trace.ranks.len();
    Ok(format!("{ranks} ranks, {} calls\n", calls(&trace)))
}

fn calls(trace: &Trace) -> u64 {
    trace.ranks.iter().map(|rank| rank.gaps.count()).sum()
}

fn text(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))
}

/// The files with actions of a trace. A file that lists other files is replaced by these.
fn listed(files: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let [file] = files else {
        return Ok(files.to_vec());
    };
    let text = text(file)?;
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let names: Vec<&str> = lines.collect();
    // An action has two words at least.
    if names.iter().any(|name| name.contains(char::is_whitespace)) {
        return Ok(files.to_vec());
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    Ok(names.iter().map(|name| folder.join(name)).collect())
}

pub(super) fn export(arguments: &ExportArguments) -> Result<String, String> {
    let trace = read(&arguments.file)?;
    let text = match arguments.to {
        To::Goal => goal::write(&trace, &replay::size_of),
    };
    let text = text.map_err(|why| format!("{}: {why}", arguments.file.display()))?;
    let output = Output::create("--output", &arguments.output)?;
    output.fill(|to| to.write_all(text.as_bytes()).map(|()| None))?;
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn a_rate_has_a_unit() {
        assert_eq!(rate("2.5Gflop/s"), Ok(2.5e9));
        assert_eq!(rate("1Gf"), Ok(1e9));
        assert_eq!(rate("800 Mflops"), Ok(8e8));
        assert_eq!(rate("7flop/s"), Ok(7.0));
        for wrong in ["2.5", "1e9", "0Gf", "fast", "Gflop/s"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
