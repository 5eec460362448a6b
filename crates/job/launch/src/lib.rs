//! The launcher: starts the ranks of a job, monitors them, and ends the job cleanly.
//!
//! [`run`] starts a job on this machine, or on several hosts through an agent on each, and returns
//! its exit code when no process of it is left. A single thread does all work, in a loop over
//! `poll`: it handles signals, lines from the ranks, deaths of ranks, output and deadlines, in that
//! order.
//!
//! Invariants:
//! - whatever ends the job, no process of it survives;
//! - the first rank that failed decides the exit code, and one line on stderr names the rank, the
//!   cause, and the operations that the other ranks were in;
//! - a rank never outlives its launcher, even if the launcher is killed with SIGKILL.
//!
//! Never here: MPI, transports.

mod agent;
mod allocation;
mod binding;
mod budget;
mod cache_topology;
mod describe;
mod error;
mod exchange;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod host_list;
mod host_table;
mod hosts;
mod inspection;
mod job;
mod kill_sequence;
mod kvs;
mod library;
mod limits;
mod linked;
mod mpir;
mod needs;
mod output;
mod output_file;
mod process_exit;
mod processes;
mod program;
mod ranges;
mod rank;
mod rank_state;
mod signals;
mod start;
mod stuck;
mod verdict;
mod wheel;

pub use agent::serve::{NAME as AGENT, main as agent};
pub use allocation::{Allocation, AllocationChoice, Surroundings};
pub use binding::{BindTo, BindingRequest, CpuList, HardwareThread, Level, MapBy, Topology, quota};

pub use error::Error;
pub use host_list::HostList;
pub use hosts::{JobHost, Places, place};
pub use inspection::{Inspection, inspect};
pub use job::{JobEnd, run};
pub use library::{LARGE_RECORDER_LIBRARY, RECORDER_LIBRARY, library_directory};
pub use needs::{Abi, MpiNeed, MpiNeeds, defined_names, real_clocks};
pub use output::OutputOptions;
pub use output_file::OutputFile;
pub use pmi::MOST_RANKS;
pub use program::{Inherited, Program};
pub use ranges::ranges;
pub use signals::{Signals, outlive_file_limit};

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pmi::Hosts;
use rustix::event::Timespec;

/// The description of a job: its programs and how to start them.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The programs, in the order of their ranks.
    pub programs: Vec<Program>,
    /// Environment variables for all ranks, in addition to those of their program.
    pub variables: Vec<(OsString, OsString)>,
    /// The format and the destination of the ranks' output.
    pub output: OutputOptions,
    /// The ranks that read this process's standard input.
    pub input: Input,
    /// True if a line is printed for each rank that is started.
    pub verbose: bool,
    /// True if more ranks on a host than cores are an error.
    pub one_core_each: bool,
    /// True if a program of several ranks may be linked with the MPI library of another ABI.
    pub allow_other_mpi: bool,
    /// The longest silence between launcher and agent. Zero: no limit.
    pub heartbeat: Duration,
    /// The limit on the duration of the job. `None`: no limit.
    pub timeout: Option<Duration>,
    /// The time without progress after which the launcher prints the operation that each rank waits
    /// in.
    pub report_stuck: Option<Duration>,
    /// The folder of our MPI library, which programs load; see [`library_directory`].
    pub library: Option<PathBuf>,
    /// The hosts, each reached through an agent. Empty: this machine, without an agent.
    pub hosts: Vec<JobHost>,
    /// True if rank 0 must explain its choices of protocols and rails.
    pub explain: bool,
    /// The modelled machine on which the ranks run in virtual time. `None`: they run on this
    /// machine.
    pub machine: Option<ModelledMachine>,
    /// The user's request for the binding of ranks to cores.
    pub binding: BindingRequest,
    /// A folder to remove if the launcher is killed.
    pub folder: Option<PathBuf>,
    /// The file in which ranks record calls and messages for the job's profile. `None`: they record
    /// nothing.
    pub profile: Option<Arc<OwnedFd>>,
    /// The file to which ranks append their parts of a trace. `None`: they are not recorded. Only
    /// for jobs on one host.
    pub record: Option<Arc<OwnedFd>>,
}

impl Options {
    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        let counts = self.programs.iter().map(|program| program.ranks);
        counts.fold(0, usize::saturating_add)
    }

    /// The program of a rank of this job, with the program's index.
    pub(crate) fn program(&self, rank: usize) -> (usize, &Program) {
        let mut end = 0;
        let programs = self.programs.iter().enumerate();
        let mut later = programs.skip_while(|(_, program)| {
            end += program.ranks;
            end <= rank
        });
        later.next().expect("a rank of this job")
    }
}

/// The ranks that read the launcher's standard input. All others read nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Only this rank reads the input.
    Rank(usize),
    /// Each rank reads all of the input. Only for jobs on one host.
    All,
    /// No rank reads the input.
    None,
}

impl Default for Input {
    fn default() -> Self {
        Input::Rank(0)
    }
}

/// A modelled machine: the memory that ranks in virtual time share.
#[derive(Debug, Clone)]
pub struct ModelledMachine {
    /// The modelled host on which each rank runs.
    pub hosts: Hosts,
    /// The encoded description of the modelled machine.
    pub scene: Vec<u8>,
    /// The world: the memory in which the machine and its clock live. It outlives the job.
    pub world: Arc<OwnedFd>,
    /// True if a preloaded library makes the system's clocks show virtual time.
    pub virtual_clocks: bool,
}

/// The time from now until `time`, in the type for system calls. Zero if `time` is past.
fn timespec(time: Instant) -> Timespec {
    let left = time.saturating_duration_since(Instant::now());
    Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: left.subsec_nanos().into(),
    }
}
