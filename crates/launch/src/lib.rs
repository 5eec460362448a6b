//! The launcher: starts the ranks of a job, watches them, and ends the job cleanly.
//!
//! [`run`] starts a job on this machine, or on several hosts through an agent on each, and returns
//! its exit code when no process of it is left. One thread does everything, in a loop over `poll`:
//! it handles signals, lines from the ranks, deaths of ranks, output and deadlines, in that order.
//!
//! Invariants:
//! - whatever ends the job, no process of it survives;
//! - the first rank that failed decides the exit code, and one line on stderr names the rank, the
//!   cause, and the operations that the other ranks were in;
//! - a rank never outlives its launcher, even if the launcher is killed with SIGKILL.

mod agent;
mod binding;
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
pub use binding::{BindTo, BindingRequest, CpuList, HardwareThread, Level, MapBy, Topology, quota};
pub use describe::ranges;
pub use error::Error;
pub use hosts::{JobHost, place};
pub use job::{JobEnd, run};
pub use library::library_directory;
pub use limits::MOST_RANKS;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;

/// The description of a job: the program and how to start it.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The number of ranks.
    pub ranks: usize,
    /// The program: a path, or a name to find in PATH.
    pub program: OsString,
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// Variables for the ranks, in addition to those of this process.
    pub variables: Vec<(OsString, OsString)>,
    /// The working directory of the ranks. None: that of this process.
    pub directory: Option<PathBuf>,
    /// Whether each line of output begins with `[rank] `.
    pub tag_output: bool,
    /// The time after which the job is ended.
    pub timeout: Option<Duration>,
    /// The time without progress after which the launcher prints what every rank waits for.
    pub report_stuck: Option<Duration>,
    /// The folder of the MPI library for the programs to load; see [`library_directory`].
    pub library: Option<PathBuf>,
    /// The hosts, each reached through an agent. Empty: this machine, without an agent.
    pub hosts: Vec<JobHost>,
    /// Whether rank 0 is to explain its choices of protocols and rails.
    pub explain: bool,
    /// The modelled machine on which the ranks run in virtual time. None: this machine.
    pub machine: Option<ModelledMachine>,
    /// The user's wishes for the binding of ranks to cores.
    pub binding: BindingRequest,
    /// The file in which ranks count, for the job's profile. None: they count nothing.
    pub profile: Option<Arc<OwnedFd>>,
}

/// A modelled machine: the memory that ranks in virtual time share.
#[derive(Debug, Clone)]
pub struct ModelledMachine {
    /// The encoded description of the machine.
    pub scene: Vec<u8>,
    /// The world: the memory in which the machine and its clock live. It outlives the job.
    pub world: Arc<OwnedFd>,
    /// The encoded compute trace to replay, if any.
    pub computed: Option<Vec<u8>>,
}

/// The time from now until `time`, as a system call takes it.
fn timespec(time: Instant) -> Timespec {
    let left = time.saturating_duration_since(Instant::now());
    Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: left.subsec_nanos().into(),
    }
}
