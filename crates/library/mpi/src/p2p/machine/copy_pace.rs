//! The pace of this rank's copies from the memory of its peers: the number of bytes that one call
//! of the kernel copies.
//!
//! A call costs a fixed time, so its piece should be long. Other peers' packets wait until it
//! returns, so its piece should not take long. The rank measures its own copies, and takes the
//! longest power of two that they move within [`WITHOUT_POLL`].

use std::time::Duration;

/// The time of one copy, during which no packet is polled. A call costs about 1 µs, so this is the
/// length from which longer pieces gain less than 1 %.
const WITHOUT_POLL: Duration = Duration::from_micros(100);
/// The least and the greatest length of a piece in bytes. A copy of the least length is measured
/// well enough.
const LEAST: usize = 128 << 10;
const GREATEST: usize = 8 << 20;

/// The longest piece of a copy from the memory of a peer, by the times of earlier copies.
pub(super) struct CopyPace {
    /// The length of the next copied piece in bytes, a power of two.
    step: usize,
}

impl Default for CopyPace {
    fn default() -> CopyPace {
        CopyPace { step: LEAST }
    }
}

impl CopyPace {
    /// The number of bytes that the next call copies at most.
    pub(super) fn step(&self) -> usize {
        self.step
    }

    /// Runs the copy of a piece of `len` bytes, and adapts the step to its time. The step changes
    /// by a factor of two at most, so that one interrupted copy does not decide.
    pub(super) fn measure<T>(&mut self, len: usize, copy: impl FnOnce() -> T) -> T {
        if len < LEAST {
            return copy();
        }
        let begun = channel::now();
        let copied = copy();
        let took = channel::now().saturating_sub(begun);
        self.record(len, Duration::from_nanos(took));
        copied
    }

    fn record(&mut self, len: usize, took: Duration) {
        if len < LEAST {
            return;
        }
        let within = len as u128 * WITHOUT_POLL.as_nanos() / took.as_nanos().max(1);
        let wanted = within.min(GREATEST as u128) as usize;
        self.step = match self.step {
            step if 2 * step <= wanted => 2 * step,
            step if step > wanted.max(LEAST) => step / 2,
            step => step,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps after copies of whole steps at a rate in bytes per nanosecond.
    fn steps(pace: &mut CopyPace, rate: usize, copies: usize) -> usize {
        for _ in 0..copies {
            let took = Duration::from_nanos((pace.step / rate) as u64);
            pace.record(pace.step, took);
        }
        pace.step
    }

    #[test]
    fn the_step_is_what_a_copy_moves_without_a_poll() {
        let mut pace = CopyPace::default();
        assert_eq!(pace.step(), 128 << 10);
        // 10 GB/s: 1 MB in 100 µs; 25 GB/s: 2.5 MB.
        assert_eq!(steps(&mut pace, 10, 10), 512 << 10);
        assert_eq!(steps(&mut pace, 25, 10), 2 << 20);
        assert_eq!(steps(&mut pace, 10, 10), 512 << 10);
    }

    #[test]
    fn the_step_keeps_its_bounds() {
        let mut pace = CopyPace::default();
        assert_eq!(steps(&mut pace, 1 << 20, 30), GREATEST);
        assert_eq!(steps(&mut pace, 1, 30), LEAST);
    }

    #[test]
    fn one_interrupted_copy_halves_the_step_and_short_copies_do_not_count() {
        let mut pace = CopyPace::default();
        steps(&mut pace, 25, 10);
        pace.record(2 << 20, Duration::from_millis(50));
        assert_eq!(pace.step(), 1 << 20);
        pace.record(4 << 10, Duration::from_millis(50));
        assert_eq!(pace.step(), 1 << 20);
        assert_eq!(pace.measure(0, || 7), 7);
    }
}
