//! The schedule of the signals that end a job, each stronger than the previous one.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

/// The time between a signal that ends processes and the next, stronger one.
pub(crate) const GRACE: Duration = Duration::from_millis(300);
/// The interval between repetitions of SIGKILL, for processes that started meanwhile.
const AGAIN: Duration = Duration::from_millis(20);

/// The signals that are still to be sent, each with its time.
pub(crate) struct KillSequence(VecDeque<(Instant, Signal)>);

impl KillSequence {
    /// A sequence whose first signal is due at `now`, each further one after [`GRACE`].
    pub(crate) fn new(signals: impl IntoIterator<Item = Signal>, now: Instant) -> Self {
        let times = (0..).map(|step| now + GRACE * step);
        KillSequence(times.zip(signals).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The time at which the next signal is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.front().map(|&(time, _)| time)
    }

    /// Takes the next signal if it is due.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Signal> {
        self.next().filter(|&time| time <= now)?;
        self.0.pop_front().map(|(_, signal)| signal)
    }

    /// Schedules a signal again, for processes that have started meanwhile.
    pub(crate) fn repeat(&mut self, signal: Signal, now: Instant) {
        self.0.push_back((now + AGAIN, signal));
    }
}
