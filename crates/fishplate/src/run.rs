//! `fishplate run`: from arguments to a job.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use knobs::{KnobValue, Knobs, Seconds};

use crate::refuse;
use crate::stage::{self, Stage};

/// Start a program on several ranks, of this machine or of several.
///
/// Input goes to rank 0. The exit code is that of the first rank that failed, 128 plus the signal's number if a signal
/// ended it. Ctrl-\ (SIGQUIT) prints what every rank waits for.
#[derive(Args)]
#[command(
    after_help = "Example:\n  fishplate run -n 4 ./program argument\n  fishplate run -n 2 -x OMP_NUM_THREADS=1 \
                        --timeout 60 python3 script.py\n  fishplate run -n 8 --fabric mpich2-2003 ./program\n  fishplate run -n 4 --hosts a,b \
                        --launch-with 'ssh {host}' ./program"
)]
pub struct Arguments {
    /// How many ranks
    #[arg(
        short = 'n',
        long = "ranks",
        visible_alias = "np",
        value_name = "COUNT",
        default_value_t = 1
    )]
    ranks: usize,

    /// Set a variable for the ranks (NAME alone: it must be set here)
    #[arg(short = 'x', value_name = "NAME[=VALUE]")]
    variables: Vec<OsString>,

    /// Start the ranks in this directory
    #[arg(long = "wdir", value_name = "DIRECTORY")]
    directory: Option<PathBuf>,

    /// Write `[rank] ` before each line of output
    #[arg(long)]
    tag_output: bool,

    /// End the job after this many seconds, with exit code 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// After this many seconds without progress, print what every rank waits for
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    report_stuck: Option<Duration>,

    /// Run on these hosts, filled in order: NAME, or NAME:RANKS for how many ranks it takes
    #[arg(
        long,
        value_name = "NAME[:RANKS],...",
        conflicts_with = "fabric",
        help_heading = "Several hosts"
    )]
    hosts: Option<String>,

    /// What starts a command on one of them, followed by that command [default: ssh, asking nothing]
    #[arg(
        long,
        value_name = "COMMAND WITH {host}",
        requires = "hosts",
        help_heading = "Several hosts"
    )]
    launch_with: Option<String>,

    /// Ranks on each host (also of a modelled machine: there 1 if nothing is said)
    #[arg(long, value_name = "COUNT", help_heading = "Several hosts")]
    ppn: Option<usize>,

    #[command(flatten)]
    modelled: stage::Arguments,

    /// Always so here: more ranks than cores are fine
    #[arg(long, hide = true)]
    oversubscribe: bool,

    /// Always so here
    #[arg(long, hide = true)]
    allow_run_as_root: bool,

    /// The program, and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

pub fn main(arguments: Arguments) -> ExitCode {
    let (options, stage) = match options(arguments) {
        Ok(both) => both,
        Err(why) => return refuse(&why),
    };
    let code = match launch::run(&options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fishplate: {error}");
            error.exit_code()
        }
    };
    drop(options);
    let lost = stage.finish().map_err(|why| eprintln!("fishplate: {why}"));
    ExitCode::from(match lost {
        Err(()) if code == 0 => 1,
        _ => code,
    })
}

fn options(arguments: Arguments) -> Result<(launch::Options, Stage), String> {
    let variables = variables(&arguments.variables)?;
    // Here, so that a misspelt setting is told once, and not by every rank.
    let environment =
        std::env::vars_os().filter(|(name, _)| !variables.iter().any(|(other, _)| other == name));
    let knobs = Knobs::parse(knobs::decode(environment.chain(variables.iter().cloned())));
    let knobs = knobs.map_err(|error| error.to_string())?;
    let modelled = &arguments.modelled;
    let hosts = match &arguments.hosts {
        None if arguments.ppn.is_some() && !modelled.is_wanted() => {
            return Err(
                "--ppn says how many ranks each host gets: it needs --hosts or --fabric".into(),
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
    let stage = arguments.modelled.stage(
        arguments.ranks,
        arguments.ppn.unwrap_or(1),
        &program,
        &words,
    )?;
    let options = launch::Options {
        ranks: arguments.ranks,
        program,
        arguments: words,
        variables,
        directory: arguments.directory,
        hosts,
        machine: stage.launched.clone(),
        tag_output: arguments.tag_output,
        timeout: arguments.timeout,
        report_stuck: Some(arguments.report_stuck.unwrap_or(knobs.report_stuck.0)),
        library: std::env::current_exe()
            .ok()
            .and_then(|command| launch::library_directory(&command)),
    };
    Ok((options, stage))
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
                    format!("-x {name}: it is not set here; set it, or write -x {name}=VALUE")
                })?;
                (word.clone(), value)
            }
        };
        if name.is_empty() {
            return Err(format!(
                "-x {}: a variable has a name: -x NAME=VALUE",
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
