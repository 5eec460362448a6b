//! Ending processes by signals, each stronger than the one before.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

/// Between a signal that asks a rank to end and a stronger one.
pub(crate) const GRACE: Duration = Duration::from_millis(300);
/// Between looks for processes that appeared while others were killed.
const AGAIN: Duration = Duration::from_millis(20);

/// The signals still to be sent, and when.
pub(crate) struct Steps(VecDeque<(Instant, Signal)>);

impl Steps {
    pub fn new(signals: impl IntoIterator<Item = Signal>, now: Instant) -> Self {
        let times = (0..).map(|step| now + GRACE * step);
        Steps(times.zip(signals).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the next is due.
    pub fn next(&self) -> Option<Instant> {
        self.0.front().map(|&(time, _)| time)
    }

    /// Takes the next, if it is due.
    pub fn take(&mut self, now: Instant) -> Option<Signal> {
        self.next().filter(|&time| time <= now)?;
        self.0.pop_front().map(|(_, signal)| signal)
    }

    /// The same once more, for what has appeared meanwhile.
    pub fn repeat(&mut self, signal: Signal, now: Instant) {
        self.0.push_back((now + AGAIN, signal));
    }
}
