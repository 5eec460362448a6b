//! A process of a modelled host, and its system calls on sockets.

use device::{Error, Result};
use model::ModelNode;
use sim::Time;

use crate::context::Context;
use crate::frame::LONGEST_DATAGRAM;
use crate::network::{Host, Network, Place};

/// The number of bytes that TCP accepts from a writer before it tries to send.
const PORTION: usize = 65_536;

/// A modelled process of a host, with its calls on sockets.
pub struct Process(Context);

impl Process {
    /// Makes the process of this rank. Returns once the network works.
    pub fn new(node: ModelNode, network: &Network) -> Result<Process> {
        let rank = node.turn().rank() as usize;
        let Place::Process(host, _) = network.place(rank) else {
            let what = format!("rank {rank} takes interrupts, and is no process");
            return Err(Error::Invalid(what));
        };
        let network = network.clone();
        let mut process = Process(Context {
            node,
            network,
            host,
        });
        // The drivers are made before the first barrier, and connected before the second.
        for _ in 0..2 {
            let network = process.0.network.clone();
            network.synchronise(&mut process.0.node)?;
        }
        Ok(process)
    }

    /// The rank's node in the modelled machine.
    pub fn node(&mut self) -> &mut ModelNode {
        &mut self.0.node
    }

    /// The time of the process, in picoseconds.
    pub fn now(&self) -> Time {
        self.0.node.turn().now()
    }

    /// The number of datagrams that were dropped because the receive buffer of this host was full.
    pub fn dropped(&self) -> u64 {
        self.host().udp.dropped()
    }

    /// Sets whether short segments of the connection are sent at once (`TCP_NODELAY`).
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.host().tcp.set_nodelay(nodelay);
    }

    fn host(&self) -> std::cell::RefMut<'_, Host> {
        self.0.network.host(self.0.host)
    }

    /// Writes all bytes to the connection. Returns once TCP has accepted them.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.call();
        while !bytes.is_empty() {
            self.0.settle()?;
            let room = self.host().tcp.room();
            if room == 0 {
                let rank = self.0.rank();
                self.host().writers.push(rank);
                let idle = self.0.sleep(u64::MAX)?;
                self.wake_up(idle, |host| &mut host.writers);
                continue;
            }
            let (now, later) = bytes.split_at(room.min(PORTION).min(bytes.len()));
            self.0.copy(now.len());
            self.0.use_pages(now.len());
            self.0.settle()?;
            self.host().tcp.write(now);
            bytes = later;
            self.0.push(true)?;
        }
        Ok(())
    }

    /// Reads at least one byte from the connection; returns the number of bytes. `None`: none has
    /// arrived for `nanos` nanoseconds.
    pub fn receive(&mut self, into: &mut [u8], nanos: u64) -> Result<Option<usize>> {
        self.call();
        let readable = |host: &Host| Some(host.tcp.readable()).filter(|count| *count > 0);
        let Some(count) = self.await_data(nanos, readable)? else {
            return Ok(None);
        };
        let count = count.min(into.len());
        self.0.copy(count);
        self.0.settle()?;
        let count = self.host().tcp.read(&mut into[..count]);
        self.0.acknowledge(false)?;
        Ok(Some(count))
    }

    /// Sends a datagram. An error if it is empty or too long.
    pub fn send_datagram(&mut self, datagram: &[u8]) -> Result<()> {
        let len = datagram.len();
        if len == 0 || len > LONGEST_DATAGRAM {
            let what = format!("a datagram of {len} B; valid are 1 to {LONGEST_DATAGRAM} B");
            return Err(Error::Invalid(what));
        }
        self.call();
        self.0.copy(len);
        self.0.use_pages(len);
        let parts = self.host().udp.cut(datagram);
        // An HCA computes the checksums of unfragmented datagrams only.
        if parts.len() > 1 || !self.0.network.offloads() {
            self.0.sum_up(len);
        }
        for (head, part) in parts {
            self.0.work(self.0.network.kernel().segment_out);
            self.0.has_room(1, true)?;
            self.0.post(&head, part)?;
        }
        Ok(())
    }

    /// Reads a datagram into `into`, cutting off what does not fit; returns the number of bytes.
    /// `None`: none has arrived for `nanos` nanoseconds.
    pub fn receive_datagram(&mut self, into: &mut [u8], nanos: u64) -> Result<Option<usize>> {
        self.call();
        let Some(len) = self.await_data(nanos, |host| host.udp.next())? else {
            return Ok(None);
        };
        self.0.copy(len);
        self.0.settle()?;
        Ok(self.host().udp.read(into))
    }

    /// Waits until something can be read; returns its length. `None`: nothing has arrived for
    /// `nanos` nanoseconds.
    fn await_data(
        &mut self,
        nanos: u64,
        length: impl Fn(&Host) -> Option<usize>,
    ) -> Result<Option<usize>> {
        let start = self.0.settle()?;
        loop {
            self.0.settle()?;
            if let Some(len) = length(&self.host()) {
                return Ok(Some(len));
            }
            self.0.acknowledge(true)?;
            let now = self.0.settle()?;
            if let Some(len) = length(&self.host()) {
                return Ok(Some(len));
            }
            let left = nanos.saturating_sub((now - start) / 1000);
            if left == 0 {
                return Ok(None);
            }
            let rank = self.0.rank();
            self.host().readers.push(rank);
            let idle = self.0.sleep(left)?;
            self.wake_up(idle, |host| &mut host.readers);
        }
    }

    /// Continues after a wait of `idle` picoseconds. If the rank is still in the list of waiting
    /// processes, nobody has woken it: removes it. Otherwise charges the work of continuing.
    fn wake_up(&mut self, idle: Time, list: impl Fn(&mut Host) -> &mut Vec<u32>) {
        let rank = self.0.rank();
        let listed = {
            let mut host = self.host();
            let list = list(&mut host);
            let before = list.len();
            list.retain(|waiting| *waiting != rank);
            before != list.len()
        };
        if !listed {
            self.0.wake_up(idle);
        }
    }

    /// Charges the processor for a system call.
    fn call(&mut self) {
        self.0.work(self.0.network.kernel().system_call);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let network = self.0.network.clone();
        network.leave(&mut self.0.node);
    }
}
