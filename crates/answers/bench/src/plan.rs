//! The plan of one benchmark: its sizes and numbers of iterations. The driver makes a
//! [`WorkerPlan`] and passes it to every worker.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::benchmark::{Benchmark, Family};
use crate::operation::Topology;
use crate::sizes::SizeRange;

/// Above this size in bytes, a message counts as large.
pub(crate) const LARGE: usize = 8192;

/// Above this size in bytes, the windows of a stream take equal times on a modelled machine.
const VERY_LARGE: usize = 256 << 10;

/// Time limit for one size in seconds where the user chose neither iterations nor a limit.
const USUAL_SECONDS_PER_SIZE: f64 = 1.0;

/// Numbers of iterations of one size: untimed and timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeats {
    pub(crate) skip: usize,
    pub(crate) iterations: usize,
}

/// Everything that a worker must know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerPlan {
    pub(crate) benchmark: Benchmark,
    /// Message sizes in bytes, in the order of measurement.
    pub(crate) sizes: Vec<usize>,
    /// Timed iterations that the user chose, for all sizes; reduced only by a time limit of the
    /// user's.
    pub(crate) iterations: Option<usize>,
    pub(crate) skip: Option<usize>,
    pub(crate) window: usize,
    /// Every second rank, in turn, begins its iterations this many microseconds late. None: an
    /// iteration follows the other.
    pub(crate) skew: Option<f64>,
    pub(crate) validate: bool,
    /// `init` only: report the time of MPI_Init and the memory after it, which disturbs the
    /// wall-clock time.
    pub(crate) inspect: bool,
    /// The percentiles to report.
    pub(crate) percentiles: Vec<f64>,
    /// The machine is modelled: in virtual time all iterations but those of streams take
    /// equally long, so few are enough.
    pub(crate) modelled: bool,
    /// Time limit for one size in seconds; the number of iterations is reduced to fit. `None`: the
    /// usual limit, which does not apply to iterations that the user chose.
    pub(crate) seconds_per_size: Option<f64>,
    /// Nonblocking collectives: calls of MPI_Test while computing.
    pub(crate) test_calls: usize,
    /// Neighbourhood collectives: the communicator.
    pub(crate) topology: Topology,
    /// The folder for the file of a file benchmark; see [`crate::file_folder`].
    pub(crate) folder: Option<PathBuf>,
}

impl WorkerPlan {
    pub(crate) fn new(benchmark: Benchmark, range: Option<&SizeRange>) -> Result<WorkerPlan> {
        let sizes = match (benchmark.sized(), range) {
            (true, range) => range.unwrap_or(&SizeRange::default()).sizes(benchmark)?,
            (false, None) => vec![0],
            (false, Some(_)) => bail!(
                "-m is not for {}, which has no message sizes",
                benchmark.name()
            ),
        };
        Ok(WorkerPlan {
            benchmark,
            sizes,
            iterations: None,
            skip: None,
            window: 64,
            skew: None,
            validate: false,
            inspect: false,
            percentiles: Vec::new(),
            modelled: false,
            seconds_per_size: None,
            test_calls: 0,
            topology: Topology::Grid(2),
            folder: None,
        })
    }

    /// This plan for one of its sizes.
    pub(crate) fn of_size(&self, size: usize) -> WorkerPlan {
        WorkerPlan {
            sizes: vec![size],
            ..self.clone()
        }
    }

    /// Each size has a job of its own. In virtual time a stream takes the time that
    /// follows from the slots of a packet ring in which it begins; after other sizes that is
    /// another one. Nothing disturbs a modelled machine, so such a difference never averages out.
    pub(crate) fn sizes_apart(&self) -> bool {
        let pairs = matches!(self.benchmark.family(), Family::Latency | Family::Bandwidth);
        self.modelled && pairs
    }

    pub(crate) fn repeats(&self, size: usize) -> Repeats {
        let (skip, iterations) = match (self.benchmark.family(), size > LARGE) {
            (Family::Latency | Family::OneSided, false) => (100, 10_000),
            (Family::Latency | Family::OneSided, true) => (10, 1_000),
            (Family::Bandwidth, false) => (10, 100),
            (Family::Bandwidth, true) => (2, 20),
            (Family::File | Family::Collective, false) => (100, 1_000),
            (Family::File | Family::Collective, true) => (10, 100),
            (Family::Start | Family::FirstTouch, _) => (0, 1),
            (Family::Kernel, _) => (3, 100),
        };
        let (skip, iterations) = match (self.modelled, self.benchmark.family()) {
            (false, _) => (skip, iterations),
            // The windows of a stream do not take equal times, but those of long messages do.
            (true, Family::Bandwidth) if size <= LARGE => (skip, iterations),
            (true, Family::Bandwidth) if size <= VERY_LARGE => (10, iterations),
            (true, _) => (skip.min(10), iterations / 50 + 3),
        };
        Repeats {
            skip: self.skip.unwrap_or(skip),
            iterations: self.iterations.unwrap_or(iterations),
        }
    }

    /// The iterations of `size` if one takes `seconds`. A library with a barrier of milliseconds
    /// must not take minutes.
    pub(crate) fn affordable(&self, size: usize, seconds: f64) -> Repeats {
        let wanted = self.repeats(size);
        if !self.is_limited() || seconds <= 0.0 {
            return wanted;
        }
        let limit = self.seconds_per_size.unwrap_or(USUAL_SECONDS_PER_SIZE);
        let fitting = (limit / seconds) as usize;
        if fitting >= wanted.iterations {
            return wanted;
        }
        let iterations = fitting.max(5);
        let skip = wanted.skip.min(iterations / 10);
        let skip = match self.seconds_per_size {
            Some(_) => skip,
            None => self.skip.unwrap_or(skip),
        };
        Repeats { skip, iterations }
    }

    /// The iterations of a size may be reduced to fit a time.
    pub(crate) fn is_limited(&self) -> bool {
        let chosen = self.iterations.is_some() || self.modelled;
        self.seconds_per_size.is_some() || !chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_messages_are_repeated_less() {
        let plan = WorkerPlan::new(Benchmark::Latency, None).unwrap();
        assert_eq!(
            plan.repeats(8192),
            Repeats {
                skip: 100,
                iterations: 10_000
            }
        );
        assert_eq!(
            plan.repeats(8193),
            Repeats {
                skip: 10,
                iterations: 1_000
            }
        );
        let plan = WorkerPlan {
            iterations: Some(7),
            skip: Some(0),
            ..plan
        };
        assert_eq!(
            plan.repeats(1 << 20),
            Repeats {
                skip: 0,
                iterations: 7
            }
        );
    }

    #[test]
    fn slow_sizes_are_cut_to_the_time_given_unless_the_user_said_how_many() {
        let plan = WorkerPlan::new(Benchmark::collective("allreduce"), None).unwrap();
        assert_eq!(plan.affordable(4, 1e-6), plan.repeats(4));
        assert_eq!(
            plan.affordable(4, 0.01),
            Repeats {
                skip: 10,
                iterations: 100
            }
        );
        assert_eq!(
            plan.affordable(4, 10.0),
            Repeats {
                skip: 0,
                iterations: 5
            }
        );
        let plan = WorkerPlan {
            iterations: Some(300),
            ..plan
        };
        assert_eq!(plan.affordable(4, 10.0).iterations, 300);
        let plan = WorkerPlan {
            seconds_per_size: Some(0.5),
            skip: Some(30),
            ..plan
        };
        let (skip, iterations) = (5, 50);
        assert_eq!(plan.affordable(4, 0.01), Repeats { skip, iterations });
        assert_eq!(plan.affordable(4, 1e-6), plan.repeats(4));
    }
}
