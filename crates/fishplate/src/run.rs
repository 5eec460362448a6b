//! `fishplate run`: from arguments to a job.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use device::model::IntraHost;
use device::scene::Scene;
use knobs::{Knobs, Seconds, Value};

use crate::refuse;

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

    /// Run on a modelled machine, in virtual time: a name from `fishplate fabric list`, or a file
    #[arg(long, value_name = "NAME|FILE", help_heading = "Modelled machines")]
    fabric: Option<String>,

    /// How ranks of one of its hosts reach each other
    #[arg(
        long,
        value_enum,
        value_name = "WAY",
        default_value_t = Way::Memory,
        requires = "fabric",
        help_heading = "Modelled machines"
    )]
    intra_host: Way,

    /// What all that looks random there follows from
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        requires = "fabric",
        help_heading = "Modelled machines"
    )]
    seed: u64,

    /// What goes wrong there: a plan in TOML (see docs/modelled.md)
    #[arg(
        long,
        value_name = "FILE",
        requires = "fabric",
        help_heading = "Modelled machines"
    )]
    faults: Option<String>,

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

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    /// By its memory: a processor copies
    Memory,
    /// By its HCA, which turns the packets round
    Hca,
}

impl From<Way> for IntraHost {
    fn from(way: Way) -> IntraHost {
        match way {
            Way::Memory => IntraHost::Memory,
            Way::Hca => IntraHost::Hca,
        }
    }
}

pub fn main(arguments: Arguments) -> ExitCode {
    let options = match options(arguments) {
        Ok(options) => options,
        Err(why) => return refuse(&why),
    };
    match launch::run(&options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("fishplate: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn options(arguments: Arguments) -> Result<launch::Options, String> {
    let variables = variables(&arguments.variables)?;
    // Here, so that a misspelt setting is told once, and not by every rank.
    let environment =
        std::env::vars_os().filter(|(name, _)| !variables.iter().any(|(other, _)| other == name));
    let knobs = Knobs::parse(knobs::decode(environment.chain(variables.iter().cloned())));
    let knobs = knobs.map_err(|error| error.to_string())?;
    let scene = match &arguments.fabric {
        None => None,
        Some(word) => {
            let (ranks, ppn) = (arguments.ranks, arguments.ppn.unwrap_or(1));
            if ppn == 0 {
                return Err("--ppn 0: a host needs at least one rank".into());
            }
            let system = crate::fabric::system(word)?;
            let mut scene = Scene::new(&system, ranks, ppn, arguments.seed)
                .map_err(|why| format!("--fabric {word}: {why}"))?;
            if let Some(file) = &arguments.faults {
                scene.faults = crate::faults::read(file)?;
            }
            scene.intra_host = arguments.intra_host.into();
            Some(scene.encode())
        }
    };
    let hosts = match &arguments.hosts {
        None if arguments.ppn.is_some() && scene.is_none() => {
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
    Ok(launch::Options {
        ranks: arguments.ranks,
        program,
        arguments: words.collect(),
        variables,
        directory: arguments.directory,
        hosts,
        scene,
        tag_output: arguments.tag_output,
        timeout: arguments.timeout,
        report_stuck: Some(arguments.report_stuck.unwrap_or(knobs.report_stuck.0)),
        library: std::env::current_exe()
            .ok()
            .and_then(|command| launch::library_directory(&command)),
    })
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
