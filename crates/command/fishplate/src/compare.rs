//! `fishplate compare`: one program on several modelled machines.

mod machines;
mod prices;
mod sweep;
mod traced;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::compare::check::RecordedOn;
use ::compare::points::{self, Share};
use ::compare::work::Wanted;
use ::compare::{Comparison, Divided, Request, RunFolder, Runner, Sweep};
use clap::Args;
use replay::Variability;
use results::arguments::{POSITIVE, report_failure, whole_number};
use results::output::OutputFile;
use results::plot::PlotFile;

use crate::fabric::files;
use crate::refuse;
use machines::MachineArguments;
use prices::PriceArguments;
use sweep::SweepArguments;

/// Compare modelled machines for an MPI program: its time on each, the part of the machine that
/// bounds it, price times time, and which machine to take.
///
/// The program runs three times or more for each number of ranks on this computer, which records
/// its MPI calls and its computing between them. Then these traces are replayed on each machine, in
/// virtual time and without the program. A file with traces (--record, `run --record`, `trace
/// make`) may stand in place of the program: they are its recordings. Several such files together
/// are recordings with several numbers of ranks, or several with one number.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct CompareArguments {
    #[command(flatten)]
    machines: MachineArguments,

    #[command(flatten)]
    sweep: SweepArguments,

    #[command(flatten)]
    prices: PriceArguments,

    /// Another job on the same network (not possible yet: the answer says what to do instead)
    #[arg(long, value_name = "PROGRAM", hide = true)]
    beside: Option<String>,

    /// The times of the same work on measured nodes, one a line in any unit, which the draws of
    /// --vary deal to the nodes of the job
    #[arg(long, value_name = "FILE", requires = "vary")]
    vary_nodes: Option<PathBuf>,

    /// Say what a run of COUNT iterations of the program's loop takes: start, rest, and COUNT times
    /// an iteration
    #[arg(long, value_name = "COUNT",
        value_parser = |word: &str| whole_number::<usize>(word, POSITIVE))]
    iterations: Option<usize>,

    /// Compare what follows the N-th call of this collective procedure on each rank, such as
    /// MPI_Barrier:2. MPI_Pcontrol(1) and MPI_Pcontrol(0) in the program do the same
    #[arg(long, value_name = "CALL[:N]", value_parser = after)]
    after: Option<(String, usize)>,

    /// Give ranks with equal calls the mean of their computing, which removes noise, and imbalance
    /// too
    #[arg(long)]
    even: bool,

    /// Recordings with each number of ranks [default: 3 to 9, until their spread is known]
    #[arg(long, value_name = "COUNT",
        value_parser = |word: &str| whole_number::<usize>(word, POSITIVE))]
    recordings: Option<usize>,

    /// One recording and one replay on each machine: the times, with no word on how sure the answer
    /// is
    #[arg(long, conflicts_with = "recordings")]
    quick: bool,

    /// Estimate the fast way (each message by its cost line) what explains the times and how sure
    /// the answer is. The times of the machines stay exact
    #[arg(long, conflicts_with = "quick")]
    fast: bool,

    /// Print the answer alone: no output of the program, no phases
    #[arg(short, long)]
    quiet: bool,

    /// Run the program in FOLDER, instead of in a temporary folder for each run with links to what
    /// is in the current one and the three above it
    #[arg(long = "in", value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Say how often the program would run and be replayed, and run nothing
    #[arg(long)]
    dry_run: bool,

    /// Set an environment variable for the ranks; NAME alone passes on the launcher's value
    #[arg(short = 'x', value_name = "NAME[=VALUE]")]
    variables: Vec<OsString>,

    /// Leave the system's clocks real, instead of virtual time on `clock_gettime`, `gettimeofday`
    /// and `time`
    #[arg(long)]
    real_clocks: bool,

    /// Keep the traces of all recordings in FILE, which may then stand in place of the program
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Make every N-th of the runs, from the I-th on, and write their results to the file of
    /// --results, for --merge
    #[arg(long, value_name = "I/N", requires = "results", value_parser = share,
        conflicts_with_all = ["json", "report", "plot"])]
    points: Option<Share>,

    /// The file of the results of --points
    #[arg(long, value_name = "FILE", requires = "points")]
    results: Option<PathBuf>,

    /// Take the results that --points has written, and make what they lack
    #[arg(long, value_name = "FILE", num_args = 1..)]
    merge: Vec<PathBuf>,

    /// Print one JSON object in a line
    #[arg(long)]
    json: bool,

    /// Write a page with all results, which needs no network
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Draw the time of each machine by what it is spent on
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    plot: Option<PathBuf>,

    /// The program and its arguments, or files with traces
    #[arg(value_name = "PROGRAM|TRACE", required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

const EXAMPLE: &str = "Example:
  fishplate compare --fabrics qdr,2xqdr,fdr,edr -n 8,16 ./heat 512 100
  fishplate compare --fabrics qdr,mine.toml -n 16 --record heat.traces ./heat
  fishplate compare --fabrics qdr,fdr --json heat.traces
  fishplate compare --fabrics qdr,fdr --recorded-on edr heat-on-8.trace heat-on-16.trace
  fishplate compare --fabrics qdr,edr -n 16 --iterations 100000 ./heat 512 100
  fishplate compare --fabrics qdr,edr --speed qdr=0.6 -n 4 ./lmp < in.melt
  fishplate compare --fabrics qdr,edr --host haswell -n 8 ./cg S
  fishplate compare --fabrics qdr,edr -n 16 --ppn 1,2,4 ./heat
  fishplate compare --fabrics qdr,edr --nodes 4,8 --oversubscription 1,3:1 ./heat
  fishplate compare --fabrics qdr,edr --prices ours.toml --budget 400000USD ./heat
  fishplate compare --fabrics qdr,edr --fast many.trace
  fishplate compare --fabrics 2xqdr,fdr --set nodes=648 --placement packed,random many.trace";

/// Parses the value of `--points`.
fn share(word: &str) -> Result<Share, String> {
    let parts = word.split_once('/');
    let parts = parts.and_then(|(index, of)| index.parse().ok().zip(of.parse().ok()));
    match parts.filter(|(index, of)| (1..=*of).contains(index)) {
        Some((index, of)) => Ok(Share { index, of }),
        None => Err("valid are 1/8 to 8/8, for eight shares".into()),
    }
}

/// Parses the value of `--after`.
fn after(word: &str) -> Result<(String, usize), String> {
    let (call, number) = match word.split_once(':') {
        Some((call, number)) => (call, whole_number::<usize>(number, POSITIVE)?),
        None => (word, 1),
    };
    match call.is_empty() {
        true => Err("it needs the name of a call, such as MPI_Barrier or MPI_Bcast:2".into()),
        false => Ok((call.to_owned(), number)),
    }
}

pub(crate) fn main(arguments: CompareArguments) -> ExitCode {
    let json = arguments.json;
    let share = arguments.points.zip(arguments.results.clone());
    let files = Files {
        merged: arguments.merge.clone(),
        report: arguments.report.clone(),
        plot: arguments.plot.clone(),
    };
    let (dry, quiet) = (arguments.dry_run, arguments.quiet);
    let sweep = match sweep(arguments) {
        Ok(sweep) => sweep,
        Err(why) => return refuse(&why),
    };
    if dry {
        return match sweep.dry_run() {
            Ok(text) => {
                tell!("{text}");
                ExitCode::SUCCESS
            }
            Err(why) => report_failure(&why),
        };
    }
    if let Some((share, results)) = share {
        return match points(&sweep, &files.merged, quiet, share, &results) {
            Ok(said) => {
                tell!("{said}");
                ExitCode::SUCCESS
            }
            Err(why) => report_failure(&why),
        };
    }
    let compared = compared(&sweep, &files, quiet);
    match compared {
        Ok(comparisons) => {
            match json {
                true => say!("{}", ::compare::json(&comparisons)),
                false => tell!("{}", ::compare::text(&comparisons).trim_end()),
            }
            let mut rows = comparisons.iter().flat_map(|one| &one.rows);
            match rows.all(|row| row.summary().is_some()) {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Err(why) => report_failure(&why),
    }
}

/// The files that a comparison reads and writes.
struct Files {
    /// The files of `--merge`.
    merged: Vec<PathBuf>,
    report: Option<PathBuf>,
    plot: Option<PathBuf>,
}

/// Makes a share of a comparison's runs, and returns the line that reports it.
fn points(
    sweep: &Sweep,
    known: &[PathBuf],
    quiet: bool,
    share: Share,
    results: &Path,
) -> anyhow::Result<String> {
    let file = OutputFile::open("--results", results).map_err(|why| anyhow::anyhow!(why))?;
    let mut runner = Runner::new(&std::env::current_exe()?).quiet(quiet);
    let done = points::make(sweep, &mut runner, share, known, file.path())?;
    file.written();
    Ok(match done.all {
        0 => "all runs are known: --merge prints the comparison".into(),
        all => format!("{} of {all} runs are in {}", done.made, results.display()),
    })
}

/// Runs the comparison, and writes the page and the picture if their files are given.
fn compared(sweep: &Sweep, files: &Files, quiet: bool) -> anyhow::Result<Vec<Comparison>> {
    // A file that cannot be written is reported before minutes of measurements.
    let plot = files.plot.as_deref().map(PlotFile::create).transpose()?;
    let report = files.report.as_deref();
    let report = report.map(|file| OutputFile::open("--report", file));
    let report = report.transpose().map_err(|why| anyhow::anyhow!(why))?;
    let command = std::env::current_exe()?;
    let mut runner = Runner::new(&command).quiet(quiet);
    let comparisons = match files.merged.as_slice() {
        [] => ::compare::run(sweep, &mut runner)?,
        files => {
            let (comparison, made) = points::merge(sweep, &mut runner, files)?;
            if made > 0 && !quiet {
                eprintln!("fishplate: {made} runs were in none of the files, and were made here");
            }
            vec![comparison]
        }
    };
    if let Some(file) = report {
        let request = &sweep.requests()[0];
        let machines = request.machines.iter();
        let uncertain = machines.map(|one| (one.name.clone(), one.sheet.uncertain()));
        let uncertain: Vec<_> = uncertain.collect();
        let mut page = ::compare::page(&comparisons, &uncertain);
        if let (true, Some(made)) = (request.traces.is_empty(), &mut page.made) {
            // With traces the page is the same everywhere: no computer.
            let computer = conditions::Machine::now();
            made.machine = format!("recorded on {}, {}", computer.cpu, computer.kernel);
            made.date = Some(computer.date);
        }
        page.write(file.path())?;
        file.written();
    }
    if let Some(file) = plot {
        let pictures: Vec<_> = comparisons.iter().map(::compare::picture).collect();
        file.draw(&pictures)?;
    }
    Ok(comparisons)
}

/// The variation of nodes and calls, with the times of nodes of a file.
fn variability(nodes: Option<&Path>) -> Result<Variability, String> {
    let Some(file) = nodes else {
        return Ok(Variability::default());
    };
    let read = files::open(Path::new(""), &file.to_string_lossy());
    let read = read.and_then(|(_, text)| Variability::of_times(&text));
    read.map_err(|why| format!("--vary-nodes {}: {why}", file.display()))
}

/// The comparisons that the command line asks for.
fn sweep(arguments: CompareArguments) -> Result<Sweep, String> {
    if let Some(other) = &arguments.beside {
        return Err(format!(
            "--beside {other}: two jobs on one network are not modelled; --oversubscription or --set inner_width narrow the links between switches instead"
        ));
    }
    let traces = traced::of(&arguments)?;
    let recorded: Vec<usize> = traces.iter().map(|trace| trace.ranks.len()).collect();
    let cases = arguments
        .sweep
        .cases(&arguments.machines, &arguments.prices, &recorded)?;
    let recorded_on = arguments.machines.recorded_on()?;
    if let Some(RecordedOn(machine)) = &recorded_on {
        traced::check_recorded_on(machine, &traces, arguments.sweep.first_ppn())?;
    }
    let options = arguments.variables.iter();
    let real_clocks = arguments.real_clocks.then(|| "--real-clocks".into());
    let options = options.flat_map(|word| ["-x".into(), word.clone()]);
    let options: Vec<OsString> = options.chain(real_clocks).collect();
    let variability = variability(arguments.vary_nodes.as_deref())?;
    let requests = cases.into_iter().map(|case| Request {
        machines: case.machines,
        recorded_on: recorded_on.clone(),
        ranks: case.ranks,
        per_host: case.per_host,
        placement: case.placement,
        setting: case.setting,
        variability: variability.clone(),
        options: options.clone(),
        program: arguments.program.clone(),
        traces: traces.clone(),
        keep: arguments.record.clone(),
        wanted: Wanted {
            after: arguments.after.clone(),
            iterations: arguments.iterations,
            even: arguments.even,
        },
        recordings: arguments.recordings,
        quick: arguments.quick,
        is_fast: arguments.fast,
        divided: match arguments.json || arguments.report.is_some() || arguments.plot.is_some() {
            true => Divided::All,
            false => Divided::BestRanks,
        },
        folder: match &arguments.folder {
            Some(folder) => RunFolder::Here(folder.clone()),
            None => RunFolder::Scratch,
        },
    });
    Sweep::new(requests.collect()).ok_or_else(|| "there is nothing to compare".into())
}
