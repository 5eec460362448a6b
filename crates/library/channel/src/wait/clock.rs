//! The clock by which a rank lives: the wall clock, or the virtual time of its modelled machine.

use std::time::Instant;

use crate::Router;
use crate::transports::each;
use crate::waitable::Waitable;

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

impl Router {
    /// Wakes the other threads of this rank, which may sleep for a message that has just arrived.
    pub fn wake_threads(&self) {
        each!(&self.transports, transport => transport.ring_own());
    }

    /// A transport lets time pass by itself, through the rank's node.
    pub(crate) fn passes_time(&self) -> bool {
        each!(&self.transports, transport => {
            if transport.passes_time() {
                return true;
            }
        });
        false
    }

    /// Devices reach all peers, and no rank could ring this one's doorbell.
    pub(crate) fn only_devices(&self) -> bool {
        each!(&self.transports, transport => {
            if transport.has_ringers() {
                return false;
            }
        });
        self.passes_time()
    }

    /// This host's processors do the work of the rank's devices, so a rank that spins keeps them
    /// from it.
    pub(crate) fn by_processor(&self) -> bool {
        each!(&self.transports, transport => {
            if transport.needs_processors() {
                return true;
            }
        });
        false
    }
}
