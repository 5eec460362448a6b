//! The estimate of the bandwidth of a link or of a card's slot, learned from completions.
//!
//! Three figures:
//! - `recent` follows the samples at once. It limits the work that a link holds;
//! - `target` is the mean of samples, which follows lasting changes fast and noise slowly;
//! - `bandwidth` follows the target by one step at most per completion of the endpoint. It decides
//!   the shares.
//!
//! Bound: one completion changes the bandwidth of any link by a factor of 1 + 1/[`STEP`] at most.
//! The share of a link is its bandwidth divided by the sum of all. So one completion changes the
//! share by the square of that factor at most, and ten completions by (1 + 1/90)²⁰ < 1.25.

/// One completion changes a bandwidth by at most the bandwidth divided by this number.
const STEP: u64 = 90;
/// A sample close to the target moves the target by their difference divided by this number.
const CALM: u64 = 16;
/// A sample is a change if it differs from the target by more than the target divided by this
/// number. The weight of a change is one half.
const CHANGE: u64 = 4;

/// An estimate of the bandwidth of a link or slot, in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    bandwidth: u64,
    target: u64,
    recent: u64,
}

impl Estimate {
    pub(super) fn new(bandwidth: u64) -> Estimate {
        let bandwidth = bandwidth.clamp(1, MOST);
        Estimate {
            bandwidth,
            target: bandwidth,
            recent: bandwidth,
        }
    }

    /// The bandwidth by which a schedule divides a transfer among links, in bytes per second.
    pub(super) fn bandwidth(&self) -> u64 {
        self.bandwidth
    }

    /// The bandwidth by which the end of posted work is predicted, in bytes per second. A fall
    /// shows in it at once.
    pub(super) fn pessimistic(&self) -> u64 {
        self.bandwidth.min(self.recent)
    }

    /// Corrects the estimate by a sample of the bandwidth.
    pub(super) fn sample(&mut self, sample: u64) {
        let sample = sample.clamp(1, MOST);
        self.recent = self.recent.midpoint(sample);
        let weight = match sample.abs_diff(self.target) > self.target / CHANGE {
            true => 2,
            false => CALM,
        };
        self.target = toward(
            self.target,
            sample,
            sample.abs_diff(self.target).div_ceil(weight),
        );
    }

    /// Corrects the estimate: the bandwidth is at least `sample`.
    pub(super) fn at_least(&mut self, sample: u64) {
        if sample > self.target {
            self.sample(sample);
        }
    }

    /// Moves the estimate towards the target by at most one step.
    pub(super) fn follow(&mut self) {
        let step = match self.target < self.bandwidth {
            true => self.bandwidth / (STEP + 1),
            false => self.bandwidth / STEP,
        };
        self.bandwidth = toward(self.bandwidth, self.target, step.max(1));
    }
}

/// The highest bandwidth that is believed: 1 PB/s.
const MOST: u64 = 1_000_000_000_000_000;

/// `from`, moved towards `to` by at most `step`.
fn toward(from: u64, to: u64, step: u64) -> u64 {
    match from < to {
        true => from.saturating_add(step).min(to),
        false => from.saturating_sub(step).max(to),
    }
}

/// The bandwidth of `bytes` in `elapsed` nanoseconds, in bytes per second.
pub(super) fn rate(bytes: u64, elapsed: u64) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(elapsed.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// The time of `bytes` at `bandwidth` bytes per second, in nanoseconds.
pub(super) fn duration(bytes: u64, bandwidth: u64) -> u64 {
    let time = match bytes.checked_mul(1_000_000_000) {
        Some(product) => return product / bandwidth.max(1),
        None => u128::from(bytes) * 1_000_000_000 / u128::from(bandwidth.max(1)),
    };
    u64::try_from(time).unwrap_or(u64::MAX)
}

/// The number of bytes that `bandwidth` bytes per second carry in `time` nanoseconds.
pub(super) fn capacity(bandwidth: u64, time: u64) -> u64 {
    let bytes = u128::from(bandwidth) * u128::from(time) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
