//! The breakdown of a message's time on an idle machine. The sum of the steps is the one-way
//! latency, exact to the picosecond.
//!
//! The packets of a message pass three stages: bus, link, bus. Each stage stores a whole packet
//! before it forwards it. The reported steps of these stages are those of the critical path that
//! ends with the last packet's arrival: each packet on it waits either for its predecessor in the
//! same stage or for its own end in the previous stage.

use crate::components::InvalidValue;
use crate::cost::{Costs, Resource};
use crate::packet::{self, Operation, Transport};
use crate::system::System;
use crate::units::{Bytes, Nanos};

/// One step of a message, with its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct StepCost {
    /// The name of the step.
    pub step: &'static str,
    /// The resource that the step occupies; `None` for pure latency.
    pub resource: Option<Resource>,
    /// The number of times that the step occurs on the critical path.
    pub count: u64,
    /// The time of all occurrences of the step together.
    pub time: Nanos,
}

/// The path of a message through a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The number of the rail, counted from 0.
    pub rail: u32,
    /// The number of switches on the path.
    pub hops: u32,
}

impl Path {
    /// The path on `rail` with `hops` switches; `None` stands for the number of switches between
    /// the hosts that are furthest apart. An error if the system has no such path.
    pub fn new(system: &System, rail: u32, hops: Option<u32>) -> Result<Path, InvalidValue> {
        let rails = system.rails.count();
        InvalidValue::unless(rail < rails, "rail", || {
            let plural = if rails == 1 { "" } else { "s" };
            format!("there is no rail {rail}: the system has {rails} rail{plural}, counted from 0")
        })?;
        let own = system.rail(rail);
        let hops = hops.unwrap_or(system.hops_on(&own, 0, system.nodes - 1));
        let direct = own.switch.ports == 0;
        InvalidValue::unless(direct == (hops == 0), "hops", || match direct {
            true => "its hosts are connected back to back; valid is 0".into(),
            false => "its hosts are connected by switches; valid are 1 to 16".into(),
        })?;
        Ok(Path { rail, hops })
    }
}

/// The steps of one RDMA write, send or RDMA read of `payload` on a reliable connection across
/// `hops` switches. The payload of a write or send is inline if the HCA takes it.
///
/// A write ends when the receiving processor's poll of its memory finds it, a send when the
/// receiver's poll finds the completion, and a read when the requester's poll finds the last byte.
pub fn explain(costs: &Costs, payload: Bytes, operation: Operation, hops: u32) -> Vec<StepCost> {
    let inline = operation != Operation::Read && costs.fits_inline(payload);
    explain_posted(costs, payload, operation, inline, hops)
}

/// The steps of one operation, like [`explain`]. `inline` decides whether the payload is inline.
pub fn explain_posted(
    costs: &Costs,
    payload: Bytes,
    operation: Operation,
    inline: bool,
    hops: u32,
) -> Vec<StepCost> {
    let mut steps = until_written(costs, payload, operation, inline, hops);
    if operation == Operation::Send {
        steps.one(
            "PCI write of completion",
            Some(Resource::BusUp),
            costs.completion(),
        );
    }
    noticed(&mut steps, costs);
    steps.0
}

/// The steps of one RDMA write until the sending processor's poll finds its completion, which an
/// acknowledgement of the receiver's HCA reports.
pub fn explain_completed(costs: &Costs, payload: Bytes, inline: bool, hops: u32) -> Vec<StepCost> {
    let mut steps = until_written(costs, payload, Operation::Write, inline, hops);
    steps.one(
        "link, acknowledgement",
        Some(Resource::Link),
        costs.wire(packet::ACKNOWLEDGEMENT),
    );
    flight(&mut steps, costs, hops);
    steps.one("HCA, in", None, costs.receive());
    steps.one(
        "PCI write of completion",
        Some(Resource::BusUp),
        costs.completion(),
    );
    noticed(&mut steps, costs);
    steps.0
}

/// The steps of an operation until its last packet is written to the memory of the side that waits.
fn until_written(
    costs: &Costs,
    payload: Bytes,
    operation: Operation,
    inline: bool,
    hops: u32,
) -> StepCosts {
    let mut steps = StepCosts(Vec::new());
    let inlined = if inline { payload } else { Bytes(0) };
    steps.one("post", Some(Resource::Cpu), costs.post());
    steps.add(
        "MMIO, lines",
        None,
        costs.lines(inlined),
        costs.mmio(inlined),
    );
    if let Some(bus) = costs.fetch(inlined) {
        steps.one("PCI, ask for work request", None, costs.read_latency());
        steps.one("PCI read of work request", Some(Resource::BusDown), bus);
    }
    steps.one("HCA, out", None, costs.send());
    if operation == Operation::Read {
        steps.one(
            "link, request",
            Some(Resource::Link),
            costs.wire(packet::READ_REQUEST),
        );
        flight(&mut steps, costs, hops);
        steps.one("HCA, in", None, costs.receive());
    }
    if !inline && payload.0 > 0 {
        steps.one("PCI, ask for payload", None, costs.read_latency());
    }
    let stages = critical_path(costs, payload, operation, inline, hops);
    steps.add(
        "PCI read, packets",
        Some(Resource::BusDown),
        stages[0].count,
        stages[0].time,
    );
    steps.add(
        "link, packets",
        Some(Resource::Link),
        stages[1].count,
        stages[1].time,
    );
    flight(&mut steps, costs, hops);
    steps.one("HCA, in", None, costs.receive());
    if operation == Operation::Send {
        steps.one("HCA, match a receive", None, costs.receive_match());
    }
    steps.add(
        "PCI write, packets",
        Some(Resource::BusUp),
        stages[2].count,
        stages[2].time,
    );
    steps
}

/// Adds the steps from a write to memory until a processor's poll finds it.
fn noticed(steps: &mut StepCosts, costs: &Costs) {
    steps.one("PCI, until visible", None, costs.write_latency());
    steps.one("poll", Some(Resource::Cpu), costs.poll());
}

/// The sum of all steps: the one-way latency.
pub fn total(steps: &[StepCost]) -> Nanos {
    steps.iter().map(|step| step.time).sum()
}

fn flight(steps: &mut StepCosts, costs: &Costs, hops: u32) {
    let (rail, cables) = (costs.rail(), u64::from(hops) + 1);
    steps.add("cables", None, cables, rail.cable_time() * cables);
    steps.add(
        "error correction",
        None,
        cables,
        rail.link().correction * cables,
    );
    steps.add(
        "switches",
        None,
        u64::from(hops),
        rail.switch.latency * u64::from(hops),
    );
}

struct StepCosts(Vec<StepCost>);

impl StepCosts {
    fn one(&mut self, step: &'static str, resource: Option<Resource>, time: Nanos) {
        self.add(step, resource, 1, time);
    }

    /// Appends a step to the list, unless it takes no time.
    fn add(&mut self, step: &'static str, resource: Option<Resource>, count: u64, time: Nanos) {
        if time > Nanos::ZERO {
            self.0.push(StepCost {
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

/// The time at which a stage has finished a packet, counted from the start of the first packet, and
/// the steps of the chain of packets that ends there. The latency of cables, switches and HCA
/// between link and write is part of `moment` alone: every chain crosses them once.
#[derive(Clone, Copy, Default)]
struct Chain {
    moment: Nanos,
    shares: [Share; 3],
}

impl Chain {
    /// The later of two chains: the packet's own in the previous stage, or that of the packet
    /// before it. If they are equal, the packet's own.
    fn later(own: Chain, before: Chain) -> Chain {
        if before.moment > own.moment {
            before
        } else {
            own
        }
    }

    fn then(self, stage: usize, time: Nanos) -> Chain {
        let mut chain = self.wait(stage, time);
        chain.shares[stage].count += 1;
        chain
    }

    fn wait(mut self, stage: usize, time: Nanos) -> Chain {
        self.moment += time;
        self.shares[stage].time += time;
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
    let mut wait = Nanos::ZERO;
    for number in 0..packets {
        let piece = Bytes((payload.0 - number * mtu).min(mtu));
        let (first, last) = (number == 0, number + 1 == packets);
        let internal = costs.internal(piece);
        let read = if inline {
            Nanos::ZERO
        } else {
            costs.read(piece).max(internal)
        };
        if number > 0 {
            ends[0] = ends[0].wait(0, wait);
        }
        wait = costs.pace(piece).saturating_sub(read);
        ends[0] = ends[0].then(0, read);
        let link = costs.link(piece, operation, Transport::Rc, first, last);
        ends[1] = Chain::later(ends[0], ends[1]).then(1, link);
        let mut arrived = ends[1];
        arrived.moment += flight;
        ends[2] = Chain::later(arrived, ends[2]).then(2, costs.write(piece).max(internal));
    }
    ends[2].shares
}
