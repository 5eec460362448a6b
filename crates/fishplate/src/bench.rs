//! `fishplate bench`, and the hidden subcommand by which the benchmarks start this executable as a rank.

use std::ffi::OsString;
use std::process::ExitCode;

pub use bench::Arguments;

pub const WORKER: &str = bench::worker::SUBCOMMAND;

pub fn main(arguments: Arguments) -> ExitCode {
    bench::main(&arguments)
}

/// Ranks are started in great haste: before any other argument is looked at.
pub fn worker(arguments: Vec<OsString>) -> ExitCode {
    bench::worker::main(arguments)
}
