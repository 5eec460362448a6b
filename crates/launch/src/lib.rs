//! Starting ranks, watching them, and ending the job cleanly.
//!
//! [`run`] starts a job on this machine, or on several through an agent on each, and comes back with its exit code when nothing of it is left. One thread does
//! all: a loop over `poll` that takes signals, lines from the ranks, their deaths, their output and the clock, in that
//! order.
//!
//! What must always hold: whatever ends the job, and whenever, no process of it survives; the first rank that failed
//! decides the exit code, and one line on stderr says who, how, and what the others were doing; a rank never outlives
//! its launcher, not even when that is killed with SIGKILL.

mod agent;
mod cache_topology;
mod describe;
mod error;
mod hosts;
mod job;
mod kill_sequence;
mod kvs;
mod library;
mod limits;
mod output;
mod processes;
mod rank;
mod signals;
mod start;
mod stuck;
mod verdict;

pub use agent::serve::{NAME as AGENT, main as agent};
pub use error::Error;
pub use hosts::{Host, place};
pub use job::run;
pub use library::library_directory;
pub use limits::MOST_RANKS;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;

/// What to start, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How many ranks.
    pub ranks: usize,
    /// A path, or a name to be looked for in PATH.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Variables set for the ranks, beside those of this process.
    pub variables: Vec<(OsString, OsString)>,
    /// Where the ranks start; None is here.
    pub directory: Option<PathBuf>,
    /// Write `[rank] ` before each line of output.
    pub tag_output: bool,
    /// End the job after this time.
    pub timeout: Option<Duration>,
    /// Print what every rank waits for, after this time without progress.
    pub report_stuck: Option<Duration>,
    /// The folder of the MPI library that programs are to load; see [`library_directory`].
    pub library: Option<PathBuf>,
    /// The hosts to run on, through agents; none means this machine, without any.
    pub hosts: Vec<Host>,
    /// The modelled machine on which the ranks run in virtual time; None is this machine.
    pub stage: Option<Stage>,
}

/// What ranks in virtual time share.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The machine, as they are to read it.
    pub scene: Vec<u8>,
    /// The memory that it all happens in. It is there still when the job is over.
    pub world: Arc<OwnedFd>,
    /// What they compute between their calls, if that is to be as it was once, as they are to read it.
    pub computed: Option<Vec<u8>>,
}

/// How long it is until then, for the system.
fn timespec(time: Instant) -> Timespec {
    let left = time.saturating_duration_since(Instant::now());
    Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: left.subsec_nanos().into(),
    }
}
