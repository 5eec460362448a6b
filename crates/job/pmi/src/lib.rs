//! The rank's side of job start-up: how a rank learns its identity, finds its peers, and reports to
//! its launcher.
//!
//! [`Bootstrap`] is the interface, and [`start`] finds the launcher of a process. A rank of our own
//! launcher ([`Job`]) reads four variables and keeps a socket to the launcher. Both ends send short
//! lines of text over it ([`FromRank`], [`FromLauncher`]), so that a script can stand in for either
//! end. The socket also carries the job's key-value store, by which ranks on different hosts find
//! each other. A rank of another launcher ([`ForeignJob`]) communicates with it over PMI-1, PMI-2
//! or PMIx.
//!
//! Invariants:
//! - a process that a launcher started as one of many never assumes that it is the only rank;
//! - a descriptor is adopted only after a check that it is what its variable claims;
//! - nothing here raises SIGPIPE, and only [`Bootstrap::fence`] blocks for longer than a second.
//!
//! Never here: transports.

mod aliases;
mod bootstrap;
mod control;
mod error;
mod explanation;
mod foreign;
mod hosts;
mod in_process;
mod inherit;
mod job;
mod kvs;
mod protocol;
mod secret_file;
mod segment;
mod standalone;
mod start;
mod status;
mod unsupported;

pub use aliases::place_variables;
pub use bootstrap::{Bootstrap, LauncherGone, Notice};
pub use error::Error;
pub use explanation::{explanation, put_explanation};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use foreign::fuzzing;
pub use foreign::{ForeignJob, launcher_of, launchers_seen};
pub use hosts::Hosts;
pub use in_process::InProcess;
pub use job::{Job, ModelFiles, variables};
pub use knobs::{
    APPNUM, BINDING, CONTRACT, CONTROL_FD, EXPLAIN, HOSTS, JOB, LOCAL_RANK, LOCAL_SIZE, MOST_RANKS,
    PROFILE_FD, RANK, RECORD_FD, SCENE_FD, SECRET_FD, SEGMENT_FD, SIZE, WORLD_FD,
};
pub use kvs::{KEY_LIMIT, KvsError, VALUE_LIMIT, check_key, check_value, hex, unhex};
pub use protocol::{FromLauncher, FromRank, LINE_LIMIT};
pub use secret_file::secret_file;
pub use segment::empty_segment;
pub use standalone::Standalone;
pub use start::{StartLine, StartReporter, Started, start};
pub use status::{BadRankStatus, RankStatus, UnexpectedMessage, WaitCondition, WaitReason};
pub use unsupported::unsupported_text;
