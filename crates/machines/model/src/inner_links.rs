//! The links between the switches of a network. Each carries one packet at a time.

use fabric::{GbPerSec, Network, Rail, System};
use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::fifo::Fifo;

/// The links between the switches of a rail's network.
pub(crate) struct InnerLinks {
    /// The network; `None` if it has no such links, or if they are unknown.
    network: Option<Network>,
    /// The latency of a switch with a cable.
    hop: Time,
    /// The rate of each link between switches.
    rate: GbPerSec,
    /// The directed links, by their numbers in the network.
    links: Vec<InnerLink>,
}

/// A directed link between switches.
#[derive(Clone, Default)]
pub(crate) struct InnerLink {
    link: Fifo,
    /// The total time for which the link has been busy.
    pub busy: Time,
    /// The host that sent the link's last packet.
    pub host: u32,
}

impl InnerLinks {
    pub(crate) fn new(memory: WorldMemory, system: &System, rail: &Rail) -> InnerLinks {
        let network = system.network(rail);
        let network = network.filter(|network| network.has_inner_links());
        let count = network.map_or(0, |network| network.links() as usize);
        let mut links = Vec::new_in(memory);
        links.resize(count, InnerLink::default());
        InnerLinks {
            network,
            hop: rail.flight(1).saturating_sub(rail.flight(0)).picos(),
            rate: rail.switch.link.data() * rail.switch.width,
            links,
        }
    }

    /// All links between switches, in the order of their numbers.
    pub(crate) fn links(&self) -> &[InnerLink] {
        &self.links
    }

    /// Moves a packet, whose first bit leaves at `at`, across the links between the switches from
    /// one host to another; returns the time for which it waits there.
    #[inline]
    pub(crate) fn cross(&mut self, (from, to): (u32, u32), at: Time, bytes: u32) -> Time {
        match self.network {
            Some(network) => self.cross_network(network, (from, to), at, bytes),
            None => 0,
        }
    }

    fn cross_network(
        &mut self,
        network: Network,
        (from, to): (u32, u32),
        at: Time,
        bytes: u32,
    ) -> Time {
        let (hop, links) = (self.hop, &mut self.links);
        let time = self.rate.time(bytes.into()).picos();
        let (mut waited, mut passed) = (0, 0);
        network.inner_links(from, to, |link| {
            passed += hop;
            let first = at + passed + waited;
            let own = &mut links[link as usize];
            let end = own.link.take(first, time);
            own.busy += time;
            own.host = from;
            waited += end - time - first;
        });
        waited
    }
}
