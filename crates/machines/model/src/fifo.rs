//! A resource that serves one request at a time, first come, first served.

use sim::Time;

/// A resource that serves one request at a time. `free` is the time at which it has served all.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fifo {
    pub free: Time,
}

impl Fifo {
    /// Occupies the resource for `time`, from `at` or from the end of earlier uses on; returns the
    /// end.
    #[inline]
    pub(crate) fn take(&mut self, at: Time, time: Time) -> Time {
        self.free = self.free.max(at) + time;
        self.free
    }
}
