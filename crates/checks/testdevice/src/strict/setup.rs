//! The properties that a test chooses for strict devices: those of all devices, and those of single
//! rails.

use device::{LinkLayer, Placement};

pub(super) const MTU: usize = 4096;
pub(super) const LONGEST: u64 = 1 << 30;

/// The properties of the strict devices of all ranks.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The number of rails of each rank.
    pub rails: usize,
    /// The number of rails of single ranks, at most `rails`, indexed by rank. Ranks beyond the end
    /// have `rails` rails.
    pub rails_of: Vec<usize>,
    /// The properties of single rails, indexed by rail. Those of rails beyond the end follow from
    /// the fields below.
    pub of_rails: Vec<RailSetup>,
    /// The order in which the bytes of a write become visible.
    pub placement: Placement,
    /// The largest inline payload, in bytes.
    pub inline: usize,
    /// True if requests are delayed at random, and queue pairs are served in random order.
    pub delays: bool,
    /// True if a request that needs a receive of the peer waits for one. Otherwise it fails at once
    /// if there is none.
    pub patient: bool,
    /// True if the devices have immediates.
    pub immediates: bool,
    /// The value of [`Attributes::answered`](device::Attributes::answered). Requests to an
    /// unreachable peer fail in any case.
    pub answered: bool,
    /// True if a connection is made only after both ends have requested it.
    pub ties_both: bool,
    /// The time after which a request over a cut cable fails, in nanoseconds.
    pub timeout_ns: u64,
    /// The longest memory that can be registered, in bytes.
    pub longest_region: usize,
    /// The seed of everything random.
    pub seed: u64,
}

/// The properties of the devices of one rail.
#[derive(Clone, Debug)]
pub struct RailSetup {
    /// The order in which the bytes of a write become visible.
    pub placement: Placement,
    /// True if the devices have immediates.
    pub immediates: bool,
    /// True if a queue pair can return to RESET.
    pub resets: bool,
    /// The technology of the link.
    pub link_layer: LinkLayer,
    /// The subnet of the port. Requests between ports of different subnets or link technologies
    /// fail.
    pub subnet: u64,
    /// The bandwidth in the device's attributes, in bytes per second.
    pub bandwidth: u64,
    /// The latency in the device's attributes, in nanoseconds.
    pub latency_ns: u64,
    /// The number of the card to which the port belongs.
    pub card: usize,
    /// The number of the protection domain. Regions of one domain of a rank are valid on all its
    /// devices.
    pub domain: usize,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            rails: 1,
            rails_of: Vec::new(),
            of_rails: Vec::new(),
            placement: Placement::Ordered,
            inline: 64,
            delays: false,
            patient: true,
            immediates: true,
            answered: true,
            ties_both: false,
            timeout_ns: 2_000_000,
            longest_region: usize::MAX,
            seed: 1,
        }
    }
}

impl Setup {
    /// The properties of a rail's devices.
    pub fn of_rail(&self, rail: usize) -> RailSetup {
        let own = self.of_rails.get(rail).cloned();
        own.unwrap_or(RailSetup {
            placement: self.placement,
            immediates: self.immediates,
            resets: true,
            link_layer: LinkLayer::InfiniBand,
            subnet: 0,
            bandwidth: 1_000_000_000,
            latency_ns: 1000,
            card: rail,
            domain: rail,
        })
    }

    /// The number of rails of a rank.
    pub fn rails_of_rank(&self, rank: usize) -> usize {
        let own = self.rails_of.get(rank).copied();
        own.map_or(self.rails, |own| own.clamp(1, self.rails))
    }
}
