//! Studies: the experiments of published documents, run again on modelled machines. Reports compare
//! published figures with predicted ones.
//!
//! An experiment is a job of real ranks on a modelled machine: the library, the launcher and the
//! benchmarks that users run; or a benchmark of devices without MPI. All studies have one form: a
//! file of `data/` holds the machines, the measurements and the statements of a document, with a
//! role and checks for each statement.
//!
//! Invariant: a figure is either published, and is part of `data/` with its reference,
//! or predicted by a run. Nothing is fitted here.
//!
//! Never here: transport code.

mod answer;
mod benchmark;
pub mod calibrate;
mod check;
mod curves;
mod document;
mod experiments;
mod hpl;
mod outcome;
mod page;
mod pictures;
mod remark;
mod score;
mod scoreboard;
mod show;
mod traced;
mod verdict;

use std::env;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use model::placement::PlacementRule;
use results::arguments::{report_failure, whole_number};
use results::output::OutputFile;
use results::report::Page;

use crate::experiments::Effort;
use crate::outcome::{Results, STUDIES};
use scoreboard::Scoreboard;

/// Run the experiments of published documents again, and compare the results with the published
/// figures.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  fishplate study edr --quick\n  fishplate study all --out plots\n  fishplate study score mine.csv --fabrics mine.toml\n  fishplate study dual-rail --trace program.trace"
)]
pub struct StudyArguments {
    #[command(subcommand)]
    study: Study,
}

#[derive(Debug, Subcommand)]
enum Study {
    /// Is dual-rail QDR better than FDR? MVAPICH's policies of rails, and this library's, by size
    #[command(after_help = "Example:\n  fishplate study dual-rail --out plots")]
    DualRail(OutputOptions),
    /// FDR and EDR: latency, bandwidth, message rate of one pair of ranks and of many
    #[command(after_help = "Example:\n  fishplate study edr --quick")]
    Edr(EdrOptions),
    /// MPICH2's RDMA channel over InfiniBand (2003): four designs, and a rendezvous above the
    /// channel
    #[command(after_help = "Example:\n  fishplate study rdma-channel --json")]
    RdmaChannel(OutputOptions),
    /// PCI Express Gen2 and Gen3, with QDR and FDR
    #[command(after_help = "Example:\n  fishplate study pcie --out plots")]
    Pcie(OutputOptions),
    /// SDR, DDR and QDR: switch and cables, transports, shared receive queue, MTU
    #[command(after_help = "Example:\n  fishplate study generations --json")]
    Generations(OutputOptions),
    /// All studies, and the verdicts on all their statements
    #[command(after_help = "Example:\n  fishplate study all --quick\n  fishplate study all --json")]
    All(OutputOptions),
    /// Predict any published figures, and sum up the errors by kind
    #[command(after_help = SCORE)]
    Score(ScoreOptions),
    /// Write the page of all scores (docs/figures/scores.md), or parts of it
    #[command(
        after_help = "Example:\n  fishplate study scores > docs/figures/scores.md\n  fishplate study scores --part figures"
    )]
    Scores(PageOptions),
}

const SCORE: &str = "\
FILE.csv has a line for each figure, and a first line with the names of the columns, among them
  id         any name of the figure
  test       osu_latency, osu_bw, osu_bibw, osu_mbw_mr, ib_write_lat, ib_write_lat_noinl, ib_read_lat,
             ib_send_lat, ib_write_bw, ib_read_bw, ib_send_bw, ib_write_bibw, ib_read_bibw, ib_send_bibw,
             osu_allgather, osu_allreduce, osu_alltoall, osu_bcast, osu_gather, osu_reduce, osu_scatter,
             ipoib_tcp_lat, ipoib_tcp_bw (sockets over IP over InfiniBand, in the driver's usual mode)
  model_cfg  a system of FILE.toml or of the catalogue
  msg_size   bytes, or small or large
  value      the published figure
  unit       us, MB/s, GB/s, Gb/s, M msg/s, or x for a quotient
and may have
  pairs      pairs of processes between two hosts, for osu_mbw_mr [default 1]
  ranks      processes of a collective operation [default 2]
  ppn        of which on each host [default 1]
  over       with the unit x: the system whose figure is below the line
FILE.toml has the form of files for --fabric, and may hold several systems.

Example:
  fishplate study score
  fishplate study score mine.csv --fabrics mine.toml --json
  fishplate study score --own
  fishplate study score --unseen
  fishplate study score --anchors
  fishplate study score --congestion --only taurus --placements 1
  fishplate study score --dahu --orders 50000";

#[derive(Debug, Args)]
struct OutputOptions {
    /// Measure fewer sizes
    #[arg(long)]
    quick: bool,
    /// Begin the iterations of every second rank later by this many microseconds, in the
    /// benchmarks whose ranks do not wait for each other: bibw, sweep, sort and collectives
    #[arg(long, value_name = "MICROSECONDS", value_parser = skew)]
    skew: Option<f64>,
    /// Print one JSON object per line for each statement
    #[arg(long)]
    json: bool,
    /// Draw the curves as SVG files into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write a page with all results, which needs no network
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Replay this trace on the machines of the document, with its settings, in place of its
    /// experiments
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "skew", "out", "report"])]
    trace: Option<PathBuf>,
    /// Ranks of the trace on each host
    #[arg(long, value_name = "RANKS", requires = "trace", default_value_t = 1,
        value_parser = |word: &str| whole_number::<usize>(word, 1..=1 << 20))]
    ppn: usize,
}

#[derive(Debug, Args)]
struct EdrOptions {
    #[command(flatten)]
    output: OutputOptions,
    /// Order of the system that HPL solves [default: 60000]. The processor time grows with it:
    /// 60000 takes four times as long as 20000
    #[arg(long, value_name = "N", conflicts_with_all = ["quick", "trace"],
        value_parser = |word: &str| whole_number::<usize>(word, 1_000..=1_000_000))]
    hpl: Option<usize>,
}

#[derive(Debug, Args)]
struct ScoreOptions {
    /// Published figures [default: those of this project]
    #[arg(value_name = "FILE.csv")]
    figures: Option<PathBuf>,
    /// Their machines [default: those of this project]
    #[arg(long, value_name = "FILE.toml")]
    fabrics: Option<PathBuf>,
    /// Predict this library in place of the one that a machine names
    #[arg(long, conflicts_with = "anchors")]
    own: bool,
    /// Calibrate each machine by three of its figures, and sum up the errors of the others
    #[arg(long)]
    anchors: bool,
    /// Sum up the errors on systems from which no value of the catalogue was inferred, beside those
    /// on the others and those of a null model
    #[arg(long, conflicts_with_all = ["figures", "fabrics", "own", "anchors"])]
    unseen: bool,
    #[command(flatten)]
    congestion: CongestionOptions,
    #[command(flatten)]
    dahu: DahuOptions,
    /// Print one JSON object per line for each figure
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DahuOptions {
    /// Predict runs of HPL on Dahu, with the rates of its sockets and with their mean
    #[arg(long, conflicts_with_all = ["figures", "fabrics", "own", "anchors", "unseen", "congestion"])]
    dahu: bool,
    /// Orders of the matrices of --dahu [default: those to 150,000]
    #[arg(long, value_name = "N[,N]", value_delimiter = ',', requires = "dahu",
        value_parser = |word: &str| whole_number::<u64>(word, 1024..=500_000))]
    orders: Vec<u64>,
    /// Replay all exchanges of pivots of --dahu, not one for each panel
    #[arg(long, requires = "dahu")]
    all_pivots: bool,
}

#[derive(Debug, Args)]
struct CongestionOptions {
    /// Predict figures of jobs whose network is full, and sum up the errors by machine and pattern
    #[arg(long, conflicts_with_all = ["figures", "fabrics", "own", "anchors", "unseen"])]
    congestion: bool,
    /// Only these machines of --congestion
    #[arg(long, value_name = "MACHINE[,MACHINE]", value_delimiter = ',', requires = "congestion",
        value_parser = PossibleValuesParser::new(score::congestion::machine_names()))]
    only: Vec<String>,
    /// Placements of each job of --congestion on its machine, whose median is the prediction
    #[arg(long, value_name = "COUNT", requires = "congestion", default_value_t = 5,
        value_parser = |word: &str| whole_number::<u64>(word, 1..=1000))]
    placements: u64,
    /// Hosts of all jobs of --congestion [default: random, packed where the source says so]
    #[arg(long, value_name = "RULE", requires = "congestion",
        value_parser = PossibleValuesParser::new(["random", "packed", "spread"])
            .try_map(|rule| rule.parse::<PlacementRule>()))]
    placement: Option<PlacementRule>,
    /// Random rings of each placement, whose geometric mean counts
    #[arg(long, value_name = "COUNT", requires = "congestion", default_value_t = 3,
        value_parser = |word: &str| whole_number::<u64>(word, 1..=1000))]
    rings: u64,
    /// Seed of placements and random rings
    #[arg(long, value_name = "NUMBER", requires = "congestion", default_value_t = 1,
        value_parser = |word: &str| whole_number::<u64>(word, 0..=1 << 40))]
    seed: u64,
    /// Leave out jobs with more ranks
    #[arg(long, value_name = "RANKS", requires = "congestion",
        value_parser = |word: &str| whole_number::<usize>(word, 1..=1 << 20))]
    most_ranks: Option<usize>,
}

impl CongestionOptions {
    fn request(&self) -> score::congestion::CongestionRequest {
        score::congestion::CongestionRequest {
            only: self.only.clone(),
            placements: self.placements,
            rings: self.rings,
            seed: self.seed,
            rule: self.placement,
            most_ranks: self.most_ranks,
        }
    }
}

impl ScoreOptions {
    /// Predicts the figures that the options name; returns the errors as text.
    fn scored(&self, command: &Path) -> Result<String> {
        if self.dahu.dahu {
            let found = score::dahu::run(&self.dahu.orders, self.dahu.all_pivots)?;
            return Ok(match self.json {
                true => found.json(),
                false => results::terminal::fitted(&found.text()),
            });
        }
        if self.congestion.congestion {
            let found = score::congestion::run(&self.congestion.request())?;
            return Ok(match self.json {
                true => found.json(),
                false => results::terminal::fitted(&found.text()),
            });
        }
        let request = score::ScoreRequest {
            figures: self.figures.as_deref(),
            fabrics: self.fabrics.as_deref(),
            own: self.own,
        };
        if self.anchors {
            let found = score::anchors::run(command, request)?;
            return Ok(match self.json {
                true => found.json(),
                false => results::terminal::fitted(&found.text()),
            });
        }
        if self.unseen {
            let (header, rows) = score::page::beside(command)?;
            return Ok(match self.json {
                true => score::page::json(&header, &rows),
                false => {
                    let header = header.into_iter().map(String::from).collect();
                    let table = results::table::aligned(header, rows, |column| column != 2);
                    results::terminal::fitted(&table)
                }
            });
        }
        let scores = score::run(command, request)?;
        Ok(match self.json {
            true => scores.json(),
            false => results::terminal::fitted(&scores.text()),
        })
    }
}

#[derive(Debug, Args)]
struct PageOptions {
    /// Only this part, without the head of the page. May be repeated
    #[arg(long, value_enum)]
    part: Vec<score::page::Part>,
    /// Print the table of errors by kind (accuracy.csv of crate `fabric`) in place of the page
    #[arg(long, conflicts_with = "part")]
    errors: bool,
}

/// Runs `fishplate study` with these arguments. The executable that calls this function must also
/// provide the subcommands `run`, `perf` and `bench`'s worker.
pub fn main(arguments: &StudyArguments) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_failure(&error),
    }
}

fn run(arguments: &StudyArguments) -> Result<()> {
    let command = env::current_exe().context("cannot find the path of this command")?;
    if !arguments.study.prints_json() {
        results::terminal::limit_elsewhere(WIDEST);
    }
    let mut order = None;
    let files = arguments
        .study
        .output()
        .map(OutputOptions::open)
        .transpose()?;
    let files = files.unwrap_or_default();
    let (number, output) = match &arguments.study {
        Study::DualRail(output) => (0, output),
        Study::Edr(options) => {
            order = options.hpl;
            (1, &options.output)
        }
        Study::RdmaChannel(output) => (2, output),
        Study::Pcie(output) => (3, output),
        Study::Generations(output) => (4, output),
        Study::All(output) if output.trace.is_some() => {
            return print(&output.replayed(&STUDIES, &command)?);
        }
        Study::All(output) => {
            let board = Scoreboard::run(&command, output.effort(None))?;
            let text = match output.json {
                true => board.json()?,
                false => board.text(),
            };
            return output.write(files, text, |folder| board.draw(folder), || board.page());
        }
        Study::Scores(options) => {
            let parts = match options.part.as_slice() {
                [] => &score::page::PARTS,
                some => some,
            };
            return print(&match options.errors {
                true => score::page::accuracy(&command)?,
                false => score::page::page(&command, parts)?,
            });
        }
        Study::Score(options) => return print(&options.scored(&command)?),
    };
    if output.trace.is_some() {
        return print(&output.replayed(&[STUDIES[number]], &command)?);
    }
    let results = Results::run(STUDIES[number], &command, output.effort(order))?;
    let text = match output.json {
        true => show::json(&results)?,
        false => show::text(&results),
    };
    output.write(
        files,
        text,
        |folder| pictures::draw(&results, folder),
        || page::page(&results),
    )
}

/// The width of text that is not written to a terminal, in columns.
const WIDEST: usize = 120;

/// The output files of a study, opened before it begins.
#[derive(Default)]
struct OutputFiles {
    report: Option<OutputFile>,
}

impl Study {
    fn prints_json(&self) -> bool {
        match self {
            Study::Score(options) => options.json,
            Study::Scores(_) => true,
            _ => self.output().is_some_and(|output| output.json),
        }
    }

    /// The output options of a study that can write files.
    fn output(&self) -> Option<&OutputOptions> {
        match self {
            Study::DualRail(output)
            | Study::RdmaChannel(output)
            | Study::Pcie(output)
            | Study::Generations(output)
            | Study::All(output) => Some(output),
            Study::Edr(options) => Some(&options.output),
            Study::Score(_) | Study::Scores(_) => None,
        }
    }
}

impl OutputOptions {
    /// Opens the output files. A name that cannot be written is refused before minutes of
    /// measuring.
    fn open(&self) -> Result<OutputFiles> {
        if let Some(folder) = &self.out {
            std::fs::create_dir_all(folder).map_err(|why| {
                let (name, reason) = (folder.display(), results::output::reason(folder, &why));
                anyhow!("--out {name}: cannot make this folder: {reason}")
            })?;
        }
        let report = self.report.as_deref();
        let report = report.map(|file| OutputFile::open("--report", file));
        Ok(OutputFiles {
            report: report.transpose().map_err(|why| anyhow!(why))?,
        })
    }

    fn effort(&self, order: Option<usize>) -> Effort {
        let OutputOptions { quick, skew, .. } = *self;
        Effort { quick, order, skew }
    }

    /// Draws the curves if the user names a folder, writes the page if the user names a file, and
    /// prints the results.
    fn write(
        &self,
        files: OutputFiles,
        mut text: String,
        draw: impl FnOnce(&Path) -> Result<Vec<PathBuf>>,
        page: impl FnOnce() -> Page,
    ) -> Result<()> {
        if let Some(file) = files.report {
            page().write(file.path())?;
            file.written();
        }
        if let Some(folder) = &self.out {
            let drawn = draw(folder)?;
            if !self.json {
                text.extend(drawn.iter().map(|file| format!("{}\n", file.display())));
            }
        }
        print(&self.shown(text))
    }

    /// The replays of the trace with the configurations of some studies.
    fn replayed(&self, studies: &[(&'static str, &str)], command: &Path) -> Result<String> {
        let file = self.trace.as_deref().context("there is no trace")?;
        // A program could be run in its place, but not by studies.
        let wrong = |why: String| anyhow!("--trace {}: {why}", file.display());
        let bytes = std::fs::read(file).map_err(|why| wrong(why.to_string()))?;
        trace::Trace::read_all(&bytes).map_err(wrong)?;
        let replays = studies.iter();
        let replays = replays.map(|study| traced::Replays::run(*study, command, file, self.ppn));
        let replays: Vec<_> = replays.collect::<Result<_>>()?;
        Ok(self.shown(traced::shown(&replays, self.json)?))
    }

    /// The text as it is printed: JSON as it is, other text in the width of the terminal.
    fn shown(&self, text: String) -> String {
        match self.json {
            true => text,
            false => results::terminal::fitted(&text),
        }
    }
}

/// Parses the value of the option `--skew`, in microseconds.
fn skew(word: &str) -> Result<f64, String> {
    let found = word.parse().ok();
    found
        .filter(|skew: &f64| skew.is_finite() && *skew >= 0.0)
        .ok_or_else(|| "valid are microseconds from 0".into())
}

fn print(text: &str) -> Result<()> {
    stdout()
        .write_all(text.as_bytes())
        .context("cannot write the results")
}

#[cfg(test)]
mod tests;
