//! `fishplate bench`, and the hidden subcommand by which the benchmarks start this executable as a rank.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

pub const WORKER: &str = bench::worker::SUBCOMMAND;

/// Measure MPI libraries: latency, bandwidth, collectives, starting; and what the machine allows
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    arguments: bench::Arguments,
}

pub fn main(arguments: Arguments) -> ExitCode {
    bench::main(&arguments.arguments)
}

/// Ranks are started in great haste: before any other argument is looked at.
pub fn worker(arguments: Vec<OsString>) -> ExitCode {
    bench::worker::main(arguments)
}
