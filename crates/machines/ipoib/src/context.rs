//! A modelled processor that runs the code of its host's kernel, in a system call or after an
//! interrupt.

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
/// The length of a page of memory, in bytes.
const PAGE: usize = 4096;
/// An idle core enters an idle state if it stays idle for this multiple of the time to leave the
/// state (intel_idle.c).
const RESIDENCY: u64 = 2;

/// A modelled processor of a host, with access to the network of the two hosts.
pub(crate) struct Context {
    pub(crate) node: ModelNode,
    pub(crate) network: Network,
    pub(crate) host: usize,
}

impl Context {
    /// Lets all earlier events and ranks go first; returns the time of this processor.
    pub(crate) fn settle(&mut self) -> Result<Time> {
        let turn = self.node.turn();
        turn.settle().map_err(|_| Error::Deadlock)?;
        Ok(turn.now())
    }

    /// The number of the rank to which this processor belongs.
    pub(crate) fn rank(&self) -> u32 {
        self.node.turn().rank()
    }

    pub(crate) fn work(&mut self, time: Nanos) {
        self.node.work(time);
    }

    /// Charges the processor for a copy of `len` bytes.
    pub(crate) fn copy(&mut self, len: usize) {
        if let Some(account) = self.node.accounting() {
            account.charge(Effort::Copy(len));
        }
    }

    /// Charges the allocation and release of the pages of a packet with `len` bytes.
    pub(crate) fn use_pages(&mut self, len: usize) {
        let pages = (len / PAGE) as u64;
        self.work(self.network.kernel().page * pages);
    }

    /// Charges a checksum of `len` bytes. To be called where no HCA computes it.
    pub(crate) fn sum_up(&mut self, len: usize) {
        self.work(self.network.kernel().checksum.time(len as u64));
    }

    /// Waits at most `nanos` nanoseconds; returns the length of the wait in picoseconds.
    pub(crate) fn sleep(&mut self, nanos: u64) -> Result<Time> {
        let since = self.node.turn().now();
        self.node.wait(nanos)?;
        Ok(self.node.turn().now() - since)
    }

    /// Charges the time to leave the idle state, if the core was idle for long enough to enter it.
    /// `idle` is the time for which the core was idle, in picoseconds.
    pub(crate) fn leave_idle(&mut self, idle: Time) {
        let exit = self.network.kernel().idle_exit.picos();
        if idle >= RESIDENCY * exit {
            self.node.turn().spend(exit);
        }
    }

    /// Wakes the processes with these rank numbers, which are of this host, as far as they wait.
    pub(crate) fn wake(&mut self, ranks: Vec<u32>) -> Result<()> {
        for rank in ranks {
            self.work(self.network.kernel().wake);
            self.settle()?;
            self.node.turn().with(|_, clock| clock.wake(rank));
        }
        Ok(())
    }

    /// Calls the host's driver with its device, which belongs to the rank that takes the
    /// interrupts. `then` may make one call of the device that lets earlier ranks go first: they
    /// have gone when it is made, so no other rank finds the host's state borrowed.
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

    /// True if the send ring has room for `packets`. With `waits`, a process waits until it has.
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
                // Completions may have arrived before this processor was in the list.
                host.stopped.push(rank);
            }
        }
    }

    /// Charges the work of continuing a process that has been woken after `idle` picoseconds.
    pub(crate) fn wake_up(&mut self, idle: Time) {
        self.leave_idle(idle);
        self.work(self.network.kernel().switch);
    }

    /// Sends all segments that TCP allows. If the send ring is full, the call waits for room with
    /// `waits` (a process), and otherwise leaves the rest for later (an interrupt).
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

    /// Takes at most `most` segments to send; none if another processor is sending.
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

    /// Sends an acknowledgement without data, if one is due. `waiting`: a reader waits, so one is
    /// due for any new bytes.
    pub(crate) fn acknowledge(&mut self, waiting: bool) -> Result<()> {
        if !self.has_room(1, false)? {
            // A later acknowledgement says the same.
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

    /// Posts a packet to the driver's send ring, which must have room.
    pub(crate) fn post(&mut self, head: &Head, payload: &[u8]) -> Result<()> {
        self.driver(|driver, device| driver.send.put(device, head, payload))
    }
}
