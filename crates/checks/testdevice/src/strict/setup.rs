//! The properties of a strict machine: of all its devices, and of those of single rails.

use device::{LinkLayer, Placement};

pub(super) const MTU: usize = 4096;
pub(super) const LONGEST: u64 = 1 << 30;

/// The properties of the devices.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The number of rails.
    pub rails: usize,
    /// The number of rails of single ranks, by rank, at most `rails`; ranks behind the end have
    /// `rails`.
    pub rails_of: Vec<usize>,
    /// The properties of single rails, by rail; those behind the end follow from the fields below.
    pub of_rails: Vec<RailSetup>,
    /// The order in which the bytes of a write become visible.
    pub placement: Placement,
    /// The largest inline payload, in bytes.
    pub inline: usize,
    /// Requests are delayed, and the order of queue pairs is random.
    pub delays: bool,
    /// A request that needs a receive of the peer waits for one; otherwise it fails at once without
    /// one.
    pub patient: bool,
    /// The devices have immediates.
    pub immediates: bool,
    /// The value of [`Attributes::answered`](device::Attributes::answered). Requests to an
    /// unreachable peer fail in any case.
    pub answered: bool,
    /// A connection is made only once both ends have asked for it.
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
    /// The devices have immediates.
    pub immediates: bool,
    /// A queue pair can go back to RESET.
    pub resets: bool,
    /// The technology of the link.
    pub link_layer: LinkLayer,
    /// The network. Requests between ports of different networks or technologies fail.
    pub subnet: u64,
    /// The bandwidth that the attributes name, in bytes per second.
    pub bandwidth: u64,
    /// The latency that the attributes name, in nanoseconds.
    pub latency_ns: u64,
    /// The card of the port.
    pub card: usize,
    /// The protection domain. Regions of one domain of a rank are valid on all its devices.
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
