//! `fishplate bench`, and the hidden subcommand by which benchmarks start this executable as a
//! rank.

use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) use bench::BenchArguments;

/// The name of the hidden subcommand.
pub(crate) const WORKER: &str = bench::worker::SUBCOMMAND;

pub(crate) fn main(arguments: BenchArguments) -> ExitCode {
    bench::main(&arguments)
}

/// Runs a rank of a benchmark. `main` calls this before all other parsing, because the start of
/// ranks is measured.
pub(crate) fn worker(arguments: Vec<OsString>) -> ExitCode {
    bench::worker::main(arguments)
}
