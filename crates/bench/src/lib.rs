//! MPI benchmarks: plain MPI calls through any `libmpi_abi.so.1`, which is opened at run time.
//!
//! A driver ([`main`]) starts workers ([`worker::main`], a hidden subcommand of the same
//! executable) with the launcher of each library, round by round, and collects their results.
//!
//! Invariant: all libraries are called through one table of functions, timed by one
//! clock, and run in the same rounds as those that they are compared with.

mod cli;
mod collectives;
mod explain;
mod ffi;
mod job;
mod kernels;
mod library;
mod limits;
mod memory;
mod message;
pub mod modelled;
mod operation;
mod overlap;
mod plan;
mod plot;
mod procedure;
mod pt2pt;
mod report;
mod rounds;
mod sizes;
mod table;
mod thresholds;
pub mod worker;

use std::env;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

pub use cli::BenchArguments;
use cli::{BenchCommand, MeasureOptions, OutputOptions};
use explain::Explained;
use results::Console;
use results::arguments::usage;
use rounds::{Measurement, Rounds, merge};

/// Runs `fishplate bench` with these arguments. The executable that calls this function must also
/// provide the subcommand [`worker::SUBCOMMAND`].
pub fn main(arguments: &BenchArguments) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => results::arguments::report_failure(&error),
    }
}

fn run(arguments: &BenchArguments) -> Result<()> {
    let command = env::current_exe().context("cannot find the path of this command")?;
    match &arguments.what {
        BenchCommand::Limits(options) => {
            let rounds = options.rounds as usize;
            show(&options.output, || {
                let mut console = Console::new(limits::STEPS * rounds);
                let mut all = Vec::new();
                for _ in 0..rounds {
                    merge(&mut all, limits::measure(&command, &mut console)?);
                }
                Ok(all)
            })
        }
        BenchCommand::Table(options) => {
            let (mut missed, mut rules) = (0, 0);
            show(&options.output, || {
                let report = report::run(&command, options)?;
                (missed, rules) = (report.missed, report.rules);
                Ok(report.all)
            })?;
            if options.check && missed > 0 {
                bail!("{missed} of {rules} thresholds are missed");
            }
            Ok(())
        }
        what => {
            let options = what.options().expect("the others are benchmarks");
            let mut explained = Explained::default();
            show(&options.output, || {
                measure(&command, what, options, &mut explained)
            })?;
            explained.show()
        }
    }
}

fn measure(
    command: &Path,
    what: &BenchCommand,
    options: &MeasureOptions,
    explained: &mut Explained,
) -> Result<Vec<Measurement>> {
    let cases = what.cases().map_err(usage)?;
    let mut libraries = options.choice.libraries(command).map_err(usage)?;
    if options.explain {
        *explained = Explained::by(&mut libraries, options.output.json)?;
    }
    let rounds = Rounds {
        command,
        libraries: &libraries,
        rounds: options.choice.rounds(),
        timeout: options.choice.timeout().map_err(usage)?,
    };
    let mut console = Console::new(rounds.steps(&cases));
    rounds.run(&cases, &mut console, |_| Ok(Vec::new()))
}

fn show(output: &OutputOptions, measure: impl FnOnce() -> Result<Vec<Measurement>>) -> Result<()> {
    let plot = output.plot.as_deref();
    // A wrong file name is reported before minutes of measuring.
    plot.map(results::plot::ImageFormat::of)
        .transpose()
        .map_err(usage)?;
    let all = measure()?;
    let text = if output.json {
        all.iter()
            .map(|measurement| measurement.json() + "\n")
            .collect()
    } else {
        table::render(&all)
    };
    stdout()
        .write_all(text.as_bytes())
        .context("cannot write the results")?;
    plot.map_or(Ok(()), |path| plot::draw(&all, path))
}
