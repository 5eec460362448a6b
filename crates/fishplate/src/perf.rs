//! `fishplate perf`.

use std::process::ExitCode;

pub use perf::Arguments;

pub fn main(arguments: &Arguments) -> ExitCode {
    let readers = perf::Readers {
        system: crate::fabric::system,
        faults: crate::faults::read,
    };
    perf::main(arguments, &readers)
}
