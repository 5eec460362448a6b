//! The client side of wiring up: what a launcher tells a rank, and what a rank tells its launcher.
//!
//! A rank learns who it is from four variables ([`Job::from_env`]) and keeps a socket to its launcher ([`Control`]). On
//! it travel short lines of text ([`FromRank`], [`FromLauncher`]), so that a shell script can stand in for either end. The
//! same socket carries the job's key-value space ([`Space`]), by which ranks on different hosts find each other.
//!
//! What must always hold: a process that some launcher started as one of many never takes itself for the only one; a
//! descriptor is adopted only after it has been seen to be what its variable claims; nothing here raises SIGPIPE or
//! blocks for longer than a second.

mod control;
mod error;
mod foreign;
mod hosts;
mod inherit;
mod job;
mod line;
mod space;
mod status;

pub use control::{Control, Gone};
pub use error::Error;
pub use foreign::launchers_seen;
pub use hosts::Hosts;
pub use job::{Job, Stage, variables};
pub use knobs::{
    COMPUTED_FD, CONTRACT, CONTROL_FD, HOSTS, RANK, SCENE_FD, SEGMENT_FD, SIZE, WORLD_FD,
};
pub use line::{FromLauncher, FromRank, LINE_LIMIT};
pub use space::{KEY_LIMIT, Space, SpaceError, VALUE_LIMIT, check_key, check_value, hex, unhex};
pub use status::{BadStatus, End, Status, Unexpected, Wait};
