//! The time of one short message on an idle machine, step by step: the steps of the device, as
//! `fabric` explains them, between the steps of the processors.

use device::Effort;
use fabric::explain::{StepCost, explain_completed, explain_posted};
use fabric::{Bytes, Costs, Nanos, Operation, Resource};

use crate::efforts::effort;

/// The RDMA write that carries a message's packet into a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The length of the write in bytes: the message with its padding and the channel's header.
    pub len: usize,
    /// True if the channel posts the write inline where the device can.
    pub inline: bool,
}

/// The steps of one message of `len` bytes across `hops` switches: from the call that sends it to
/// the return of the call that receives it, which waits already. The message is copied into
/// `packet`, and out of it.
pub fn message(costs: &Costs, len: usize, packet: Packet, hops: u32) -> Vec<StepCost> {
    let mut rows = prepared(costs, len);
    rows.extend(packet.posted(costs, hops));
    rows.extend(taken(costs, len));
    rows
}

/// A part of a message's time: the time of one of its RDMA writes.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePart {
    /// The name of the write.
    pub name: &'static str,
    /// The steps of the write, and of the processors' work for it.
    pub steps: Vec<StepCost>,
}

/// The parts of one message of a ping-pong, like [`message`], where the head pointer and the tail
/// pointer are writes of their own. The head pointer leaves when the write of the data has
/// completed, and the receiver's call returns when it has posted the tail pointer. The data waits
/// in the HCA until it has taken the tail pointer of the message before, which this one answers.
pub fn message_with_pointers(
    costs: &Costs,
    len: usize,
    [data, pointer]: [Packet; 2],
    hops: u32,
) -> [MessagePart; 3] {
    let mut first = prepared(costs, len);
    let work: Nanos = first.iter().map(|row| row.time).sum();
    let mut written = data.completed(costs, hops);
    let turn = costs.turn(Bytes(pointer.len as u64), pointer.is_inline(costs));
    let wait = StepCost {
        step: "HCA, take the tail pointer before",
        resource: None,
        count: 1,
        time: turn.saturating_sub(work + costs.post()),
    };
    let posted = written.iter().position(|row| row.step == "HCA, out");
    let fetch = written
        .iter()
        .position(|row| row.step == "PCI, ask for work request");
    written.insert(fetch.or(posted).unwrap_or(0), wait);
    first.extend(written);
    let mut head = vec![processor(costs, "write the head pointer", Effort::Control)];
    head.extend(pointer.posted(costs, hops));
    head.extend(taken(costs, len));
    let post = StepCost {
        step: "post",
        resource: Some(Resource::Cpu),
        count: 1,
        time: costs.post(),
    };
    let tail = vec![
        processor(costs, "write the tail pointer", Effort::Control),
        post,
    ];
    let parts = [
        ("data, until completed", first),
        ("head pointer", head),
        ("tail pointer", tail),
    ];
    parts.map(|(name, mut steps)| {
        steps.retain(|row| row.time > Nanos::ZERO);
        MessagePart { name, steps }
    })
}

impl Packet {
    fn is_inline(self, costs: &Costs) -> bool {
        self.inline && costs.fits_inline(self.bytes())
    }

    fn bytes(self) -> Bytes {
        Bytes(self.len as u64)
    }

    fn posted(self, costs: &Costs, hops: u32) -> Vec<StepCost> {
        let inline = self.is_inline(costs);
        explain_posted(costs, self.bytes(), Operation::Write, inline, hops)
    }

    fn completed(self, costs: &Costs, hops: u32) -> Vec<StepCost> {
        explain_completed(costs, self.bytes(), self.is_inline(costs), hops)
    }
}

/// The sender's work before it posts a packet.
fn prepared(costs: &Costs, len: usize) -> Vec<StepCost> {
    let mut rows = vec![
        processor(costs, "send: prepare a packet", Effort::Send),
        processor(costs, "copy into the packet", Effort::Copy(len)),
    ];
    rows.retain(|row| row.time > Nanos::ZERO);
    rows
}

/// The receiver's work after its poll has found a packet.
fn taken(costs: &Costs, len: usize) -> Vec<StepCost> {
    let mut rows = vec![
        processor(costs, "copy out of the ring", Effort::Copy(len)),
        processor(costs, "receive: take the packet", Effort::Receive),
    ];
    rows.retain(|row| row.time > Nanos::ZERO);
    rows
}

fn processor(costs: &Costs, step: &'static str, what: Effort) -> StepCost {
    StepCost {
        step,
        resource: Some(Resource::Cpu),
        count: 1,
        time: effort(costs, what),
    }
}
