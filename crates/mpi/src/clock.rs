//! What a rank needs of the world besides messages: a clock, and a way to let others run.

use std::time::Instant;

pub trait Host: Send + Sync {
    /// Nanoseconds since some fixed moment.
    fn now(&self) -> u64;
    /// Lets somebody else have this core.
    fn give_way(&self);
}

/// The wall clock and the operating system's scheduler.
pub struct RealHost {
    start: Instant,
}

impl Default for RealHost {
    fn default() -> RealHost {
        RealHost {
            start: Instant::now(),
        }
    }
}

impl Host for RealHost {
    #[inline]
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn give_way(&self) {
        std::thread::yield_now();
    }
}
