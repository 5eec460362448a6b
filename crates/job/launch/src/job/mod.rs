//! The run of a job, from its start until no process of it is left: one loop watches its ranks.
//!
//! `course` decides how a job ends; it has no access to the clock, processes or output. `running`
//! executes its decisions, with the ranks of this host, the `agents` of other hosts, `console` and
//! `input`.

mod agents;
mod console;
mod course;
mod events;
mod input;
mod other_libraries;
mod remarks;
mod remote;
mod running;

use std::io::Write;

use nix::sys::signal::Signal;
use rustix::process::Rlimit;
use secret::Secret;

use crate::agent::contact::AgentStarter;
use crate::guard::{Guard, JobMark};
use crate::output::OutputPipes;
use crate::rank::RankProcess;
use crate::signals::Signals;
use crate::start::{LocalShare, StartedRanks};
use crate::{Error, Input, Options, limits, processes, start};
pub use running::JobEnd;
use running::RunningJob;

/// Runs a job. The exit code is that of the first rank that failed, 128 plus the number of the
/// signal that ended it, or 124 after the timeout.
///
/// `signals` must have been taken before anything was made that a signal could leave behind.
///
/// The calling thread must outlive the job, because the ranks die with the thread that started
/// them. The process must have no other children, because this function waits for all children.
pub fn run(options: &Options, signals: Signals) -> Result<JobEnd, Error> {
    limits::check(options.ranks())?;
    let (pipes, descriptors) = match options.hosts.len() {
        0 => make_room(options)?,
        hosts => (OutputPipes::NONE, limits::make_room(hosts, true)?),
    };
    processes::reap_orphans()?;
    let secret = Secret::draw().map_err(|why| Error::System {
        what: "draw the secret of the job",
        why,
    })?;
    let mark = JobMark::new();
    let guard = Guard::start(&mark, true, options.folder.as_deref());
    let (started, starter, outcome) = match options.hosts.is_empty() {
        true => {
            let share = LocalShare::all(options, pipes, mark, secret);
            let (started, outcome) = start::start(options, share, descriptors, signals.before());
            (started, None, outcome)
        }
        false => {
            let starter = AgentStarter::new(options, &mark, &secret, signals.before())?;
            let started = StartedRanks {
                ranks: remote_ranks(options),
                ..StartedRanks::default()
            };
            (started, Some(starter), Ok(()))
        }
    };
    let mut job = RunningJob::new(options, started, starter, signals, guard);
    match &outcome {
        Ok(()) => job.begin(),
        Err(_) => job.end(&[Signal::SIGKILL]),
    }
    job.watch()?;
    job.closing_remarks().iter().for_each(|text| say(text));
    outcome?;
    Ok(job.conclusion())
}

/// The pipes for output of ranks of this host, with the descriptors for them as
/// [`limits::make_room`] returns them.
fn make_room(options: &Options) -> Result<(OutputPipes, Option<Rlimit>), Error> {
    let joins = options.ranks() > 1 && options.machine.is_none();
    let pipes = OutputPipes::of(options.output.has_prefix(), joins);
    let has_input = options.input == Input::All;
    match limits::make_room(options.ranks(), pipes.are_wanted() || has_input) {
        Ok(descriptors) => Ok((pipes, descriptors)),
        // Only pipes that keep lines whole can be left out.
        Err(why) if options.output.has_prefix() || has_input => Err(why),
        Err(_) => {
            let descriptors = limits::make_room(options.ranks(), false)?;
            Ok((OutputPipes::NONE, descriptors))
        }
    }
}

/// The initial states of the ranks that agents will start.
fn remote_ranks(options: &Options) -> Vec<RankProcess> {
    let hosts = options.hosts.iter().enumerate();
    let hosts = hosts.flat_map(|(host, at)| std::iter::repeat_n(host, at.ranks));
    let ranks = hosts.enumerate();
    ranks
        .map(|(number, host)| RankProcess::remote(number, host, &options.output))
        .collect()
}

/// Prints a message of the launcher after its job.
fn say(text: &str) {
    let _ = std::io::stderr()
        .write_all(format!("fishplate: {}\n", terminal_text::lines(text)).as_bytes());
}
