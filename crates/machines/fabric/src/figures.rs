//! The key figures of a system: those by which machines differ most.

use crate::cost::{Costs, Resource};
use crate::explain::{explain, total};
use crate::limits::{limits, one_way};
use crate::packet::Operation;
use crate::system::System;
use crate::units::{Bytes, GbPerSec, Nanos, PerSec};

/// The length of the write whose time is shown as a machine's latency.
const SHORT: Bytes = Bytes(8);
/// The length of the writes whose stream is shown as a machine's bandwidth.
const LONG: Bytes = Bytes(1 << 20);

/// Key figures of a rail of a system, by formula, for RDMA writes on an idle machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The year of the HCA's introduction.
    pub year: u32,
    /// The number of lanes of the link.
    pub width: u32,
    /// The rate of the link, headers included.
    pub link: GbPerSec,
    /// The number of switches between the hosts that are furthest apart.
    pub hops: u32,
    /// The one-way latency of a write of 8 B between the hosts that are furthest apart.
    pub latency: Nanos,
    /// The highest payload rate of long writes in one direction.
    pub peak: GbPerSec,
    /// The name of the resource that limits `peak`.
    pub bound: Resource,
    /// The rate of work requests of one queue pair.
    pub message_rate: PerSec,
    /// The rate of work requests of all queue pairs together; `None`: it has no known limit.
    pub chip_rate: Option<PerSec>,
}

impl Figures {
    /// The figures of rail `rail` of the system's list. Panics if there is no such rail.
    pub fn of(system: &System, rail: u32) -> Figures {
        let costs = Costs::of(system, rail);
        let own = *costs.rail();
        let hops = system.hops_on(&own, 0, system.nodes - 1);
        let limits = limits(&costs, LONG);
        // A stream of writes occupies at least the link, so the list is not empty.
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
