//! Where the time of one short message goes that has the machine to itself: what the device does, as `fabric` explains it,
//! between what this channel lets the processors do.

use device::Effort;
use device::model::effort;
use fabric::explain::{StepCost, explain_posted};
use fabric::{Bytes, Costs, Operation, Resource};

use super::layout::{Layout, TRAILER, padded};
use super::qp_link::INLINE;
use super::{Config, Design};

/// The longest message that goes in one packet.
pub fn longest() -> usize {
    Layout::of(&Config::default()).max_body()
}

/// The rows of one message of at most `longest` bytes over `hops` switches, from the call that sends to the return of the
/// one that receives, which waits already. It is a write into a ring, with a trailer behind the message.
pub fn explain(costs: &Costs, len: usize, hops: u32) -> Vec<StepCost> {
    debug_assert!(Config::default().design != Design::Basic);
    let work = |step, resource, what: Effort| StepCost {
        step,
        resource: Some(resource),
        count: 1,
        time: effort(costs, what),
    };
    let written = padded(len) + TRAILER;
    let inline = written <= INLINE && costs.fits_inline(Bytes(written as u64));
    let bytes = Bytes(written as u64);
    let cpu = Resource::Cpu;
    let mut rows = vec![
        work("send: prepare a packet", cpu, Effort::Send),
        work("copy into the packet", cpu, Effort::Copy(len)),
    ];
    rows.extend(explain_posted(costs, bytes, Operation::Write, inline, hops));
    rows.push(work("copy out of the ring", cpu, Effort::Copy(len)));
    rows.push(work("receive: take the packet", cpu, Effort::Receive));
    rows.retain(|row| row.time > fabric::Nanos::ZERO);
    rows
}
