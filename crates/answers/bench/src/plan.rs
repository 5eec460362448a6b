//! The plan of one benchmark: its sizes and numbers of iterations. The driver makes a
//! [`WorkerPlan`] and passes it to every worker.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::benchmark::{Benchmark, Family};
use crate::operation::Topology;
use crate::sizes::SizeRange;

/// The largest message size in bytes that is not large. Larger messages get fewer iterations.
pub(crate) const LARGE: usize = 8192;

/// The size in bytes above which the windows of a stream take equal times on a modelled machine.
const VERY_LARGE: usize = 256 << 10;

/// The time limit for one size in seconds, unless the user chose iterations or another limit.
const USUAL_SECONDS_PER_SIZE: f64 = 1.0;

/// The numbers of untimed and of timed iterations for one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeats {
    pub(crate) skip: usize,
    pub(crate) iterations: usize,
}

/// All instructions for a worker process: the benchmark and how it is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerPlan {
    pub(crate) benchmark: Benchmark,
    /// The message sizes in bytes, in the order of measurement.
    pub(crate) sizes: Vec<usize>,
    /// The number of timed iterations that the user chose, for all sizes. Only a time limit of the
    /// user reduces it. `None`: the default numbers.
    pub(crate) iterations: Option<usize>,
    pub(crate) skip: Option<usize>,
    pub(crate) window: usize,
    /// The delay of every second rank at the start of an iteration, in microseconds; ranks of
    /// either parity alternate. `None`: iterations follow each other without a barrier.
    pub(crate) skew: Option<f64>,
    pub(crate) validate: bool,
    /// For `init` only: true to report the time of MPI_Init and the memory after it, which
    /// falsifies the wall-clock time.
    pub(crate) inspect: bool,
    /// The percentiles to report.
    pub(crate) percentiles: Vec<f64>,
    /// True if the machine is modelled: in virtual time all iterations except those of streams take
    /// equal times, so a few are enough.
    pub(crate) modelled: bool,
    /// The time limit for one size in seconds; the number of iterations is reduced to fit. `None`:
    /// the default limit, which does not apply to iterations that the user chose.
    pub(crate) seconds_per_size: Option<f64>,
    /// The number of calls of MPI_Test while computing, for nonblocking collectives.
    pub(crate) test_calls: usize,
    /// The communicator of neighbourhood collectives.
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

    /// A copy of this plan with only one of its message sizes.
    pub(crate) fn of_size(&self, size: usize) -> WorkerPlan {
        WorkerPlan {
            sizes: vec![size],
            ..self.clone()
        }
    }

    /// True if each size must be measured by its own job. In virtual time the time of a stream
    /// depends on the slot of the packet ring in which it begins, and so on the sizes measured
    /// before. Nothing disturbs a modelled machine, so such a difference never averages out.
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
            // The windows of a stream take equal times only if messages are long.
            (true, Family::Bandwidth) if size <= LARGE => (skip, iterations),
            (true, Family::Bandwidth) if size <= VERY_LARGE => (10, iterations),
            (true, _) => (skip.min(10), iterations / 50 + 3),
        };
        Repeats {
            skip: self.skip.unwrap_or(skip),
            iterations: self.iterations.unwrap_or(iterations),
        }
    }

    /// The numbers of iterations for `size` if one iteration takes `seconds`. A library whose
    /// barrier takes milliseconds must not take minutes.
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

    /// True if the number of iterations may be reduced to fit a time limit.
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
