//! The wall clock of a rank.

use std::time::Instant;

/// Nanoseconds of wall-clock time since the rank began.
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
