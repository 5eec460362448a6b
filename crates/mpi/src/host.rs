//! What a rank needs of the world besides messages: a clock, and a way to let others run.

use std::time::Instant;

pub trait Host: Send + Sync {
    /// Nanoseconds since some fixed moment.
    fn now(&self) -> u64;
    /// Lets somebody else have this core.
    fn give_way(&self);
    /// Is there a core for each rank of this machine, so that spinning takes nothing from a peer?
    fn core_per_rank(&self) -> bool;
}

/// The wall clock and the operating system's scheduler.
pub struct RealHost {
    start: Instant,
    core_per_rank: bool,
}

impl RealHost {
    /// For `ranks` ranks on this machine.
    pub fn new(ranks: usize) -> RealHost {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        RealHost {
            start: Instant::now(),
            core_per_rank: ranks <= cores,
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

    fn core_per_rank(&self) -> bool {
        self.core_per_rank
    }
}
