//! The clock by which a rank lives: the wall clock, or the virtual time of its modelled machine.

use std::time::Instant;

use device::VirtualTime;

use crate::Router;

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
    /// The program enters a call of the library, after `computed` nanoseconds of computing. Only
    /// virtual time needs this.
    pub fn enter(&mut self, call: &'static str, computed: u64) {
        if let Some(rdma) = &mut self.rdma {
            rdma.node().enter(call, computed);
        }
    }

    /// The call returns to the program, a poll perhaps without a result.
    pub fn leave_call(&mut self, has_result: bool) {
        if let Some(rdma) = &mut self.rdma {
            rdma.node().leave(has_result);
        }
    }

    /// The rank's virtual time, if it runs on a modelled machine. Reading it is not charged.
    pub fn virtual_time(&mut self) -> Option<VirtualTime> {
        let accounting = self.rdma.as_mut()?.node().accounting()?;
        Some(accounting.time())
    }

    /// Time is virtual: the rank runs on a modelled machine.
    pub fn is_virtual(&mut self) -> bool {
        self.rdma
            .as_mut()
            .is_some_and(|rdma| rdma.node().is_virtual())
    }

    /// The devices' clock, in nanoseconds, if the rank has devices.
    pub fn device_now(&mut self) -> u64 {
        self.rdma.as_mut().map_or(0, |rdma| rdma.node().now())
    }

    /// The rank waits through its node, because no peer could ring a doorbell: time passes only
    /// while it waits.
    #[inline]
    pub fn waits_through_node(&self) -> bool {
        self.rdma.is_some() && self.shm.is_none()
    }

    /// Wakes the other threads of this rank, which may sleep for a message that has just arrived.
    pub fn wake_threads(&self) {
        if let Some(shm) = &self.shm {
            shm.ring_own();
        }
    }

    /// Devices reach all peers, and no rank could ring this one's doorbell.
    pub(crate) fn only_devices(&self) -> bool {
        let alone = self.shm.as_ref().is_none_or(|shm| shm.local().count() == 1);
        self.rdma.is_some() && alone
    }

    /// This host's processors do the work of the rank's devices, so a rank that spins keeps them
    /// from it.
    pub(crate) fn by_processor(&self) -> bool {
        self.rdma
            .as_ref()
            .is_some_and(|rdma| rdma.needs_processors())
    }
}
