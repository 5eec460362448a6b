//! `fishplate run`: starts a job from command-line arguments.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use knobs::{KnobValue, Knobs, Seconds};
use profile::JobFacts;
use results::arguments::{ANY, whole_number, without_error_numbers};

use crate::binding::BindingArguments;
use crate::explain::ExplainOutput;
use crate::modelled::{ModelledArguments, ModelledJob, command_line};
use crate::refuse;
use crate::summary::{SummaryArguments, WantedSummary};

/// Start an MPI program on this machine, on several hosts, or on a modelled machine.
///
/// Rank 0 reads standard input. The exit code is that of the first rank that failed, or 128 plus
/// the signal's number if a signal ended it. Ctrl-\ (SIGQUIT) prints what each rank is waiting for.
#[derive(Args)]
#[command(
    after_help = "Example:\n  fishplate run -n 4 ./program argument\n  fishplate run -n 2 -x OMP_NUM_THREADS=1 \
                        --timeout 60 python3 script.py\n  fishplate run -n 8 --fabric mpich2-2003 ./program\n  fishplate run -n 4 --bind-to core --report-bindings ./program\n  fishplate run -n 4 --hosts a,b \
                        --launch-with 'ssh {host}' ./program"
)]
pub(crate) struct RunArguments {
    /// Number of ranks
    #[arg(
        short = 'n',
        long = "ranks",
        visible_alias = "np",
        value_name = "COUNT",
        default_value_t = 1,
        value_parser = |word: &str| whole_number::<usize>(word, ANY)
    )]
    ranks: usize,

    /// Set an environment variable for the ranks; NAME alone passes on the launcher's value
    #[arg(short = 'x', value_name = "NAME[=VALUE]")]
    variables: Vec<OsString>,

    /// Start the ranks in this directory
    #[arg(long = "wdir", value_name = "DIRECTORY")]
    directory: Option<PathBuf>,

    /// Prefix each line of output with `[rank] `
    #[arg(long)]
    tag_output: bool,

    /// End the job after this many seconds, with exit code 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// After this many seconds without progress, print what each rank is waiting for
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    report_stuck: Option<Duration>,

    /// After the job, show rank 0's choices for its peers: by message size the protocol, the rails,
    /// and the predicted times of both and of the choices not taken. On standard error, or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    explain: Option<Option<PathBuf>>,

    /// Show it as one JSON object
    #[arg(long, requires = "explain")]
    json: bool,

    /// Run on these hosts, filled in order; NAME:RANKS sets the number of ranks on a host
    #[arg(
        long,
        value_name = "NAME[:RANKS],...",
        conflicts_with = "fabric",
        help_heading = "Several hosts"
    )]
    hosts: Option<String>,

    /// Command that starts a program on a host, e.g. 'ssh {host}' [default: ssh in batch mode]
    #[arg(
        long,
        value_name = "COMMAND WITH {host}",
        requires = "hosts",
        help_heading = "Several hosts"
    )]
    launch_with: Option<String>,

    /// Ranks on each host (on a modelled machine: default 1)
    #[arg(long, value_name = "COUNT", help_heading = "Several hosts",
        value_parser = |word: &str| whole_number::<usize>(word, ANY))]
    ppn: Option<usize>,

    #[command(flatten)]
    binding: BindingArguments,

    #[command(flatten)]
    modelled: ModelledArguments,

    #[command(flatten, next_help_heading = "Summary")]
    summary: SummaryArguments,

    /// Accepted and ignored: more ranks than cores are always allowed
    #[arg(long, hide = true)]
    oversubscribe: bool,

    /// Accepted and ignored: root may always start jobs
    #[arg(long, hide = true)]
    allow_run_as_root: bool,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

pub(crate) fn main(arguments: RunArguments) -> ExitCode {
    let wanted = arguments.explain.clone();
    let wanted = wanted.map(|file| ExplainOutput::open(file, arguments.json));
    let prepared = wanted
        .transpose()
        .and_then(|wanted| Ok((wanted, prepare(arguments)?)));
    let (wanted, job) = match prepared {
        Ok(all) => all,
        Err(why) => return refuse(&why),
    };
    let code = match launch::run(&job.options) {
        Ok(end) => {
            // A job that failed has a line of its own.
            let wanted = wanted.filter(|_| end.code == 0 || end.explained.is_some());
            let shown = wanted.map_or(Ok(()), |output| output.show(end.explained.as_deref()));
            let shown = shown.map_err(|why| eprintln!("fishplate: {why}"));
            match (end.code, shown) {
                (0, Err(())) => 1,
                (code, _) => code,
            }
        }
        Err(error) => {
            eprintln!("fishplate: {}", without_error_numbers(&error.to_string()));
            error.exit_code()
        }
    };
    ExitCode::from(job.finish(code))
}

/// A job that is ready to start, and what is to be written after it.
struct PreparedJob {
    options: launch::Options,
    modelled: ModelledJob,
    summary: WantedSummary,
}

impl PreparedJob {
    /// Writes the files and the summary of the job, which has ended with `code`. Returns the exit
    /// code.
    fn finish(self, code: u8) -> u8 {
        let PreparedJob {
            options,
            modelled,
            summary,
        } = self;
        drop(options);
        let checked = |outcome: Result<(), String>, code| match outcome {
            Ok(()) => code,
            Err(why) => {
                eprintln!("fishplate: {}", without_error_numbers(&why));
                if code == 0 { 1 } else { code }
            }
        };
        let summary = summary.sum_up(|| modelled.usage());
        let code = checked(modelled.finish(), code);
        checked(summary.and_then(|ready| ready.show(code != 0)), code)
    }
}

fn prepare(arguments: RunArguments) -> Result<PreparedJob, String> {
    let variables = variables(&arguments.variables)?;
    // The launcher checks settings, so that a misspelt one is reported once and not by every rank.
    let environment =
        std::env::vars_os().filter(|(name, _)| !variables.iter().any(|(other, _)| other == name));
    let of_ranks = environment.chain(variables.iter().cloned());
    let of_ranks: Vec<(String, String)> = knobs::decode(of_ranks).collect();
    let knobs = Knobs::parse(of_ranks.iter().cloned()).map_err(|error| error.to_string())?;
    for notice in knobs::notices(of_ranks.iter().cloned()) {
        eprintln!("fishplate: {notice}");
    }
    let hosts = match &arguments.hosts {
        None if arguments.ppn.is_some() && !arguments.modelled.is_wanted() => {
            return Err(
                "--ppn sets the number of ranks on each host: it needs --hosts or --fabric".into(),
            );
        }
        None => Vec::new(),
        Some(list) => {
            let (ranks, ppn) = (arguments.ranks, arguments.ppn);
            launch::place(list, ranks, ppn, arguments.launch_with.as_deref())?
        }
    };
    let mut words = arguments.program.into_iter();
    let program = words.next().ok_or("no program given")?;
    let words: Vec<OsString> = words.collect();
    let modelled = arguments.modelled.prepare(
        arguments.ranks,
        arguments.ppn.unwrap_or(1),
        &program,
        &words,
    )?;
    let defaults = modelled.defaults(&of_ranks);
    let facts = JobFacts {
        program: command_line(&program, &words),
        ranks_per_host: per_host(
            &hosts,
            arguments.ranks,
            arguments.ppn,
            arguments.modelled.is_wanted(),
        ),
        fabric: arguments.modelled.fabric().map(str::to_string),
        ..JobFacts::default()
    };
    let summary = arguments.summary.prepare(arguments.ranks, facts)?;
    let options = launch::Options {
        ranks: arguments.ranks,
        program,
        arguments: words,
        variables: variables.into_iter().chain(defaults).collect(),
        binding: arguments.binding.request()?,
        directory: arguments.directory,
        hosts,
        machine: modelled.launched.clone(),
        profile: summary.counts(),
        tag_output: arguments.tag_output,
        timeout: arguments.timeout,
        explain: arguments.explain.is_some(),
        report_stuck: Some(arguments.report_stuck.unwrap_or(knobs.report_stuck.0)),
        library: std::env::current_exe()
            .ok()
            .and_then(|command| launch::library_directory(&command)),
    };
    Ok(PreparedJob {
        options,
        modelled,
        summary,
    })
}

/// The largest number of ranks on a host.
fn per_host(hosts: &[launch::JobHost], ranks: usize, ppn: Option<usize>, modelled: bool) -> usize {
    match modelled {
        true => ppn.unwrap_or(1).min(ranks),
        false => hosts.iter().map(|host| host.ranks).max().unwrap_or(ranks),
    }
}

fn variables(words: &[OsString]) -> Result<Vec<(OsString, OsString)>, String> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    for word in words {
        let (name, value) = match word.as_bytes().iter().position(|&byte| byte == b'=') {
            Some(at) => {
                let (name, value) = word.as_bytes().split_at(at);
                (
                    OsStr::from_bytes(name).to_owned(),
                    OsString::from_vec(value[1..].to_vec()),
                )
            }
            None => {
                let value = std::env::var_os(word).ok_or_else(|| {
                    let name = word.to_string_lossy();
                    format!("-x {name}: this variable is not set; set it, or write -x {name}=VALUE")
                })?;
                (word.clone(), value)
            }
        };
        if name.is_empty() {
            return Err(format!(
                "-x {}: the variable's name is missing: write -x NAME=VALUE",
                word.to_string_lossy()
            ));
        }
        variables.retain(|(other, _)| *other != name);
        variables.push((name, value));
    }
    Ok(variables)
}

fn seconds(text: &str) -> Result<Duration, String> {
    match Seconds::parse(text) {
        Some(Seconds(time)) => Ok(time),
        None => Err(format!("expected {}", Seconds::EXPECTED)),
    }
}
