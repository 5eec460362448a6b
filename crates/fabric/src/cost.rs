//! What each step of a message costs, and which resource it keeps busy. One value of [`Costs`] serves one rail of a
//! system; a simulation charges its resources with these times, and [`explain`](mod@crate::explain) adds them up.
//!
//! The way of a message: the processor posts, and its store reaches the HCA (MMIO). Without BlueFlame the HCA fetches the
//! work request. The engine takes it; unless the payload stood in the request, the HCA reads it from memory. Then, packet
//! by packet, each stored and forwarded: bus, link, flight through cables and switches, bus at the other end. Then it is
//! visible, and the processor notices.

use crate::packet::{self, Operation, Transport};
use crate::system::System;
use crate::units::{Bytes, GbPerSec, Nanos};

/// What can be busy: each does one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// The processor of a host.
    Cpu,
    /// The HCA's engine that takes work requests.
    Engine,
    /// The bus from memory to HCA.
    BusDown,
    /// The bus from HCA to memory. The same as `BusDown` where the bus is half duplex.
    BusUp,
    /// A port's link, outwards.
    Link,
    /// The HCA's internal buffer, both directions.
    Internal,
}

impl Resource {
    pub const ALL: [Resource; 6] = [
        Resource::Cpu,
        Resource::Engine,
        Resource::BusDown,
        Resource::BusUp,
        Resource::Link,
        Resource::Internal,
    ];

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

/// The size of what `Host::dma_read`, `Host::dma_write` and one store of BlueFlame move.
pub const LINE: Bytes = Bytes(64);

/// What the operating system pins and the HCA translates.
pub const PAGE: Bytes = Bytes(4096);

/// The times of one rail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    system: System,
    link: GbPerSec,
    bus: GbPerSec,
    /// One way between sockets, if this rail's HCA hangs on the other.
    crossing: Nanos,
    read_line: Nanos,
    write_line: Nanos,
}

impl Costs {
    /// Of rail 0, 1, …
    pub fn of(system: &System, rail: u32) -> Costs {
        let mut costs = Costs {
            link: system.link_rate(),
            bus: system.bus_rate(),
            crossing: if rail > 0 {
                system.host.crossing
            } else {
                Nanos::ZERO
            },
            read_line: Nanos::ZERO,
            write_line: Nanos::ZERO,
            system: *system,
        };
        costs.read_line = costs.bus_read(LINE);
        costs.write_line = costs.write(LINE);
        costs
    }

    pub fn system(&self) -> &System {
        &self.system
    }

    pub fn mtu(&self) -> Bytes {
        self.system.hca.mtu
    }

    /// Whether reads and writes of the bus keep the same lines busy.
    pub fn half_duplex(&self) -> bool {
        self.system.bus().half_duplex
    }

    /// Whether a payload may stand in the work request.
    pub fn fits_inline(&self, payload: Bytes) -> bool {
        payload <= self.system.hca.inline
    }

    /// Processor: build a work request and post it.
    pub fn post(&self) -> Nanos {
        self.system.host.post
    }

    /// Lines that the processor pushes: the doorbell, or the whole work request where there is BlueFlame.
    pub fn lines(&self, inline: Bytes) -> u64 {
        match self.system.hca.blueflame {
            true => (self.system.hca.work_request.0 + inline.0)
                .div_ceil(LINE.0)
                .max(1),
            false => 1,
        }
    }

    /// From the processor's store until the HCA has the request, or knows of it.
    pub fn mmio(&self, inline: Bytes) -> Nanos {
        self.system.host.mmio
            + self.system.host.mmio_line * (self.lines(inline) - 1)
            + self.crossing
    }

    /// Fetching the work request, where the processor did not push it: time on the bus downwards.
    pub fn fetch(&self, inline: Bytes) -> Option<Nanos> {
        let request = Bytes(self.system.hca.work_request.0 + inline.0);
        (!self.system.hca.blueflame).then(|| self.bus_read(request))
    }

    /// From asking for host memory until its first line begins to arrive.
    pub fn read_latency(&self) -> Nanos {
        self.system.host.dma_read.saturating_sub(self.read_line) + self.crossing * 2
    }

    /// Engine: how long one work request keeps it busy. Requests overlap: this is no part of a message's latency.
    pub fn engine(&self) -> Nanos {
        self.system.hca.message_rate.interval()
    }

    /// How long a request keeps the next of its queue pair from the engine, in a row of requests: where they are worked off
    /// one by one, until its payload has been read.
    pub fn turn(&self, payload: Bytes, inline: bool) -> Nanos {
        if !self.system.hca.one_by_one {
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

    /// The sum over the packets of a message.
    pub fn pieces(&self, payload: Bytes, time: impl Fn(Bytes) -> Nanos) -> Nanos {
        let mtu = self.mtu();
        let rest = Bytes(payload.0 % mtu.0);
        let rest = if rest.0 > 0 { time(rest) } else { Nanos::ZERO };
        time(mtu) * (payload.0 / mtu.0) + rest
    }

    /// Way of a message through the chip, out.
    pub fn send(&self) -> Nanos {
        self.system.hca.send
    }

    /// Way of a packet through the chip, in.
    pub fn receive(&self) -> Nanos {
        self.system.hca.receive
    }

    /// Bus downwards: read `payload` from host memory, cut by the chipset, no faster than the HCA's engine reads.
    pub fn read(&self, payload: Bytes) -> Nanos {
        let engine = self.system.hca.read_engine;
        self.bus_read(payload)
            .max(engine.map_or(Nanos::ZERO, |rate| rate.time(payload.0)))
    }

    fn bus_read(&self, payload: Bytes) -> Nanos {
        let answers = payload.0.div_ceil(self.system.host.read_completion.0);
        self.bus
            .time(payload.0 + answers * self.system.bus().completion_overhead.0)
    }

    /// Bus upwards: the requests for a read of `payload`.
    pub fn ask(&self, payload: Bytes) -> Nanos {
        let requests = payload.0.div_ceil(self.system.hca.read_request.0);
        self.bus
            .time(requests * self.system.bus().request_overhead.0)
    }

    /// Bus upwards: write `payload` to host memory.
    pub fn write(&self, payload: Bytes) -> Nanos {
        let packets = payload.0.div_ceil(self.system.host.max_payload.0);
        self.bus
            .time(payload.0 + packets * self.system.bus().write_overhead.0)
    }

    /// From the end of a write on the bus until the processor can see it.
    pub fn write_latency(&self) -> Nanos {
        self.system.host.dma_write.saturating_sub(self.write_line) + self.crossing
    }

    /// Bus upwards: a completion entry.
    pub fn completion(&self) -> Nanos {
        self.write(self.system.hca.completion)
    }

    /// The HCA's internal buffer: `payload` in or out.
    pub fn internal(&self, payload: Bytes) -> Nanos {
        self.system
            .hca
            .internal
            .map_or(Nanos::ZERO, |rate| rate.time(payload.0))
    }

    /// Link: one packet.
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

    /// Link: so many bytes, such as an acknowledgement's.
    pub fn wire(&self, bytes: u64) -> Nanos {
        self.link.time(bytes)
    }

    /// Cables and switches, cut-through.
    pub fn flight(&self, hops: u32) -> Nanos {
        self.system.flight(hops)
    }

    /// Processor: notice what has arrived.
    pub fn poll(&self) -> Nanos {
        self.system.host.poll
    }

    /// HCA: take a posted receive for a send.
    pub fn receive_match(&self) -> Nanos {
        self.system.hca.receive_match
    }

    /// Processor: copy `payload`, with memory to itself.
    pub fn copy(&self, payload: Bytes) -> Nanos {
        self.system.host.copy.time(payload.0)
    }

    /// Memory: how long `payload` keeps it busy, moved once (an HCA's read or write).
    pub fn memory(&self, payload: Bytes) -> Nanos {
        self.system.host.memory.time(payload.0)
    }

    /// Memory: how long a processor's copy of `payload` keeps it busy.
    pub fn memory_of_copy(&self, payload: Bytes) -> Nanos {
        self.system
            .host
            .memory
            .time(payload.0 * u64::from(self.system.host.copy_traffic))
    }

    /// Pages of memory that are registered. Where the memory begins within its first page is left out.
    pub fn pages(&self, memory: Bytes) -> u64 {
        memory.0.div_ceil(PAGE.0)
    }

    /// Processor: register memory, and in the end deregister it.
    pub fn register(&self, memory: Bytes) -> Nanos {
        self.system.host.register + self.system.host.register_page * self.pages(memory)
    }

    /// From one core's store until another core can see it.
    pub fn handover(&self) -> Nanos {
        self.system.host.handover
    }

    /// Processor: turn to another rail than the last.
    pub fn rail_switch(&self) -> Nanos {
        self.system.host.rail_switch
    }
}
