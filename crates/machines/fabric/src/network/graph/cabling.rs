//! The switches of a graph, their cables, and the hosts at their ports.

/// The greatest number of switches of a graph.
pub const MOST_SWITCHES: usize = 4096;
/// The greatest number of hosts of a graph.
pub const MOST_HOSTS: usize = 16384;
/// The greatest number of links on a route of a graph.
pub const MOST_STEPS: usize = crate::network::path::MOST_LINKS / 2;
/// The mark of a switch without a route to a host.
pub(in crate::network) const NO_ROUTE: u8 = u8::MAX;

/// A directed link between two switches of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphLink {
    /// The number of the switch at its begin.
    pub from: u32,
    /// The number of the switch at its end.
    pub to: u32,
    /// The port of the switch at its begin.
    pub port: u8,
}

/// The switches of a graph with their cables and hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::network) struct Cabling {
    /// The switch of each host, and the host's port there.
    pub homes: Vec<(u32, u8)>,
    /// The number of the first link of each switch, and the number of links.
    pub first: Vec<u32>,
    /// The links, by the switches at their begins.
    pub links: Vec<GraphLink>,
}

impl Cabling {
    pub(in crate::network) fn switches(&self) -> usize {
        self.first.len().saturating_sub(1)
    }

    /// The links of a switch.
    pub(in crate::network) fn of(&self, switch: u32) -> &[GraphLink] {
        let at = switch as usize;
        let range = self.first[at] as usize..self.first[at + 1] as usize;
        &self.links[range]
    }

    /// The switches with the numbers of their hosts.
    pub(in crate::network) fn hosts_of_switches(&self) -> Vec<u32> {
        let mut hosts = vec![0; self.switches()];
        self.homes
            .iter()
            .for_each(|(switch, _)| hosts[*switch as usize] += 1);
        hosts
    }
}
