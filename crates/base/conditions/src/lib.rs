//! The conditions of a measurement on this machine: the machine and the date, the time that a cache
//! line takes between two of its cores, and what disturbed the processes that were measured.
//!
//! Invariant: files of the kernel are parsed by pure functions. A kernel or container that hides a
//! file hides one fact, and the others are still reported.
//!
//! Never here: the figures.

pub mod cache_line;
mod date;
mod disturbances;
mod interruptions;
mod machine;
mod moment;
mod run;

pub use cache_line::Proximity;
pub use disturbances::Disturbances;
pub use interruptions::Interruptions;
pub use machine::{Machine, own_cpus, this_host};
pub use moment::Moment;
pub use run::{Conditions, RunStart, after};
