//! A resource that does one thing at a time, first come, first served.

use sim::Time;

/// A resource that does one thing at a time.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fifo {
    pub free: Time,
}

impl Fifo {
    /// Occupies the resource for `time`, from `at` or from when it is free; returns the end.
    #[inline]
    pub(crate) fn take(&mut self, at: Time, time: Time) -> Time {
        self.free = self.free.max(at) + time;
        self.free
    }
}
