//! MPI benchmarks: plain MPI calls through any `libmpi_abi.so.1`, which is opened at run time.
//!
//! A driver ([`main`]) starts workers ([`worker::main`], a hidden subcommand of the same
//! executable) with the launcher of each library, in several rounds, and collects their results.
//!
//! Invariant: all libraries are called through one table of functions, timed by one
//! clock, and run in the same rounds as those that they are compared with.
//!
//! Never here: knowledge of our own library.

mod benchmark;
mod choices;
mod cli;
mod collectives;
mod explain;
mod ffi;
mod file_access;
mod file_folder;
mod files;
mod form;
mod job;
mod json;
mod kernels;
mod library;
mod limits;
mod measurement;
mod memory;
mod message;
pub mod modelled;
mod one_sided;
mod operation;
mod overlap;
mod plan;
mod plot;
mod procedure;
mod pt2pt;
mod remarks;
mod report;
mod rounds;
mod sizes;
mod table;
mod thresholds;
mod window_access;
pub mod worker;

use std::env;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use conditions::RunStart;

pub use cli::BenchArguments;
use cli::{BenchCommand, MeasureOptions, OutputOptions, ROUNDS};
use explain::Explained;
use measurement::{Measurement, merge};
use results::Console;
use results::arguments::usage;
use results::terminal::fitted;
use rounds::Rounds;

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
            show(&options.output, false, || {
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
            show(&options.output, false, || {
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
            if options.every.every_choice {
                return choices::run(&command, what, options);
            }
            let mut explained = Explained::default();
            show(&options.output, options.choice.modelled(), || {
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
        rounds: options.choice.rounds(ROUNDS),
        timeout: options.choice.timeout().map_err(usage)?,
    };
    let mut console = Console::new(rounds.steps(&cases));
    rounds.run(&cases, &mut console, |_| Ok(Vec::new()))
}

/// Measures, and shows the results in the form that the user chose. The conditions are those of
/// this computer, so they are omitted for a modelled machine.
fn show(
    output: &OutputOptions,
    is_modelled: bool,
    measure: impl FnOnce() -> Result<Vec<Measurement>>,
) -> Result<()> {
    // An output file that cannot be written is reported before minutes of measuring.
    let plot = output.plot.as_deref();
    let plot = plot.map(results::plot::PlotFile::create).transpose()?;
    let start = (!is_modelled).then(RunStart::now);
    let all = measure()?;
    let conditions = start.map(|start| conditions::after(start).0);
    let conditions = conditions.as_ref();
    let notes = remarks::lines(&all, conditions);
    let text: String = if output.json {
        let lines = all.iter().map(|one| json::json(one, conditions) + "\n");
        lines.collect()
    } else {
        let lines = notes.iter().map(|line| line.clone() + "\n");
        fitted(&(table::render(&all) + &lines.collect::<String>()))
    };
    stdout()
        .write_all(text.as_bytes())
        .context("cannot write the results")?;
    let date = conditions.map(|conditions| conditions.machine.date.clone());
    plot.map_or(Ok(()), |file| plot::draw(&all, date, &notes, file))
}
