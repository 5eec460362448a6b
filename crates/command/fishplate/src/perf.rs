//! `fishplate perf`: benchmarks of RDMA devices, from the crate `perf`.

use std::process::ExitCode;

pub(crate) use perf::PerfArguments;

pub(crate) fn main(arguments: &PerfArguments) -> ExitCode {
    let readers = perf::Readers {
        system: crate::fabric::system,
        faults: crate::faults::read,
    };
    perf::main(arguments, &readers)
}
