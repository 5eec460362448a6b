//! The highest throughput of each resource of a rail for messages of one size, in one direction and
//! in both at once. No protocol can exceed the lowest of these limits.

use crate::cost::{Costs, Resource};
use crate::packet::{Operation, Transport};
use crate::units::{Bytes, GbPerSec, Nanos};

/// The limit that one resource sets to a system's throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The resource that sets the limit.
    pub resource: Resource,
    /// The highest payload rate from one host to another.
    pub one_way: GbPerSec,
    /// The highest payload rate with equal traffic in both directions: the sum of the two.
    pub both_ways: GbPerSec,
}

/// The limits of a stream of RDMA writes with `payload` bytes each, which must not be 0. Resources
/// that such a stream does not occupy are left out.
pub fn limits(costs: &Costs, payload: Bytes) -> Vec<Limit> {
    let limit = |resource| {
        let out = busy(costs, payload, resource, true);
        let back = busy(costs, payload, resource, false);
        Some(Limit {
            resource,
            one_way: GbPerSec::of(payload.0, out.max(back))?,
            both_ways: GbPerSec::of(2 * payload.0, out + back)?,
        })
    };
    Resource::ALL.into_iter().filter_map(limit).collect()
}

/// The bottleneck in one direction: the lowest limit.
pub fn one_way(limits: &[Limit]) -> Option<&Limit> {
    limits.iter().min_by_key(|limit| limit.one_way)
}

/// The bottleneck in both directions: the lowest limit.
pub fn both_ways(limits: &[Limit]) -> Option<&Limit> {
    limits.iter().min_by_key(|limit| limit.both_ways)
}

/// The time that a message occupies a resource of its sender (`out`), or else of its receiver.
pub fn busy(costs: &Costs, payload: Bytes, resource: Resource, out: bool) -> Nanos {
    let inline = costs.fits_inline(payload);
    let inlined = if inline { payload } else { Bytes(0) };
    let down = || {
        let payload = if inline {
            Nanos::ZERO
        } else {
            costs.pieces(payload, |piece| costs.read(piece))
        };
        payload + costs.fetch(inlined).unwrap_or_default()
    };
    // Read requests travel in the direction of writes; on a half-duplex bus they add to the read.
    let asking = || {
        if inline {
            Nanos::ZERO
        } else {
            costs.ask(payload)
        }
    };
    let up = || costs.pieces(payload, |piece| costs.write(piece));
    let shared = costs.half_duplex();
    match (resource, out) {
        (Resource::Cpu, true) => costs.post(),
        (Resource::Cpu, false) => Nanos::ZERO,
        (Resource::Engine, true) => {
            let paced = costs.pieces(payload, |piece| costs.pace(piece));
            costs.turn(payload, inline).max(paced)
        }
        (Resource::Engine, false) => Nanos::ZERO,
        (Resource::BusDown | Resource::BusUp, true) if shared => down() + asking(),
        (Resource::BusDown | Resource::BusUp, false) if shared => up(),
        (Resource::BusDown, true) => down(),
        (Resource::BusDown, false) => Nanos::ZERO,
        (Resource::BusUp, true) => asking(),
        (Resource::BusUp, false) => up(),
        (Resource::Link, true) => link(costs, payload),
        (Resource::Link, false) => Nanos::ZERO,
        (Resource::Internal, _) => costs.internal(payload),
    }
}

fn link(costs: &Costs, payload: Bytes) -> Nanos {
    let time = |piece, first| costs.link(piece, Operation::Write, Transport::Rc, first, false);
    // The first packet has an additional header.
    let first = payload.min(costs.mtu());
    let more = time(first, true).saturating_sub(time(first, false));
    costs.pieces(payload, |piece| time(piece, false)) + more
}
