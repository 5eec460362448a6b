//! The clock by which a rank lives: the wall clock, or the virtual time of its modelled machine.

use std::time::Instant;

use crate::Router;
use crate::transports::each;
use crate::wait::Waitable;

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
    /// The rank waits through its node, because no peer could ring a doorbell: time passes only
    /// while it waits.
    #[inline]
    pub fn waits_through_node(&self) -> bool {
        self.transports.rdma.is_some() && self.transports.shm.is_none()
    }

    /// Wakes the other threads of this rank, which may sleep for a message that has just arrived.
    pub fn wake_threads(&self) {
        if let Some(shm) = &self.transports.shm {
            shm.ring_own();
        }
    }

    /// Devices reach all peers, and no rank could ring this one's doorbell.
    pub(crate) fn only_devices(&self) -> bool {
        let alone = self
            .transports
            .shm
            .as_ref()
            .is_none_or(|shm| shm.local().count() == 1);
        self.transports.rdma.is_some() && alone
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
