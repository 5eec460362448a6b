//! The cost of each step of a message, and the resource that the step occupies. A [`Costs`] belongs
//! to one rail of a system. A simulation charges its resources with these times, and
//! [`explain`](mod@crate::explain) adds them up.
//!
//! The path of a message: the processor posts a work request, and its store reaches the HCA (MMIO).
//! Without BlueFlame the HCA fetches the work request. The HCA's engine takes it and reads the
//! payload from memory, unless it is inline. Each packet then crosses bus, link, cables and
//! switches, and the receiver's bus; bus and link store a whole packet before they forward it. The
//! write becomes visible, and the receiving processor's poll finds it.

use crate::packet::{self, Operation, Transport};
use crate::rails::Rail;
use crate::system::System;
use crate::units::{Bytes, GbPerSec, Nanos, PerSec};

/// A resource of a host or HCA. It serves one request or packet at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// The processor of a host.
    Cpu,
    /// The HCA's engine that takes work requests from queue pairs.
    Engine,
    /// The bus from memory to HCA.
    BusDown,
    /// The bus from HCA to memory: the same lines as `BusDown` if the bus is half duplex.
    BusUp,
    /// The outgoing link of a port.
    Link,
    /// The HCA's internal buffer, which both directions share.
    Internal,
}

impl Resource {
    /// All resources of a path, in the order in which a message uses them.
    pub const ALL: [Resource; 6] = [
        Resource::Cpu,
        Resource::Engine,
        Resource::BusDown,
        Resource::BusUp,
        Resource::Link,
        Resource::Internal,
    ];

    /// The name of the resource in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "processor",
            Resource::Engine => "HCA engine",
            Resource::BusDown => "bus, to HCA",
            Resource::BusUp => "bus, to memory",
            Resource::Link => "link",
            Resource::Internal => "HCA buffer",
        }
    }
}

/// A cache line: the unit of `Host::dma_read`, of `Host::dma_write` and of one BlueFlame store.
pub const LINE: Bytes = Bytes(64);

/// A page: the unit of pinning and of the HCA's address translation.
pub const PAGE: Bytes = Bytes(4096);

/// The times of the steps of a message on one rail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    system: System,
    rail: Rail,
    link: GbPerSec,
    /// The bytes that the link adds to each packet.
    framing: u64,
    bus: GbPerSec,
    /// The one-way latency between sockets, if this rail's HCA is attached to the other socket.
    crossing: Nanos,
    /// The share of the host's time to read a cache line that the transfer over the bus takes.
    read_line: Nanos,
    /// The share of the host's time to write a cache line that the transfer over the bus takes.
    write_line: Nanos,
}

impl Costs {
    /// The costs of a rail of the system's list, counted from 0.
    pub fn of(system: &System, rail: u32) -> Costs {
        let rail = system.rail(rail);
        // The bus is that of the slot in which the host's times were measured, and not this rail's:
        // a slower bus must not shorten what remains of the times.
        let (timed, slot) = (rail.hca.timed_bus, rail.hca.timed_lanes);
        let timed_line = |overhead: Bytes| (timed.data() * slot).time(LINE.0 + overhead.0);
        Costs {
            link: rail.link_rate(),
            framing: rail.link().framing.map_or(0, |bytes| bytes.0),
            bus: rail.bus_rate(),
            // Ranks run on socket 0.
            crossing: if rail.socket > 0 {
                system.host.crossing
            } else {
                Nanos::ZERO
            },
            read_line: timed_line(timed.completion_overhead),
            write_line: timed_line(timed.write_overhead),
            rail,
            system: *system,
        }
    }

    /// The rail whose costs these functions give.
    pub fn rail(&self) -> &Rail {
        &self.rail
    }

    /// The system that the rail belongs to.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The largest payload of one packet on the link.
    pub fn mtu(&self) -> Bytes {
        self.rail.hca.mtu
    }

    /// True if reads and writes on the bus occupy the same lines.
    pub fn half_duplex(&self) -> bool {
        self.rail.bus().half_duplex
    }

    /// True if the HCA takes `payload` inline.
    pub fn fits_inline(&self, payload: Bytes) -> bool {
        payload <= self.rail.hca.inline
    }

    /// Processor: building a work request and posting it.
    pub fn post(&self) -> Nanos {
        self.system.host.post
    }

    /// The number of cache lines that the processor stores to post a request with `inline` bytes:
    /// the doorbell, or with BlueFlame the whole work request.
    pub fn lines(&self, inline: Bytes) -> u64 {
        match self.rail.hca.blueflame {
            true => (self.rail.hca.work_request.0 + inline.0)
                .div_ceil(LINE.0)
                .max(1),
            false => 1,
        }
    }

    /// Time from the processor's store until the HCA has the request (BlueFlame) or its doorbell.
    pub fn mmio(&self, inline: Bytes) -> Nanos {
        self.system.host.mmio
            + self.system.host.mmio_line * (self.lines(inline) - 1)
            + self.crossing
    }

    /// Bus to the HCA: the fetch of a work request. `None` with BlueFlame, which fetches none.
    pub fn fetch(&self, inline: Bytes) -> Option<Nanos> {
        let request = Bytes(self.rail.hca.work_request.0 + inline.0);
        (!self.rail.hca.blueflame).then(|| self.bus_read(request))
    }

    /// Time from a read request of the HCA until the first line of host memory begins to arrive.
    pub fn read_latency(&self) -> Nanos {
        self.system.host.dma_read.saturating_sub(self.read_line) + self.crossing * 2
    }

    /// Engine: time that one work request occupies it. Requests overlap, so this is no part of a
    /// message's latency.
    pub fn engine(&self) -> Nanos {
        self.rail.hca.message_rate.interval()
    }

    /// Engine: time that a send occupies its queue pair. If the HCA has no rate of sends, it is
    /// that of any work request.
    pub fn engine_of_send(&self) -> Nanos {
        let own = self.rail.hca.send_rate.map(PerSec::interval);
        own.unwrap_or(self.engine())
    }

    /// Engine: time that a read or an atomic occupies its queue pair. If the HCA has no rate of
    /// reads, it is that of any work request.
    pub fn engine_of_read(&self) -> Nanos {
        let own = self.rail.hca.read_rate.map(PerSec::interval);
        own.unwrap_or(self.engine())
    }

    /// Chip: time that a work request of any queue pair occupies it. 0 if the rate has no limit.
    pub fn chip(&self) -> Nanos {
        interval(self.rail.hca.chip_rate)
    }

    /// Chip of the responder: time that the answer to a read or atomic occupies it. 0 if the rate
    /// has no limit.
    pub fn answer(&self) -> Nanos {
        interval(self.rail.hca.answer_rate)
    }

    /// Chip of the responder: time that the execution of an atomic occupies it. 0 if the rate has
    /// no limit.
    pub fn atomic(&self) -> Nanos {
        interval(self.rail.hca.atomic_rate)
    }

    /// Engine: time from the start of one request to the start of the next, in a stream of requests
    /// of one queue pair. On an HCA that serves requests one by one, the next waits until this
    /// payload has been read.
    pub fn turn(&self, payload: Bytes, inline: bool) -> Nanos {
        if !self.rail.hca.one_by_one {
            return self.engine();
        }
        let inlined = if inline { payload } else { Bytes(0) };
        let fetch = self.fetch(inlined).map(|bus| self.read_latency() + bus);
        let read = match inline || payload.0 == 0 {
            true => Nanos::ZERO,
            false => self.read_latency() + self.pieces(payload, |piece| self.read(piece)),
        };
        self.engine().max(fetch.unwrap_or_default() + read)
    }

    /// The sum of `time` over the packets of a message. `time` gets the payload of a packet.
    pub fn pieces(&self, payload: Bytes, time: impl Fn(Bytes) -> Nanos) -> Nanos {
        let mtu = self.mtu();
        let rest = Bytes(payload.0 % mtu.0);
        let rest = if rest.0 > 0 { time(rest) } else { Nanos::ZERO };
        time(mtu) * (payload.0 / mtu.0) + rest
    }

    /// Latency of an outgoing message in the sender's HCA.
    pub fn send(&self) -> Nanos {
        self.rail.hca.send
    }

    /// Latency of an incoming packet in the receiver's HCA.
    pub fn receive(&self) -> Nanos {
        self.rail.hca.receive
    }

    /// Bus to the HCA: the read of `payload` from host memory, in packets of the chipset's size and
    /// no faster than the HCA's read engine.
    pub fn read(&self, payload: Bytes) -> Nanos {
        let engine = self.rail.hca.read_engine;
        self.bus_read(payload)
            .max(engine.map_or(Nanos::ZERO, |rate| rate.time(payload.0)))
    }

    fn bus_read(&self, payload: Bytes) -> Nanos {
        let answers = payload.0.div_ceil(self.system.host.read_completion.0);
        self.bus
            .time(payload.0 + answers * self.rail.bus().completion_overhead.0)
    }

    /// Bus to memory: the HCA's requests for a read of `payload` from host memory.
    pub fn ask(&self, payload: Bytes) -> Nanos {
        let requests = payload.0.div_ceil(self.rail.hca.read_request.0);
        self.bus.time(requests * self.rail.bus().request_overhead.0)
    }

    /// Bus to memory: the write of `payload`.
    pub fn write(&self, payload: Bytes) -> Nanos {
        let packets = payload.0.div_ceil(self.system.host.max_payload.0);
        self.bus
            .time(payload.0 + packets * self.rail.bus().write_overhead.0)
    }

    /// Time from the end of a write on the bus until the processor can see it.
    pub fn write_latency(&self) -> Nanos {
        self.system.host.dma_write.saturating_sub(self.write_line) + self.crossing
    }

    /// Bus to memory: the write of a completion queue entry.
    pub fn completion(&self) -> Nanos {
        self.write(self.rail.hca.completion)
    }

    /// Internal buffer of the HCA: time that `payload` occupies it, on its path in or out.
    pub fn internal(&self, payload: Bytes) -> Nanos {
        self.rail
            .hca
            .internal
            .map_or(Nanos::ZERO, |rate| rate.time(payload.0))
    }

    /// Link: time of one packet with `payload`, the `first` or `last` of its message.
    pub fn link(
        &self,
        payload: Bytes,
        operation: Operation,
        transport: Transport,
        first: bool,
        last: bool,
    ) -> Nanos {
        self.wire(packet::wire(payload, operation, transport, first, last))
    }

    /// Link: time of a packet of `bytes`, which include all headers of InfiniBand, such as an
    /// acknowledgement. The bytes that the link adds to each packet are added here.
    pub fn wire(&self, bytes: u64) -> Nanos {
        self.link.time(bytes + self.framing)
    }

    /// The least time from the start of one packet of a queue pair to the start of the next.
    pub fn pace(&self, payload: Bytes) -> Nanos {
        let rate = self.rail.hca.queue_rate;
        rate.map_or(Nanos::ZERO, |rate| rate.time(payload.0))
    }

    /// Latency of cables and `hops` cut-through switches.
    pub fn flight(&self, hops: u32) -> Nanos {
        self.rail.flight(hops)
    }

    /// Processor: noticing an arrival by polling.
    pub fn poll(&self) -> Nanos {
        self.system.host.poll
    }

    /// HCA: additional latency of a send, which consumes a posted receive.
    pub fn receive_match(&self) -> Nanos {
        self.rail.hca.receive_match
    }

    /// Processor: a copy of `payload` while nothing else uses the memory.
    pub fn copy(&self, payload: Bytes) -> Nanos {
        self.system.host.copy.time(payload.0)
    }

    /// Processor: work within MPI on `bytes` of its rank's own memory.
    pub fn local(&self, bytes: Bytes) -> Nanos {
        let host = &self.system.host;
        host.local.unwrap_or(host.copy).time(bytes.0)
    }

    /// Memory: time that an HCA's read or write of `payload` occupies it.
    pub fn memory(&self, payload: Bytes) -> Nanos {
        self.system.host.memory.time(payload.0)
    }

    /// Memory: time that a processor's copy of `payload` occupies it, which moves each byte several
    /// times.
    pub fn memory_of_copy(&self, payload: Bytes) -> Nanos {
        self.system
            .host
            .memory
            .time(payload.0 * u64::from(self.system.host.copy_traffic))
    }

    /// The number of pages of a registered region that begins at a page boundary.
    pub fn pages(&self, memory: Bytes) -> u64 {
        memory.0.div_ceil(PAGE.0)
    }

    /// Processor: registering a memory region and later deregistering it.
    pub fn register(&self, memory: Bytes) -> Nanos {
        self.system.host.register + self.system.host.register_page * self.pages(memory)
    }

    /// The time from one core's store until another core can see it.
    pub fn handover(&self) -> Nanos {
        self.system.host.handover
    }

    /// Processor: switching from one rail's queue pair to another rail's.
    pub fn rail_switch(&self) -> Nanos {
        self.system.host.rail_switch
    }
}

/// The time between two events at a rate; 0 if the rate has no limit.
fn interval(rate: Option<PerSec>) -> Nanos {
    rate.map_or(Nanos::ZERO, PerSec::interval)
}
