//! `fishplate run`: starts a job from command-line arguments.

mod environment;
mod hosts;
mod traced;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use knobs::{KnobValue, Seconds};
use profile::JobFacts;
use results::arguments::{self, ANY, whole_number};

use crate::binding::BindingArguments;
use crate::explain::ExplainOutput;
use crate::modelled::{ModelledArguments, ModelledJob, command_line};
use crate::record::Recording;
use crate::refuse;
use crate::scratch::ScratchFolder;
use crate::summary::{ReadySummary, SummaryArguments, WantedSummary};
use hosts::HostArguments;

/// Start an MPI program on this machine, on several hosts, or on a modelled machine.
///
/// Rank 0 reads standard input. The exit code is that of the first rank that failed, or 128 plus
/// the signal's number if a signal ended it. Ctrl-\ (SIGQUIT) prints what each rank is waiting for.
///
/// A lone `:` begins another program of the job, with its own -n, -x, --envlist, --envnone and
/// --wdir; `--` before a program leaves colons to it. `--configfile FILE` reads programs from a
/// file, one on a line. The spellings of MPICH, Intel MPI and Open MPI are accepted.
#[derive(Args)]
#[command(
    after_help = "Example:\n  fishplate run -n 4 ./program argument\n  fishplate run -n 2 -x OMP_NUM_THREADS=1 \
                        --timeout 60 python3 script.py\n  fishplate run -n 1 ./server : -n 3 ./client\n  fishplate run -n 8 \
                        --fabric mpich2-2003 ./program\n  fishplate run -n 4 --fabric qdr --check rma ./program\n  fishplate run -n 4 --fabric qdr --check messages ./program\n  fishplate run -n 4 --bind-to core --report-bindings ./program\n  \
                        fishplate run -n 4 --hosts a,b --launch-with 'ssh {host}' ./program"
)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    program: ProgramArguments,

    /// Set an environment variable for the ranks of all programs, as -x does for one
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "Environment")]
    genv: Vec<OsString>,

    /// Pass on only these of the launcher's environment variables, to all programs
    #[arg(long, value_name = "NAME,...", help_heading = "Environment")]
    genvlist: Option<String>,

    /// Pass on none of the launcher's environment variables to any program
    #[arg(long, conflicts_with = "genvlist", help_heading = "Environment")]
    genvnone: bool,

    #[command(flatten, next_help_heading = "Input and output")]
    streams: StreamArguments,

    /// End the job after this many seconds, with exit code 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// After this many seconds without progress, print what each rank is waiting for
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    report_stuck: Option<Duration>,

    /// Start a program of several ranks also if it needs an MPI library that is not here, or has
    /// one in itself, though each of its processes is a job of one rank
    #[arg(long)]
    allow_other_mpi: bool,

    /// Print which MPI library the program needs and where it is searched first, and a line for
    /// each rank that is started
    #[arg(short = 'v', long)]
    verbose: bool,

    /// After the job, show rank 0's choices for its peers on standard error: by message size the
    /// protocol, the rails, and predicted times; with `all`, or in FILE, at all sizes, with all
    /// choices not taken
    #[arg(long, value_name = "all|FILE", num_args = 0..=1, require_equals = true)]
    explain: Option<Option<PathBuf>>,

    /// Show it as one JSON object
    #[arg(long, requires = "explain")]
    json: bool,

    #[command(flatten, next_help_heading = "Several hosts")]
    hosts: HostArguments,

    /// Record the calls of all ranks, with what they move and the computing before each, in FILE: a
    /// trace, from which they can be made again without the program
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    #[command(flatten)]
    binding: BindingArguments,

    #[command(flatten)]
    modelled: ModelledArguments,

    /// Replay a trace the fast way: each message by its cost line, without running the protocols.
    /// For more ranks than the exact way reaches, in less time, and with times that differ by some
    /// percent
    #[arg(
        long,
        requires = "fabric",
        conflicts_with_all = ["check", "trace"],
        help_heading = "Modelled machine"
    )]
    fast: bool,

    /// Replay a trace so that its receives from any source take the messages that come first, and
    /// not those of the recorded run
    #[arg(
        long,
        requires = "fabric",
        conflicts_with = "fast",
        help_heading = "Modelled machine"
    )]
    free_sources: bool,

    #[command(flatten, next_help_heading = "Summary")]
    summary: SummaryArguments,
}

/// The command-line arguments that belong to one program of a job.
#[derive(Args)]
pub(crate) struct ProgramArguments {
    /// Number of ranks [default: 1, or the places of the hosts]
    #[arg(
        short = 'n',
        long = "ranks",
        visible_alias = "np",
        value_name = "COUNT",
        allow_hyphen_values = true,
        value_parser = rank_count
    )]
    ranks: Option<usize>,

    /// Start the ranks in this directory
    #[arg(long = "wdir", value_name = "DIRECTORY")]
    directory: Option<PathBuf>,

    /// Set an environment variable for the ranks; NAME alone passes on the launcher's value
    #[arg(short = 'x', value_name = "NAME[=VALUE]", help_heading = "Environment")]
    variables: Vec<OsString>,

    /// Pass on only these of the launcher's environment variables
    #[arg(long, value_name = "NAME,...", help_heading = "Environment")]
    envlist: Option<String>,

    /// Pass on none of the launcher's environment variables
    #[arg(long, conflicts_with = "envlist", help_heading = "Environment")]
    envnone: bool,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

/// The command-line arguments about the standard streams of the ranks.
#[derive(Args)]
struct StreamArguments {
    /// Ranks that read standard input: a rank, `all` (on one host), or `none`
    #[arg(long, value_name = "RANK|all|none", default_value = "0", value_parser = input)]
    stdin: launch::Input,

    /// Prefix each line of output with `[rank] `
    #[arg(long)]
    tag_output: bool,

    /// Prefix each line of output with the time of day, in UTC
    #[arg(long)]
    timestamp_output: bool,

    /// Send the ranks' standard error to standard output
    #[arg(long)]
    merge_stderr_to_stdout: bool,

    /// Write each rank's output and errors to a file: NAME.RANK
    #[arg(long, value_name = "NAME", conflicts_with_all = ["outfile_pattern", "errfile_pattern"])]
    output_filename: Option<String>,

    /// Write each rank's standard output to a file; %r is the rank, %h its host
    #[arg(long, value_name = "PATTERN", value_parser = launch::OutputFile::parse)]
    outfile_pattern: Option<launch::OutputFile>,

    /// Write each rank's standard error to a file; %r is the rank, %h its host
    #[arg(long, value_name = "PATTERN", value_parser = launch::OutputFile::parse)]
    errfile_pattern: Option<launch::OutputFile>,
}

impl StreamArguments {
    /// The ranks that read standard input, in a job of `ranks` ranks on `hosts` other hosts.
    fn checked_input(&self, ranks: usize, hosts: usize) -> Result<launch::Input, String> {
        check_input(self.stdin, ranks, hosts)?;
        Ok(self.stdin)
    }

    fn output(&self) -> launch::OutputOptions {
        let numbered = self.output_filename.as_deref();
        let numbered = numbered.map(launch::OutputFile::numbered);
        launch::OutputOptions {
            tag: self.tag_output,
            time: self.timestamp_output,
            merge: self.merge_stderr_to_stdout,
            stdout: numbered.clone().or(self.outfile_pattern.clone()),
            stderr: numbered.or(self.errfile_pattern.clone()),
        }
    }
}

pub(crate) fn main(arguments: RunArguments, further: Vec<ProgramArguments>) -> ExitCode {
    let wanted = arguments.explain.clone();
    let wanted = wanted.map(|file| ExplainOutput::open(file, arguments.json));
    match further.is_empty().then(|| traced::trace_of(&arguments)) {
        Some(Ok(Some(trace))) => return traced::main(&arguments, trace),
        Some(Err(why)) => return refuse(&why),
        Some(Ok(None)) | None => (),
    }
    let of_traces = [
        (arguments.fast, "--fast"),
        (arguments.free_sources, "--free-sources"),
    ];
    if let Some((_, option)) = of_traces.iter().find(|(is_given, _)| *is_given) {
        return refuse(&format!(
            "{option} replays a trace, not a program: record it first (run --record FILE)"
        ));
    }
    // Signals are taken before the job has a folder, which a signal would leave behind.
    let signals = match launch::Signals::take() {
        Ok(signals) => signals,
        Err(error) => return refuse(&error.to_string()),
    };
    let prepared = wanted
        .transpose()
        .and_then(|wanted| Ok((wanted, prepare(arguments, further)?)));
    let (wanted, job) = match prepared {
        Ok(all) => all,
        Err(why) => return refuse(&why),
    };
    let code = match launch::run(&job.options, signals) {
        Ok(end) => {
            // If the job failed, the launcher has printed a line about that already.
            let wanted = wanted.filter(|_| end.code == 0 || end.explained.is_some());
            let shown = wanted.map_or(Ok(()), |output| output.show(end.explained.as_deref()));
            if let Err(why) = &shown {
                eprintln!("fishplate: {}", terminal_text::lines(why));
            }
            match (end.code, shown) {
                (0, Err(_)) => 1,
                (code, _) => code,
            }
        }
        Err(error) => {
            eprintln!("fishplate: {}", arguments::shown(&error.to_string()));
            error.exit_code()
        }
    };
    ExitCode::from(job.finish(code))
}

/// A job that is ready to start, and the outputs to write after it.
struct PreparedJob {
    options: launch::Options,
    modelled: ModelledJob,
    recording: Option<Recording>,
    summary: WantedSummary,
    /// The temporary folder of the ranks, kept until the job has ended.
    scratch: Option<ScratchFolder>,
}

impl PreparedJob {
    /// Writes the files and the summary of the job, which has ended with exit code `code`. Returns
    /// the exit code of this command.
    fn finish(self, code: u8) -> u8 {
        let PreparedJob {
            options,
            modelled,
            recording,
            summary,
            scratch,
        } = self;
        drop((options, scratch));
        end(modelled, recording, summary, code)
    }
}

/// Writes the files and the summary of a job, which has ended with exit code `code`. Returns the
/// exit code of this command.
fn end(
    modelled: ModelledJob,
    recording: Option<Recording>,
    summary: WantedSummary,
    code: u8,
) -> u8 {
    let checked = |outcome: Result<(), String>, code| match outcome {
        Ok(()) => code,
        Err(why) => {
            eprintln!("fishplate: {}", arguments::shown(&why));
            if code == 0 { 1 } else { code }
        }
    };
    let summary = summary.sum_up(&modelled);
    let end = summary
        .as_ref()
        .ok()
        .and_then(ReadySummary::virtual_seconds);
    if let Some(end) = end.filter(|_| code == 0) {
        modelled.say_missed_faults(end);
    }
    let work = modelled.work_inside();
    let notes = summary.as_ref().map(ReadySummary::left_out_of_program);
    let notes = notes.unwrap_or_default();
    let code = checked(modelled.finish(), code);
    let recorded = match (recording, code) {
        (None, _) => Ok(()),
        (Some(recording), 0) => work
            .map_err(|why| format!("--record: work inside MPI: {why}"))
            .and_then(|work| recording.finish(&work, &notes)),
        (Some(recording), _) => {
            recording.drop_file();
            Ok(())
        }
    };
    let code = checked(recorded, code);
    checked(summary.and_then(|ready| ready.show(code != 0)), code)
}

fn prepare(arguments: RunArguments, further: Vec<ProgramArguments>) -> Result<PreparedJob, String> {
    let explain = arguments.explain.is_some();
    let verbose = arguments.verbose;
    let (modelled, hosts) = (&arguments.modelled, &arguments.hosts);
    let variables = environment::variables("--genv", &arguments.genv)?;
    let inherited = environment::inherited(&arguments.genvlist, arguments.genvnone);
    let further: Vec<launch::Program> = further
        .into_iter()
        .map(|other| other.program(&inherited))
        .collect::<Result<_, String>>()?;
    let others: usize = further.iter().map(|program| program.ranks).sum();
    let wanted = match (arguments.program.ranks, further.is_empty()) {
        (ranks, true) => ranks,
        (ranks, false) => Some(ranks.unwrap_or(1).saturating_add(others)),
    };
    let binding = arguments.binding.request()?;
    let (ranks, placed) = hosts.place(wanted, modelled.is_wanted(), &binding)?;
    let mut first = arguments.program.program(&inherited)?;
    first.ranks = ranks - others;
    let mut programs: Vec<launch::Program> = std::iter::once(first).chain(further).collect();
    let scratch = modelled.wants_scratch().then(ScratchFolder::new);
    let scratch = scratch.transpose()?;
    // The command line as the user has written it, which a recording must match.
    let command = command_line(&programs);
    if let Some(folder) = &scratch {
        let here = std::env::current_dir().map_err(|why| format!("--scratch: {why}"))?;
        for program in programs.iter_mut().filter(|one| one.directory.is_none()) {
            program.program = folder.program(&here, Path::new(&program.program)).into();
            program.directory = Some(folder.path().to_owned());
        }
    }
    let input = arguments.streams.checked_input(ranks, placed.len())?;
    let of_ranks = environment::of_ranks(&programs, &variables);
    let knobs = environment::check(&of_ranks)?;

    let modelled_job = modelled.prepare(ranks, hosts.ppn.unwrap_or(1))?;
    let of_ranks = of_ranks.concat();
    let mut defaults = modelled_job.defaults(&of_ranks);
    defaults.extend(modelled_job.of_threads(&of_ranks));
    let file = arguments.record.as_deref();
    modelled.check_recording(file.is_some())?;
    let recording = Recording::begin(file, &command, ranks, &placed, !modelled.is_wanted())?;
    let facts = JobFacts {
        program: command,
        ranks_per_host: per_host(&placed, ranks, hosts.ppn, modelled.is_wanted()),
        fabric: modelled.fabric().map(str::to_string),
        real_clocks: modelled_job.real_clocks(&programs),
        ..JobFacts::default()
    };
    let times = modelled_job.has_port_faults();
    let summary = arguments.summary.prepare(ranks, facts, times)?;
    let options = launch::Options {
        programs,
        variables: variables.into_iter().chain(defaults).collect(),
        binding,
        output: arguments.streams.output(),
        input,
        verbose,
        one_core_each: hosts.nooversubscribe,
        allow_other_mpi: arguments.allow_other_mpi,
        hosts: placed,
        machine: modelled_job.launched.clone(),
        profile: summary.counts(),
        record: recording.as_ref().map(Recording::parts),
        folder: scratch.as_ref().map(|folder| folder.all().to_owned()),
        timeout: arguments.timeout,
        explain,
        heartbeat: knobs.heartbeat(),
        report_stuck: Some(arguments.report_stuck.unwrap_or(knobs.report_stuck.0)),
        library: own_library(),
    };
    Ok(PreparedJob {
        options,
        modelled: modelled_job,
        recording,
        summary,
        scratch,
    })
}

/// The folder of the library beside this command.
fn own_library() -> Option<PathBuf> {
    launch::library_directory(&std::env::current_exe().ok()?)
}

impl ProgramArguments {
    /// Makes the program. It inherits the environment of the whole job unless it has options of its
    /// own.
    fn program(self, inherited: &launch::Inherited) -> Result<launch::Program, String> {
        let mut words = self.program.into_iter();
        Ok(launch::Program {
            ranks: self.ranks.unwrap_or(1),
            program: words.next().ok_or("no program given")?,
            arguments: words.collect(),
            variables: environment::variables("-x", &self.variables)?,
            inherited: match environment::inherited(&self.envlist, self.envnone) {
                launch::Inherited::All => inherited.clone(),
                own => own,
            },
            directory: self.directory,
        })
    }
}

fn check_input(input: launch::Input, ranks: usize, hosts: usize) -> Result<(), String> {
    match input {
        launch::Input::Rank(rank) if rank >= ranks && ranks > 0 => Err(format!(
            "--stdin {rank}: the job has ranks 0 to {}",
            ranks - 1
        )),
        launch::Input::All if hosts > 0 => {
            Err("--stdin all works on one host: name one rank, or none".into())
        }
        _ => Ok(()),
    }
}

fn input(word: &str) -> Result<launch::Input, String> {
    match (word, word.parse()) {
        ("all", _) => Ok(launch::Input::All),
        ("none", _) => Ok(launch::Input::None),
        (_, Ok(rank)) => Ok(launch::Input::Rank(rank)),
        _ => Err("valid are a rank, all and none".into()),
    }
}

fn rank_count(word: &str) -> Result<usize, String> {
    match word.starts_with('-') && word[1..].starts_with(|digit: char| digit.is_ascii_digit()) {
        true => Err("a number of ranks cannot be negative".into()),
        false => whole_number(word, ANY),
    }
}

/// The largest number of ranks on a host of the job.
fn per_host(hosts: &[launch::JobHost], ranks: usize, ppn: Option<usize>, modelled: bool) -> usize {
    match modelled {
        true => ppn.unwrap_or(1).min(ranks),
        false => hosts.iter().map(|host| host.ranks).max().unwrap_or(ranks),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match Seconds::parse(text) {
        Some(Seconds(time)) => Ok(time),
        None => Err(format!("expected {}", Seconds::EXPECTED)),
    }
}
