//! Studies: the experiments of published papers, run again on modelled machines. Reports show
//! published figures beside predicted ones.
//!
//! An experiment is a job of real ranks on a modelled machine: the library, the launcher and the
//! benchmarks that users run.
//!
//! Study must always hold: a figure is either published, and is part of `data/` with its reference,
//! or predicted by a run. Nothing is fitted here.

mod claims;
mod dual_rail;
mod rdma_channel;
mod report;
mod verbs;

use std::env;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

/// Run the experiments of a paper again, and compare the results with the published figures.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fishplate study rdma-channel --out plots")]
pub struct StudyArguments {
    #[command(subcommand)]
    study: Study,
}

#[derive(Debug, Subcommand)]
enum Study {
    /// MPICH2's RDMA channel over InfiniBand (2003): four designs, and a rendezvous above the
    /// channel
    #[command(after_help = "Example:\n  fishplate study rdma-channel --json")]
    RdmaChannel(OutputOptions),
    /// Is dual-rail QDR better than FDR? MVAPICH's policies of rails, and this library's, by size
    #[command(after_help = "Example:\n  fishplate study dual-rail --out plots")]
    DualRail(DualRailOptions),
}

#[derive(Debug, Args)]
struct DualRailOptions {
    #[command(flatten)]
    output: OutputOptions,
    /// Measure only sizes around the thresholds of the protocols
    #[arg(long)]
    quick: bool,
}

#[derive(Debug, Args)]
struct OutputOptions {
    /// Print one JSON object per line for each published figure
    #[arg(long)]
    json: bool,
    /// Draw the curves as SVG files into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Runs `fishplate study` with these arguments. The executable that calls this function must also
/// provide the subcommands `run`, `perf` and `bench`'s worker.
pub fn main(arguments: &StudyArguments) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let why = results::arguments::without_error_numbers(&format!("{error:#}"));
            eprintln!("fishplate study: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &StudyArguments) -> Result<()> {
    let command = env::current_exe().context("cannot find the path of this command")?;
    match &arguments.study {
        Study::RdmaChannel(output) => {
            let results = rdma_channel::run(&command)?;
            let scored = results.paper.score(&results);
            let text = match output.json {
                true => report::json(&scored)?,
                false => format!("{}\n{}", report::curves(&results), report::claims(&scored)),
            };
            output.write(text, |folder| results.draw(folder))
        }
        Study::DualRail(DualRailOptions { output, quick }) => {
            let results = dual_rail::run(&command, *quick)?;
            let text = match output.json {
                true => dual_rail::json(&results)?,
                false => dual_rail::text(&results),
            };
            output.write(text, |folder| dual_rail::draw(&results, folder))
        }
    }
}

impl OutputOptions {
    /// Draws the curves if a folder is named, and prints the results.
    fn write(
        &self,
        mut text: String,
        draw: impl FnOnce(&Path) -> Result<Vec<PathBuf>>,
    ) -> Result<()> {
        if let Some(folder) = &self.out {
            let files = draw(folder)?;
            if !self.json {
                text.extend(files.iter().map(|file| format!("{}\n", file.display())));
            }
        }
        stdout()
            .write_all(text.as_bytes())
            .context("cannot write the results")
    }
}
