//! Where the time of one message goes that has the machine to itself: rows whose sum is its one-way latency, to the
//! picosecond.
//!
//! Packets of one message follow each other through the stages bus, link and bus; each stage stores a whole packet before
//! it forwards it. The rows of these stages are those of the critical path: the chain of packets, each waiting for the one
//! before it in the same stage or for itself in the stage before, that ends with the last packet's arrival.

use crate::cost::{Costs, Resource};
use crate::packet::{self, Operation, Transport};
use crate::units::{Bytes, Nanos};

/// One step of the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub step: &'static str,
    /// What is busy meanwhile; `None` for what only takes time.
    pub resource: Option<Resource>,
    /// How many of them are on the critical path.
    pub count: u64,
    pub time: Nanos,
}

/// The rows of one RDMA write, send or RDMA read of `payload` over reliable connection, over `hops` switches. Small
/// payloads of writes and sends stand in the work request where the HCA can.
///
/// A write ends when a processor that polls its memory has seen it; a send, when its completion is seen; a read, when the
/// asking processor sees the last byte.
pub fn explain(costs: &Costs, payload: Bytes, operation: Operation, hops: u32) -> Vec<Row> {
    let inline = operation != Operation::Read && costs.fits_inline(payload);
    explain_posted(costs, payload, operation, inline, hops)
}

/// The same, where the poster says whether the payload stands in the work request.
pub fn explain_posted(
    costs: &Costs,
    payload: Bytes,
    operation: Operation,
    inline: bool,
    hops: u32,
) -> Vec<Row> {
    let mut rows = Rows(Vec::new());
    let inlined = if inline { payload } else { Bytes(0) };
    rows.one("post", Some(Resource::Cpu), costs.post());
    rows.add(
        "MMIO, lines",
        None,
        costs.lines(inlined),
        costs.mmio(inlined),
    );
    if let Some(bus) = costs.fetch(inlined) {
        rows.one("PCI, ask for work request", None, costs.read_latency());
        rows.one("PCI read of work request", Some(Resource::BusDown), bus);
    }
    rows.one("HCA, out", None, costs.send());
    if operation == Operation::Read {
        rows.one(
            "link, request",
            Some(Resource::Link),
            costs.wire(packet::READ_REQUEST),
        );
        flight(&mut rows, costs, hops);
        rows.one("HCA, in", None, costs.receive());
    }
    if !inline && payload.0 > 0 {
        rows.one("PCI, ask for payload", None, costs.read_latency());
    }
    let stages = critical_path(costs, payload, operation, inline, hops);
    rows.add(
        "PCI read, packets",
        Some(Resource::BusDown),
        stages[0].count,
        stages[0].time,
    );
    rows.add(
        "link, packets",
        Some(Resource::Link),
        stages[1].count,
        stages[1].time,
    );
    flight(&mut rows, costs, hops);
    rows.one("HCA, in", None, costs.receive());
    if operation == Operation::Send {
        rows.one("HCA, match a receive", None, costs.receive_match());
    }
    rows.add(
        "PCI write, packets",
        Some(Resource::BusUp),
        stages[2].count,
        stages[2].time,
    );
    if operation == Operation::Send {
        rows.one(
            "PCI write of completion",
            Some(Resource::BusUp),
            costs.completion(),
        );
    }
    rows.one("PCI, until visible", None, costs.write_latency());
    rows.one("poll", Some(Resource::Cpu), costs.poll());
    rows.0
}

/// The sum of the rows.
pub fn total(rows: &[Row]) -> Nanos {
    rows.iter().map(|row| row.time).sum()
}

fn flight(rows: &mut Rows, costs: &Costs, hops: u32) {
    let (system, cables) = (costs.system(), u64::from(hops) + 1);
    rows.add("cables", None, cables, system.cable_time() * cables);
    rows.add(
        "error correction",
        None,
        cables,
        system.link().correction * cables,
    );
    rows.add(
        "switches",
        None,
        u64::from(hops),
        system.switch.latency * u64::from(hops),
    );
}

struct Rows(Vec<Row>);

impl Rows {
    fn one(&mut self, step: &'static str, resource: Option<Resource>, time: Nanos) {
        self.add(step, resource, 1, time);
    }

    /// Steps that take no time are left out.
    fn add(&mut self, step: &'static str, resource: Option<Resource>, count: u64, time: Nanos) {
        if time > Nanos::ZERO {
            self.0.push(Row {
                step,
                resource,
                count,
                time,
            });
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Share {
    count: u64,
    time: Nanos,
}

/// The moment when a stage has finished a packet, from when the first could begin, and what the chain that led there is
/// made of. Flight and chip between link and write are counted in `moment` alone: every chain crosses them once.
#[derive(Clone, Copy, Default)]
struct Chain {
    moment: Nanos,
    shares: [Share; 3],
}

impl Chain {
    /// The later of two; where they are equal, the packet's own way.
    fn later(own: Chain, before: Chain) -> Chain {
        if before.moment > own.moment {
            before
        } else {
            own
        }
    }

    fn then(mut self, stage: usize, time: Nanos) -> Chain {
        self.moment += time;
        self.shares[stage].time += time;
        self.shares[stage].count += 1;
        self
    }
}

fn critical_path(
    costs: &Costs,
    payload: Bytes,
    operation: Operation,
    inline: bool,
    hops: u32,
) -> [Share; 3] {
    let flight = costs.flight(hops) + costs.receive();
    let (packets, mtu) = (packet::packets(payload, costs.mtu()), costs.mtu().0);
    let mut ends = [Chain::default(); 3];
    for number in 0..packets {
        let piece = Bytes((payload.0 - number * mtu).min(mtu));
        let (first, last) = (number == 0, number + 1 == packets);
        let internal = costs.internal(piece);
        let read = if inline {
            Nanos::ZERO
        } else {
            costs.read(piece).max(internal)
        };
        ends[0] = ends[0].then(0, read);
        let link = costs.link(piece, operation, Transport::Rc, first, last);
        ends[1] = Chain::later(ends[0], ends[1]).then(1, link);
        let mut arrived = ends[1];
        arrived.moment += flight;
        ends[2] = Chain::later(arrived, ends[2]).then(2, costs.write(piece).max(internal));
    }
    ends[2].shares
}
