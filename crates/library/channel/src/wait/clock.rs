//! The wall clock of a rank, which begins at the rank's start.

use std::time::Instant;

/// The wall-clock time since the rank started, in nanoseconds.
#[derive(Debug)]
pub(crate) struct WallClock {
    start: Instant,
}

impl WallClock {
    pub(crate) fn start() -> WallClock {
        WallClock {
            start: Instant::now(),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}
