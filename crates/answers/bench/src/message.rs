//! Messages from a worker to the driver: JSON, one object for each line of its standard output. All
//! other lines are output of the library.

use conditions::Interruptions;
use serde::{Deserialize, Serialize};

use crate::memory::PairMemory;
use crate::overlap::Overlap;

/// The hidden subcommand of a worker; its arguments are those of [`main`](crate::worker::main).
pub const SUBCOMMAND: &str = "bench-worker";

/// A message of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "bench-worker", rename_all = "kebab-case")]
pub(crate) enum WorkerMessage {
    /// The library has started.
    Hello { version: String },
    /// The result of one message size.
    Sample(Sample),
    /// The cost of MPI_Init, measured by the ranks.
    Start(Start),
    /// The conditions of each rank during the measurement, in the order of ranks.
    Ranks { all: Vec<RankConditions> },
    /// The memory that the messages of a pair of ranks take.
    Memory(PairMemory),
    /// A rank has failed. `rank` is the rank's number, or `None` if the rank does not know it yet.
    Fault { rank: Option<usize>, text: String },
}

/// The result of one size of one run. `value` is in the benchmark's unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) size: usize,
    pub(crate) iterations: usize,
    pub(crate) value: f64,
    /// The overlap with computing, for nonblocking collectives.
    pub(crate) overlap: Option<Overlap>,
    /// The times of the fastest and of the slowest rank, for collectives.
    pub(crate) ranks: Option<(f64, f64)>,
    pub(crate) percentiles: Vec<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Start {
    /// The time of MPI_Init on the slowest rank, in milliseconds.
    pub(crate) init: f64,
    /// The greatest resident memory of a rank after MPI_Init, in KiB.
    pub(crate) resident_kib: f64,
    /// The greatest private memory of a rank after MPI_Init, in KiB.
    pub(crate) private_kib: f64,
}

/// The hardware threads of a rank, and its interruptions while it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankConditions {
    /// The hardware threads that the rank may use, such as `0-3,8`.
    pub(crate) cpus: String,
    pub(crate) involuntary_switches: u64,
    /// The time for which the rank was ready to run but had no core, in seconds.
    pub(crate) waited: f64,
}

impl RankConditions {
    pub(crate) fn interruptions(&self) -> Interruptions {
        Interruptions {
            involuntary_switches: self.involuntary_switches,
            waited: self.waited,
        }
    }
}

impl WorkerMessage {
    pub(crate) fn parse(text: &str) -> Option<WorkerMessage> {
        serde_json::from_str(text).ok()
    }

    /// The message as a line, with the end of the line, so that one write sends it.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings are always JSON") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_went() {
        for line in [
            WorkerMessage::Hello {
                version: "An MPI \"1\"".into(),
            },
            WorkerMessage::Sample(Sample {
                size: 8,
                value: 0.25,
                ranks: Some((0.1, 0.5)),
                ..Sample::default()
            }),
            WorkerMessage::Fault {
                rank: None,
                text: "no\nlibrary".into(),
            },
            WorkerMessage::Ranks {
                all: vec![RankConditions::default(); 2],
            },
        ] {
            let text = line.text();
            assert_eq!(text.matches('\n').count(), 1);
            assert_eq!(WorkerMessage::parse(text.trim()), Some(line));
        }
        assert_eq!(WorkerMessage::parse("MPI startup(): done"), None);
        assert_eq!(WorkerMessage::parse("{\"benchmark\":\"latency\"}"), None);
    }
}
