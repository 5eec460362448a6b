//! The conditions of a measurement on this machine: the machine and the date, the time for the
//! transfer of a cache line between two of its cores, and the disturbances of the measured
//! processes.
//!
//! Invariant: files of the kernel are parsed by pure functions. If a kernel or container hides a
//! file, one fact is missing, and the others are still reported.
//!
//! Never here: the measured values.

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
