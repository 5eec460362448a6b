//! The core that takes the interrupts of a host's HCA: it receives packets, runs expired timers,
//! and sends what acknowledgements allow.

use device::{Error, Result};
use model::ModelNode;
use sim::Time;

use crate::context::Context;
use crate::frame::Head;
use crate::network::{Network, Place};

/// The longest segment that the kernel joins from several (GRO), in bytes.
const LONGEST: usize = 65_536;

/// Takes the interrupts of a host, until all processes of both hosts have left. The network must
/// have assigned this part to the rank of `node`.
pub fn take_interrupts(node: ModelNode, network: &Network) -> Result<()> {
    let rank = node.turn().rank() as usize;
    let Place::Interrupts(host) = network.place(rank) else {
        let what = format!("rank {rank} is a process, and takes no interrupts");
        return Err(Error::Invalid(what));
    };
    let network = network.clone();
    let mut core = Core {
        context: Context {
            node,
            network,
            host,
        },
        joined: None,
    };
    match core.run() {
        // The processes that wait in vain report the deadlock.
        Err(Error::Deadlock) => Ok(()),
        other => other,
    }
}

struct Core {
    context: Context,
    /// The sequence number at the end of the joined segment that the last packet belongs to, and
    /// the segment's length in bytes.
    joined: Option<(u64, usize)>,
}

impl Core {
    fn run(&mut self) -> Result<()> {
        let host = self.context.host;
        let network = self.context.network.clone();
        network.open(&mut self.context.node, host)?;
        let mut idle = 0;
        loop {
            let arrived = self
                .context
                .driver(|driver, device| driver.receive.poll(device))?;
            if !arrived.is_empty() && idle > 0 {
                self.interrupt(idle);
                idle = 0;
            }
            let busy = !arrived.is_empty();
            self.joined = None;
            for packet in arrived {
                self.receive(packet)?;
            }
            let now = self.context.settle()?;
            network.host(host).tcp.expire(now);
            self.context.push(false)?;
            self.start_again()?;
            if busy {
                continue;
            }
            if network.is_over() {
                return Ok(());
            }
            let now = self.context.settle()?;
            let timer = network.host(host).tcp.timer();
            let nanos = timer.map_or(u64::MAX, |at| at.saturating_sub(now).div_ceil(1000).max(1));
            idle += self.context.sleep(nanos)?.max(1);
        }
    }

    /// Charges the work of an interrupt, after the core was idle for `idle` picoseconds.
    fn interrupt(&mut self, idle: Time) {
        let kernel = *self.context.network.kernel();
        self.context.node.turn().spend(kernel.coalesce.picos());
        self.context.leave_idle(idle);
        self.context.work(kernel.interrupt);
    }

    /// Processes a packet that has arrived: `packet` is its buffer and its length.
    fn receive(&mut self, packet: (usize, usize)) -> Result<()> {
        let frame = self
            .context
            .driver(|driver, device| driver.receive.take(device, packet))?;
        let (head, payload) = Head::decode(&frame)?;
        if !self.is_joined(&head, payload.len()) {
            self.context.work(self.context.network.kernel().segment_in);
        }
        self.context.use_pages(frame.len());
        if !self.context.network.offloads() {
            self.context.sum_up(payload.len());
        }
        let now = self.context.settle()?;
        let (readers, writers) = {
            let mut host = self.context.network.host(self.context.host);
            let readable = match head {
                Head::Segment { .. } => {
                    host.tcp.take(head, payload, now);
                    host.tcp.readable() > 0 && !payload.is_empty()
                }
                Head::Fragment {
                    datagram,
                    offset,
                    total,
                } => host.udp.take(datagram, offset, total, payload),
            };
            let readers = match readable {
                true => std::mem::take(&mut host.readers),
                false => Vec::new(),
            };
            let writers = match host.tcp.is_writable() {
                true => std::mem::take(&mut host.writers),
                false => Vec::new(),
            };
            (readers, writers)
        };
        self.context.acknowledge(false)?;
        self.context.wake(readers)?;
        self.context.wake(writers)
    }

    /// True if a packet continues the segment before it, so that the kernel joins the two (GRO).
    fn is_joined(&mut self, head: &Head, len: usize) -> bool {
        let Head::Segment { sequence, .. } = *head else {
            return false;
        };
        let end = sequence + len as u64;
        let before = self
            .joined
            .filter(|(end, joined)| *end == sequence && len > 0 && joined + len <= LONGEST);
        let joins = self.context.network.kernel().joins;
        self.joined = Some((end, before.map_or(0, |(_, joined)| joined) + len));
        joins && before.is_some()
    }

    /// Wakes processes that wait for room in the send ring, once half of the ring is free.
    fn start_again(&mut self) -> Result<()> {
        if self
            .context
            .network
            .host(self.context.host)
            .stopped
            .is_empty()
        {
            return Ok(());
        }
        let half = self.context.network.kernel().send_ring as usize / 2;
        if !self.context.has_room(half, false)? {
            return Ok(());
        }
        let stopped = std::mem::take(&mut self.context.network.host(self.context.host).stopped);
        self.context.wake(stopped)
    }
}
