//! Conflicts of one-sided accesses (MPI 5.0 §12.7). Ranks of a modelled machine note their accesses
//! to windows and what ends them as [`Event`]s; after the job, a [`Machine`] takes all events in
//! the order of their virtual times and reports accesses that conflict.
//!
//! Two accesses conflict if they have bytes in common, one of them changes these, and nothing
//! orders them: both are in progress at one moment of virtual time, or belong to one fence or
//! exposure epoch. So a correct program is never reported; an error of passive synchronisation is
//! reported if the accesses overlapped in this run.
//!
//! Never here: ranks, printing.

mod event;
mod intervals;
mod machine;
mod report;
#[cfg(test)]
mod tests;

pub use event::{Access, Epoch, Event, Kind, Runs, WORDS};
pub use machine::{Action, Conflict, Machine, Side};
