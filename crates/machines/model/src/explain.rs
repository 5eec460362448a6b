//! The time of one short message on an idle machine, step by step: the steps of the device, as
//! `fabric` explains them, between the steps of the processors.

use device::Effort;
use fabric::explain::{StepCost, explain_posted};
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
    let work = |step, what: Effort| StepCost {
        step,
        resource: Some(Resource::Cpu),
        count: 1,
        time: effort(costs, what),
    };
    let bytes = Bytes(packet.len as u64);
    let inline = packet.inline && costs.fits_inline(bytes);
    let mut rows = vec![
        work("send: prepare a packet", Effort::Send),
        work("copy into the packet", Effort::Copy(len)),
    ];
    rows.extend(explain_posted(costs, bytes, Operation::Write, inline, hops));
    rows.push(work("copy out of the ring", Effort::Copy(len)));
    rows.push(work("receive: take the packet", Effort::Receive));
    rows.retain(|row| row.time > Nanos::ZERO);
    rows
}
