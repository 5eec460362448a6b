//! The wall clock of a rank, which begins at the rank's start.

/// The wall-clock time since the rank started, in nanoseconds.
#[derive(Debug)]
pub(crate) struct WallClock {
    start: u64,
}

impl WallClock {
    pub(crate) fn start() -> WallClock {
        WallClock {
            start: crate::now(),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        crate::now().saturating_sub(self.start)
    }
}
