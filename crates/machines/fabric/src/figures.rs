//! The key figures of a system: those that distinguish machines at a glance.

use crate::cost::{Costs, Resource};
use crate::explain::{explain, total};
use crate::limits::{limits, one_way};
use crate::packet::Operation;
use crate::system::System;
use crate::units::{Bytes, GbPerSec, Nanos, PerSec};

/// The write whose time is a machine's latency.
const SHORT: Bytes = Bytes(8);
/// The write of which a stream has a machine's bandwidth.
const LONG: Bytes = Bytes(1 << 20);

/// Key figures of a rail of a system, by formula, for RDMA writes on an idle machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Year of the HCA.
    pub year: u32,
    /// Lanes of the link.
    pub width: u32,
    /// Rate of the link.
    pub link: GbPerSec,
    /// Switches between the hosts that are furthest apart.
    pub hops: u32,
    /// Time of a write of 8 B between these hosts.
    pub latency: Nanos,
    /// Payload of long writes in one direction.
    pub peak: GbPerSec,
    /// The resource that bounds the peak.
    pub bound: Resource,
    /// Requests of one queue pair.
    pub message_rate: PerSec,
    /// Requests of all queue pairs, if known.
    pub chip_rate: Option<PerSec>,
}

impl Figures {
    /// The figures of rail `rail` of the system's list. Panics if there is no such rail.
    pub fn of(system: &System, rail: u32) -> Figures {
        let costs = Costs::of(system, rail);
        let own = *costs.rail();
        let hops = system.hops_on(&own, 0, system.nodes - 1);
        let limits = limits(&costs, LONG);
        // A stream of writes occupies at least the link.
        let least = one_way(&limits);
        Figures {
            year: own.hca.year,
            width: own.link_width(),
            link: own.link_rate(),
            hops,
            latency: total(&explain(&costs, SHORT, Operation::Write, hops)),
            peak: least.map_or(own.link_rate(), |least| least.one_way),
            bound: least.map_or(Resource::Link, |least| least.resource),
            message_rate: own.hca.message_rate,
            chip_rate: own.hca.chip_rate,
        }
    }
}
