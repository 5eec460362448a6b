//! The costs of the steps on one rail, in tables with a row for each length up to that of a packet.

use device::RequestCosts;
use fabric::explain::{explain, explain_posted, total};
use fabric::limits::{limits, one_way};
use fabric::{Bytes, Costs, Nanos, Operation, System, packet};
use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::message::RequestKind;

/// The greatest length of a packet beyond its payload, in bytes: the longest chain of headers, with
/// room to spare.
const HEADERS: u64 = 128;
/// The number of bytes that an HCA can hold of packets that are read from memory and not yet sent.
/// It bounds how far reading is ahead of a slow link, and so the wait of a small message behind a
/// large one of another queue pair. Assumed, as no data sheet states it: eight packets of 4 KiB.
const BUFFER: u64 = 32 << 10;

/// The length of the write whose time is a rail's latency.
const SHORT_WRITE: Bytes = Bytes(8);
/// The length of the writes whose stream has a rail's bandwidth.
const LONG_WRITE: Bytes = Bytes(1 << 20);

/// The payload rate of long writes on a rail, in bytes per second: that of the rail's bottleneck.
fn bandwidth(costs: &Costs) -> u64 {
    let limits = limits(costs, LONG_WRITE);
    one_way(&limits).map_or(0, |least| least.one_way.bits_per_sec() / 8)
}

/// The number of switches between the hosts that are furthest apart.
fn hops(costs: &Costs) -> u32 {
    let system = costs.system();
    system.hops_on(costs.rail(), 0, system.nodes - 1)
}

/// The time of a write on an idle machine, between the hosts that are furthest apart.
fn write_time(costs: &Costs, payload: Bytes, inline: bool) -> Nanos {
    total(&explain_posted(
        costs,
        payload,
        Operation::Write,
        inline,
        hops(costs),
    ))
}

/// The costs of a work request on an idle machine: the times that do not follow from the bandwidth.
fn request_costs(costs: &Costs) -> RequestCosts {
    let nanos = |time: Nanos| time.picos() / 1000;
    let short = write_time(costs, SHORT_WRITE, costs.fits_inline(SHORT_WRITE));
    let fetched = write_time(costs, SHORT_WRITE, false);
    let packet = write_time(costs, costs.mtu(), false);
    let on_link = costs.mtu().0 * 1_000_000_000_000 / bandwidth(costs).max(1);
    let stored = packet.saturating_sub(fetched).picos();
    let read = explain(costs, SHORT_WRITE, Operation::Read, hops(costs));
    RequestCosts {
        post_ns: nanos(costs.post()),
        poll_ns: nanos(costs.poll()),
        line_ns: match costs.rail().hca.blueflame {
            true => nanos(costs.system().host.mmio_line),
            false => 0,
        },
        fetch_ns: nanos(fetched.saturating_sub(short)),
        store_ps: stored.saturating_sub(on_link) / costs.mtu().0,
        read_ns: nanos(total(&read)),
    }
}

pub(crate) struct Timing {
    pub costs: Costs,
    /// The time in which a processor posts a work request.
    pub post: Time,
    /// The processor's time for a poll that finds a completion or a write.
    pub poll: Time,
    /// The time in which a processor changes to another rail.
    pub rail_switch: Time,
    /// True if the HCA processes the requests of a queue pair one by one.
    pub one_by_one: bool,
    /// True if the processor writes requests into the HCA.
    pub blueflame: bool,
    /// The greatest number of outstanding reads of a queue pair.
    pub reads: u32,
    /// The largest payload of a packet of the port, in bytes.
    pub mtu: u32,
    /// The payload rate that link, slot and chip allow in one direction, in bytes per second.
    pub bandwidth: u64,
    /// The time of a short write between the hosts that are furthest apart.
    pub latency: Time,
    /// The costs of a work request between the hosts that are furthest apart.
    pub request: RequestCosts,
    /// The time that a write occupies its queue pair's engine.
    pub engine: Time,
    /// The time that a send occupies its queue pair's engine.
    pub engine_of_send: Time,
    /// The time that a read or an atomic occupies its queue pair's engine.
    pub engine_of_read: Time,
    /// The time for which a work request occupies the HCA's chip.
    pub chip: Time,
    /// The time that the answer to a read or atomic occupies the responder's chip.
    pub answer: Time,
    /// The time that the execution of an atomic occupies the responder's chip.
    pub atomic: Time,
    /// The greatest number of requests of a queue pair whose payloads are fetched at once.
    pub prefetch: u32,
    /// The latency of an outgoing message in the HCA's chip.
    pub send: Time,
    /// The latency of an incoming packet in the HCA's chip.
    pub receive: Time,
    /// The additional latency of an incoming send, which consumes a posted receive.
    pub matching: Time,
    /// The time from the HCA's read request until the first line of memory begins to arrive.
    pub read_latency: Time,
    /// The time from the end of a write on the bus until the processor can see it.
    pub write_latency: Time,
    /// The time of the write of a completion queue entry on the bus.
    pub completion: Time,
    /// The time of `BUFFER` bytes, or of two packets if that is more, on the link.
    pub buffer: Time,
    /// The times of a packet's payload, by its length in bytes; filled on first use.
    pieces: Vec<Piece>,
    /// The times of a packet on the link, by its length in bytes; filled on first use.
    wire: Vec<Time>,
    within: bool,
    /// True if the HCA has times by the length of requests.
    has_curves: bool,
    /// True if MPI libraries write requests into the HCA themselves.
    pub is_direct: bool,
}

/// The times that the payload of one packet occupies resources, in picoseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Piece {
    known: bool,
    pub read: Time,
    pub ask: Time,
    pub write: Time,
    pub internal: Time,
    pub memory: Time,
}

impl Timing {
    /// The timing of a rail with this number in the system's list.
    pub(crate) fn new(memory: WorldMemory, system: &System, rail: u32) -> Timing {
        let costs = Costs::of(system, rail);
        let (mtu, hca) = (costs.mtu().0, costs.rail().hca);
        // A datagram may come from a port with longer packets.
        let rails = (0..system.rails.count()).map(|rail| system.rail(rail).hca.mtu.0);
        let longest = rails.max().unwrap_or(mtu) + HEADERS;
        let mut pieces = Vec::new_in(memory);
        pieces.resize(longest as usize, Piece::default());
        let mut wire = Vec::new_in(memory);
        wire.resize(longest as usize, 0);
        Timing {
            one_by_one: hca.one_by_one,
            blueflame: hca.blueflame,
            reads: hca.reads,
            mtu: mtu as u32,
            bandwidth: bandwidth(&costs),
            latency: write_time(&costs, SHORT_WRITE, true).picos(),
            request: request_costs(&costs),
            costs,
            post: costs.post().picos(),
            poll: costs.poll().picos(),
            rail_switch: costs.rail_switch().picos(),
            engine: costs.engine().picos(),
            engine_of_send: costs.engine_of_send().picos(),
            engine_of_read: costs.engine_of_read().picos(),
            chip: costs.chip().picos(),
            answer: costs.answer().picos(),
            atomic: costs.atomic().picos(),
            prefetch: hca.prefetch.unwrap_or(u32::MAX),
            send: costs.send().picos(),
            receive: costs.receive().picos(),
            matching: costs.receive_match().picos(),
            read_latency: costs.read_latency().picos(),
            write_latency: costs.write_latency().picos(),
            completion: costs.completion().picos(),
            buffer: costs.wire(BUFFER.max(2 * (mtu + packet::PLAIN))).picos(),
            pieces,
            wire,
            within: false,
            is_direct: hca.direct,
            has_curves: !hca.delay.is_empty() || !hca.interval.is_empty(),
        }
    }

    /// The timing of messages within a host: processors copy, and all else takes no time.
    pub(crate) fn within(memory: WorldMemory, system: &System) -> Timing {
        let mut timing = Timing::new(memory, system, 0);
        timing.pieces.fill(Piece {
            known: true,
            ..Piece::default()
        });
        timing.wire.fill(0);
        (timing.one_by_one, timing.blueflame) = (false, true);
        for time in [
            &mut timing.engine,
            &mut timing.engine_of_send,
            &mut timing.engine_of_read,
            &mut timing.chip,
            &mut timing.answer,
            &mut timing.atomic,
            &mut timing.send,
            &mut timing.receive,
            &mut timing.matching,
            &mut timing.read_latency,
            &mut timing.write_latency,
            &mut timing.completion,
        ] {
            *time = 0;
        }
        timing.prefetch = u32::MAX;
        timing.within = true;
        timing
    }

    /// The time that a work request of this kind occupies its queue pair's engine.
    #[inline]
    pub(crate) fn engine_of(&self, kind: RequestKind) -> Time {
        match kind {
            RequestKind::Write => self.engine,
            RequestKind::Send => self.engine_of_send,
            _ => self.engine_of_read,
        }
    }

    /// The times of a work request of `len` bytes, of a calibration: the additional time until its
    /// bytes are visible, and the least time until its queue pair's next request.
    pub(crate) fn by_length(&self, len: u32) -> (Time, Time) {
        if !self.has_curves {
            return (0, 0);
        }
        let (hca, length) = (&self.costs.rail().hca, u64::from(len));
        (
            hca.delay.at(length).picos(),
            hca.interval.at(length).picos(),
        )
    }

    /// The time from the processor's store until the request with `inlined` bytes is in the HCA.
    pub(crate) fn mmio(&self, inlined: u32) -> Time {
        if self.within {
            return 0;
        }
        self.costs.mmio(Bytes(inlined.into())).picos()
    }

    /// The time of the fetch of a work request on the bus.
    pub(crate) fn fetch(&self, inlined: u32) -> Time {
        let time = self.costs.fetch(Bytes(inlined.into()));
        time.unwrap_or_default().picos()
    }

    /// The times that a payload of `len` bytes, which one packet carries, occupies resources.
    #[inline]
    pub(crate) fn piece(&mut self, len: u32) -> Piece {
        let known = self.pieces[len as usize];
        if known.known {
            known
        } else {
            self.work_out(len)
        }
    }

    #[cold]
    fn work_out(&mut self, len: u32) -> Piece {
        let (costs, payload) = (&self.costs, Bytes(len.into()));
        let piece = Piece {
            known: true,
            read: costs.read(payload).picos(),
            ask: costs.ask(payload).picos(),
            write: costs.write(payload).picos(),
            internal: costs.internal(payload).picos(),
            memory: costs.memory(payload).picos(),
        };
        self.pieces[len as usize] = piece;
        piece
    }

    /// The least time from the start of one packet of a queue pair to the start of the next.
    pub(crate) fn pace(&self, len: u32) -> Time {
        self.costs.pace(Bytes(len.into())).picos()
    }

    /// The time of `bytes` bytes on the link, headers included.
    #[inline]
    pub(crate) fn wire(&mut self, bytes: u64) -> Time {
        let known = &mut self.wire[bytes as usize];
        if *known == 0 && !self.within {
            *known = self.costs.wire(bytes).picos();
        }
        *known
    }
}
