//! The benchmarks: names, units, families, and the numbers of ranks that each can run on.

use anyhow::{Result, bail};
use results::Unit;
use serde::{Deserialize, Serialize};

use crate::file_access::FileAccess;
use crate::form::Form;
use crate::operation::Collective;
use crate::window_access::OneSided;

/// A benchmark of MPI calls. The procedures are those of the OSU micro-benchmarks 7.4, except for
/// [`Family::Kernel`] and [`Family::FirstTouch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Benchmark {
    Latency,
    Bw,
    Bibw,
    MbwMr,
    Init,
    FirstTouch,
    Sweep,
    Sort,
    OneSided(OneSided),
    File(FileAccess),
    Collective(Collective),
}

impl Benchmark {
    /// The benchmark of the blocking collective operation with this name, which must exist.
    pub(crate) fn collective(name: &str) -> Benchmark {
        let found = Collective::named(name);
        Benchmark::Collective(found.expect("the name of a collective operation"))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Benchmark::Latency => "latency",
            Benchmark::Bw => "bw",
            Benchmark::Bibw => "bibw",
            Benchmark::MbwMr => "mbw-mr",
            Benchmark::Init => "init",
            Benchmark::FirstTouch => "first-touch",
            Benchmark::Sweep => "sweep",
            Benchmark::Sort => "sort",
            Benchmark::OneSided(access) => access.name(),
            Benchmark::File(access) => access.name(),
            Benchmark::Collective(collective) => collective.name(),
        }
    }

    pub(crate) fn unit(self) -> Unit {
        match self {
            Benchmark::Bw | Benchmark::Bibw | Benchmark::File(_) => Unit::MegabytesPerSecond,
            Benchmark::OneSided(access) if access.is_stream() => Unit::MegabytesPerSecond,
            Benchmark::MbwMr => Unit::MessagesPerSecond,
            Benchmark::Init => Unit::Milliseconds,
            _ => Unit::Microseconds,
        }
    }

    pub(crate) fn family(self) -> Family {
        match self {
            Benchmark::Latency => Family::Latency,
            Benchmark::OneSided(access) if access.is_stream() => Family::Bandwidth,
            Benchmark::OneSided(_) => Family::OneSided,
            Benchmark::File(_) => Family::File,
            Benchmark::Bw | Benchmark::Bibw | Benchmark::MbwMr => Family::Bandwidth,
            Benchmark::Init => Family::Start,
            Benchmark::FirstTouch => Family::FirstTouch,
            Benchmark::Sweep | Benchmark::Sort => Family::Kernel,
            Benchmark::Collective(_) => Family::Collective,
        }
    }

    /// True if the ranks may begin an iteration at different times. In the other benchmarks one
    /// rank waits for the other anyway.
    pub(crate) fn takes_skew(self) -> bool {
        match self {
            Benchmark::Bibw | Benchmark::Sweep | Benchmark::Sort => true,
            Benchmark::Collective(collective) => collective.form == Form::Blocking,
            _ => false,
        }
    }

    /// True if the messages of the benchmark have a size.
    pub(crate) fn sized(self) -> bool {
        match self {
            Benchmark::Init => false,
            Benchmark::OneSided(access) => access.sized(),
            Benchmark::Collective(collective) => collective.operation.sized(),
            _ => true,
        }
    }

    /// The size of a message's elements in bytes; message sizes are multiples of it.
    pub(crate) fn element(self) -> usize {
        match self {
            Benchmark::OneSided(access) => access.element(),
            Benchmark::Collective(collective) => collective.operation.element(),
            _ => 1,
        }
    }

    /// Refuses numbers of ranks that the benchmark cannot run on.
    pub(crate) fn check_ranks(self, ranks: usize) -> Result<()> {
        let name = self.name();
        match self.family() {
            Family::Latency | Family::FirstTouch | Family::OneSided if ranks != 2 => {
                bail!("{name} runs between 2 ranks, not {ranks}")
            }
            Family::Bandwidth if self == Benchmark::MbwMr => match ranks {
                2.. if ranks.is_multiple_of(2) => Ok(()),
                _ => bail!(
                    "mbw-mr runs between pairs of ranks: {ranks} is not an even number from 2"
                ),
            },
            Family::Bandwidth if ranks != 2 => bail!("{name} runs between 2 ranks, not {ranks}"),
            _ if ranks == 0 => bail!("{name} needs at least 1 rank"),
            _ => Ok(()),
        }
    }
}

/// Benchmarks that share their numbers of iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Latency,
    /// Accesses to a window, each followed by a flush.
    OneSided,
    /// Reads and writes of files.
    File,
    Bandwidth,
    Collective,
    Start,
    /// The first messages between two ranks; the user chooses their number.
    FirstTouch,
    /// The messages that the main loop of a program, such as NAS LU, exchanges.
    Kernel,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_fit_the_benchmark() {
        assert!(Benchmark::Latency.check_ranks(3).is_err());
        assert!(Benchmark::FirstTouch.check_ranks(3).is_err());
        assert!(Benchmark::Bibw.check_ranks(4).is_err());
        assert!(Benchmark::MbwMr.check_ranks(3).is_err());
        assert!(Benchmark::MbwMr.check_ranks(4).is_ok());
        assert!(Benchmark::collective("barrier").check_ranks(0).is_err());
        assert!(Benchmark::collective("barrier").check_ranks(1).is_ok());
    }
}
