//! The overlap of a nonblocking collective with computing, by the procedure of the OSU benchmarks.
//!
//! A rank starts the operation, computes for as long as the operation takes without computing, and
//! waits. The overlap is the share of the operation's time that is hidden behind the computing.

use std::hint::black_box;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::ffi::Mpi;

/// The times of operations with computing on one rank, summed over all iterations, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Overlapped {
    /// The time from the start of the operation to the end of the wait.
    pub(crate) overall: f64,
    /// The time of the computing alone, without communication and calls of MPI_Test.
    pub(crate) compute: f64,
}

impl Overlapped {
    pub(crate) fn add(&mut self, other: Overlapped) {
        self.overall += other.overall;
        self.compute += other.compute;
    }
}

/// The mean times of one operation over all ranks, in microseconds, and the overlap in percent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Overlap {
    pub(crate) overall: f64,
    pub(crate) compute: f64,
    pub(crate) percent: f64,
}

impl Overlap {
    pub(crate) fn new(overall: f64, compute: f64, pure: f64) -> Overlap {
        // The difference of two times may be below 0 because of the clock's resolution.
        let added = (overall - compute) / pure;
        let percent = if pure > 0.0 {
            100.0 - added * 100.0
        } else {
            0.0
        };
        Overlap {
            overall,
            compute,
            percent: percent.clamp(0.0, 100.0),
        }
    }
}

/// Computes for `seconds` by the clock, divided into `tests` equal parts, each followed by a call
/// of `test` until the operation is complete. Returns the time spent in `test`, in seconds.
pub(crate) fn compute(
    mpi: &Mpi,
    seconds: f64,
    tests: usize,
    mut test: impl FnMut() -> Result<bool>,
) -> Result<f64> {
    let (mut completed, mut testing) = (false, 0.0);
    for _ in 0..tests {
        compute_for(mpi, seconds / tests as f64);
        if !completed {
            let begin = mpi.seconds();
            completed = test()?;
            testing += mpi.seconds() - begin;
        }
    }
    if tests == 0 {
        compute_for(mpi, seconds);
    }
    Ok(testing)
}

fn compute_for(mpi: &Mpi, seconds: f64) {
    let begin = mpi.seconds();
    let mut numbers = [1.0f64; 16];
    while mpi.seconds() - begin < seconds {
        work(&mut numbers);
    }
    black_box(numbers);
}

/// A few tens of nanoseconds of arithmetic, so that computing ends close to the given time.
fn work(numbers: &mut [f64; 16]) {
    for _ in 0..8 {
        for number in numbers.iter_mut() {
            *number = black_box(*number) * 0.999_999 + 1e-6;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_the_hidden_share_of_the_communication() {
        let percent = |overall, compute, pure| Overlap::new(overall, compute, pure).percent;
        // All hidden, half hidden, nothing hidden, and slower than without overlap.
        assert_eq!(percent(100.0, 100.0, 80.0), 100.0);
        assert_eq!(percent(140.0, 100.0, 80.0), 50.0);
        assert_eq!(percent(180.0, 100.0, 80.0), 0.0);
        assert_eq!(percent(300.0, 100.0, 80.0), 0.0);
        assert_eq!(percent(0.0, 0.0, 0.0), 0.0);
    }
}
