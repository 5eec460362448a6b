//! A processor that runs the kernel, in a system call or after an interrupt.

use device::{Effort, Error, Node, Result};
use fabric::Nanos;
use model::{ModelDevice, ModelNode};
use sim::Time;

use crate::frame::Head;
use crate::network::{Driver, Network};
use crate::tcp::Segment;

/// The longest TCP segment that the kernel hands to an HCA to be cut, in bytes (Linux's
/// `GSO_MAX_SIZE`).
const LONGEST: usize = 65_536;
/// A page, in bytes.
const PAGE: usize = 4096;
/// The kernel enters an idle state if it lasts this multiple of the time to leave it
/// (intel_idle.c).
const RESIDENCY: u64 = 2;

/// A processor of a host, with the host's network.
pub(crate) struct Context {
    pub(crate) node: ModelNode,
    pub(crate) network: Network,
    pub(crate) host: usize,
}

impl Context {
    /// The time of this processor, after all earlier events and ranks.
    pub(crate) fn settle(&mut self) -> Result<Time> {
        let turn = self.node.turn();
        turn.settle().map_err(|_| Error::Deadlock)?;
        Ok(turn.now())
    }

    /// The number of this rank.
    pub(crate) fn rank(&self) -> u32 {
        self.node.turn().rank()
    }

    pub(crate) fn work(&mut self, time: Nanos) {
        self.node.work(time);
    }

    /// Copies `len` bytes.
    pub(crate) fn copy(&mut self, len: usize) {
        if let Some(account) = self.node.accounting() {
            account.charge(Effort::Copy(len));
        }
    }

    /// Gets and releases the pages of a packet.
    pub(crate) fn use_pages(&mut self, len: usize) {
        let pages = (len / PAGE) as u64;
        self.work(self.network.kernel().page * pages);
    }

    /// Sums up `len` bytes, where no HCA does it.
    pub(crate) fn sum_up(&mut self, len: usize) {
        self.work(self.network.kernel().checksum.time(len as u64));
    }

    /// Waits at most `nanos`; returns the length of the wait.
    pub(crate) fn sleep(&mut self, nanos: u64) -> Result<Time> {
        let since = self.node.turn().now();
        self.node.wait(nanos)?;
        Ok(self.node.turn().now() - since)
    }

    /// Runs again after this core was idle.
    pub(crate) fn leave_idle(&mut self, idle: Time) {
        let exit = self.network.kernel().idle_exit.picos();
        if idle >= RESIDENCY * exit {
            self.node.turn().spend(exit);
        }
    }

    /// Wakes processes of this host that wait.
    pub(crate) fn wake(&mut self, ranks: Vec<u32>) -> Result<()> {
        for rank in ranks {
            self.work(self.network.kernel().wake);
            self.settle()?;
            self.node.turn().with(|_, clock| clock.wake(rank));
        }
        Ok(())
    }

    /// Calls the driver, whose device belongs to the rank that takes the interrupts. `then` makes
    /// at most one call of the device that lets others go first: they have gone when it is made,
    /// so nobody finds the host's state in use.
    pub(crate) fn driver<R>(
        &mut self,
        then: impl FnOnce(&mut Driver, &mut ModelDevice) -> Result<R>,
    ) -> Result<R> {
        self.settle()?;
        let mut host = self.network.host(self.host);
        let driver = host.driver.as_mut().ok_or(Error::Full)?;
        let device = self.node.modelled_rail(0);
        device.share(self.network.interrupts_of(self.host));
        then(driver, device)
    }

    /// True if the ring has room for `packets`. A process waits for it.
    pub(crate) fn has_room(&mut self, packets: usize, waits: bool) -> Result<bool> {
        let rank = self.rank();
        loop {
            let (taken, room) = self.driver(|driver, device| {
                let taken = driver.send.reap(device)?;
                Ok((taken, driver.send.room()))
            })?;
            if room >= packets {
                return Ok(true);
            }
            if taken > 0 {
                continue;
            }
            if !waits {
                return Ok(false);
            }
            self.settle()?;
            let mut host = self.network.host(self.host);
            if host.stopped.contains(&rank) {
                drop(host);
                let idle = self.sleep(u64::MAX)?;
                self.wake_up(idle);
            } else {
                // Completions may have come before this processor was on the list.
                host.stopped.push(rank);
            }
        }
    }

    /// Continues a process that has been woken.
    pub(crate) fn wake_up(&mut self, idle: Time) {
        self.leave_idle(idle);
        self.work(self.network.kernel().switch);
    }

    /// Sends what TCP allows. If the ring is full, a process waits, and an interrupt leaves the
    /// rest for later.
    pub(crate) fn push(&mut self, waits: bool) -> Result<()> {
        let (mtu, offloads) = (self.network.mtu(), self.network.offloads());
        let most = match offloads {
            true => (LONGEST / mtu).max(1),
            false => 1,
        };
        loop {
            if !self.has_room(most, waits)? {
                return Ok(());
            }
            let now = self.settle()?;
            let segments = self.take_segments(most, now);
            let bytes: usize = segments.iter().map(|segment| segment.payload.len()).sum();
            if segments.is_empty() {
                return Ok(());
            }
            self.work(self.network.kernel().segment_out);
            if !offloads {
                self.sum_up(bytes);
            }
            self.driver(|driver, device| {
                for (number, segment) in segments.iter().enumerate() {
                    device.set_cuts(number > 0);
                    driver.send.put(device, &segment.head, &segment.payload)?;
                }
                device.set_cuts(false);
                Ok(())
            })?;
            self.settle()?;
            self.network.host(self.host).sending = false;
        }
    }

    /// Takes segments to send; none if another processor is sending.
    fn take_segments(&mut self, most: usize, now: Time) -> Vec<Segment> {
        let mut host = self.network.host(self.host);
        if host.sending {
            return Vec::new();
        }
        let next = || host.tcp.segment(now);
        let segments: Vec<Segment> = std::iter::from_fn(next).take(most).collect();
        host.sending = !segments.is_empty();
        segments
    }

    /// Sends an acknowledgement alone, if one is due. A `waiting` reader makes any due.
    pub(crate) fn acknowledge(&mut self, waiting: bool) -> Result<()> {
        if !self.has_room(1, false)? {
            // Later ones say the same.
            return Ok(());
        }
        self.settle()?;
        let head = self.network.host(self.host).tcp.acknowledgement(waiting);
        match head {
            Some(head) => {
                self.work(self.network.kernel().segment_out);
                self.post(&head, &[])
            }
            None => Ok(()),
        }
    }

    /// Gives a packet to the driver. There must be room.
    pub(crate) fn post(&mut self, head: &Head, payload: &[u8]) -> Result<()> {
        self.driver(|driver, device| driver.send.put(device, head, payload))
    }
}
