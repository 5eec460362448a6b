//! Studies: the experiments of published papers, run again on modelled machines, published figures beside predicted ones.
//!
//! An experiment is a job of real ranks on a modelled machine: the library, the launcher and the benchmarks that users run.
//! What must always hold: a figure is either published, and stands in `data/` with where it comes from, or predicted, and
//! then it comes out of a run; nothing is fitted here.

mod claims;
mod rdma_channel;

use std::env;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use claims::{Findings, Scored};

/// Run the experiments of a paper again, and hold what comes out against what was published.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fishplate study rdma-channel --out plots")]
pub struct StudyArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// MPICH2's RDMA channel over InfiniBand (2003): four designs, and a rendezvous one level up
    #[command(after_help = "Example:\n  fishplate study rdma-channel --json")]
    RdmaChannel(Output),
}

#[derive(Debug, Args)]
struct Output {
    /// Print one JSON object a line for each published figure
    #[arg(long)]
    json: bool,
    /// Draw the curves into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// `fishplate study …`. The executable that calls this must also answer to `run`, `perf` and the worker of `bench`.
pub fn main(arguments: &StudyArguments) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fishplate study: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &StudyArguments) -> Result<()> {
    let command = env::current_exe().context("cannot tell where this command is")?;
    let What::RdmaChannel(output) = &arguments.what;
    let results = rdma_channel::run(&command)?;
    let scored = results.paper.score(&results);
    let mut text = match output.json {
        true => lines(&scored)?,
        false => format!("{}\n{}", curves(&results), table(&scored)),
    };
    if let Some(folder) = &output.out {
        let files = results.draw(folder)?;
        if !output.json {
            for file in files {
                text += &format!("{}\n", file.display());
            }
        }
    }
    stdout()
        .write_all(text.as_bytes())
        .context("cannot write the results")
}

fn lines(scored: &[Scored]) -> Result<String> {
    let lines = scored.iter().map(serde_json::to_string);
    Ok(lines
        .map(|line| Ok(line? + "\n"))
        .collect::<Result<Vec<_>>>()?
        .concat())
}

fn plain(header: Vec<String>) -> Table {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(line));
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

/// What each design reaches.
fn curves(results: &rdma_channel::Results) -> String {
    let header = [
        "design",
        "latency, us",
        "peak, MB/s",
        "LU, ms",
        "IS, ms",
        "",
    ];
    let mut table = plain(header.map(String::from).to_vec());
    for design in &results.paper.designs {
        let number = |value: Option<f64>, digits| {
            value.map_or("-".into(), |value| format!("{value:.digits$}"))
        };
        let mut row = vec![
            design.name.clone(),
            number(results.latency(&design.name), 2),
            number(results.peak(&design.name), 0),
        ];
        let times = results.times(&design.name).into_iter();
        row.extend(times.map(|time| number(time.map(|time| time / 1e3), 2)));
        row.push(design.about.clone());
        table.add_row(row);
    }
    right(&mut table, &[1, 2, 3, 4]);
    format!("{table}\n")
}

fn table(scored: &[Scored]) -> String {
    let header = [
        "claim",
        "",
        "published",
        "predicted",
        "unit",
        "error",
        "verdict",
        "role",
    ];
    let mut table = plain(header.map(String::from).to_vec());
    for row in scored {
        let shown = |value: f64| match row.unit.as_str() {
            "MB/s" | "B" => format!("{value:.0}"),
            _ => format!("{value:.2}"),
        };
        table.add_row([
            row.claim.clone(),
            row.about.clone(),
            shown(row.published),
            row.predicted.map_or("-".into(), shown),
            row.unit.clone(),
            row.error_percent
                .map_or("-".into(), |error| format!("{error:+.1} %")),
            row.verdict.name().into(),
            row.role.name().into(),
        ]);
    }
    right(&mut table, &[2, 3, 5]);
    format!("{table}\n")
}

fn right(table: &mut Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
