//! The network of a rail: a topology of one kind of switch, with routes.

use crate::dragonfly::Dragonfly;
use crate::quantity::{Quantity, Raw};
use crate::tree::Tree;

/// The topology of a network of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// The topology is the smallest fat tree that connects the hosts.
    FatTree,
    /// The topology is a balanced dragonfly.
    Dragonfly,
}

const NAMES: [(Topology, &str); 2] = [
    (Topology::FatTree, "fat-tree"),
    (Topology::Dragonfly, "dragonfly"),
];

impl Quantity for Topology {
    const VALID: &'static str = "\"fat-tree\" or \"dragonfly\"";

    fn read(raw: &Raw) -> Option<Topology> {
        let Raw::Text(text) = raw else { return None };
        let known = NAMES.iter().find(|(_, name)| name == text);
        known.map(|(topology, _)| *topology)
    }
    fn show(&self) -> String {
        NAMES[*self as usize].1.to_owned()
    }
    fn to_word(&self) -> u64 {
        *self as u64
    }
    fn from_word(word: u64) -> Option<Topology> {
        let known = NAMES.get(usize::try_from(word).ok()?);
        known.map(|(topology, _)| *topology)
    }
}

/// A network of switches with numbered links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A fat tree.
    Tree(Tree),
    /// A dragonfly.
    Dragonfly(Dragonfly),
}

impl Network {
    /// The greatest number of hosts of a network of switches with `ports` ports. Without ports it
    /// is two hosts back to back.
    pub fn room(topology: Topology, ports: u32, oversubscription: u32) -> u64 {
        match topology {
            Topology::Dragonfly if ports > 0 => Dragonfly::room(ports),
            _ => Tree::room(ports, oversubscription),
        }
    }

    /// The network of `nodes` hosts. Panics for more than [`room`](Network::room) hosts.
    pub fn new(topology: Topology, nodes: u32, ports: u32, oversubscription: u32) -> Network {
        match topology {
            Topology::Dragonfly if ports > 0 => Network::Dragonfly(Dragonfly::new(nodes, ports)),
            _ => Network::Tree(Tree::new(nodes, ports, oversubscription)),
        }
    }

    /// The number of switches on the path between two hosts.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match self {
            Network::Tree(tree) => tree.hops(from, to),
            Network::Dragonfly(dragonfly) => dragonfly.hops(from, to),
        }
    }

    /// True if the network has links between switches.
    pub fn has_inner_links(&self) -> bool {
        match self {
            Network::Tree(tree) => tree.levels() > 1,
            Network::Dragonfly(_) => true,
        }
    }

    /// The upper bound of link numbers: each link has a number below it.
    pub fn links(&self) -> u64 {
        match self {
            Network::Tree(tree) => tree.links(),
            Network::Dragonfly(dragonfly) => dragonfly.links(),
        }
    }

    /// Calls `each` with the numbers of the links between switches on the path from one host to
    /// another, in order.
    pub fn inner_links(&self, from: u32, to: u32, each: impl FnMut(u64)) {
        let between = self.hops(from, to).saturating_sub(1) as usize;
        match self {
            Network::Tree(tree) => tree.route(from, to).skip(1).take(between).for_each(each),
            Network::Dragonfly(dragonfly) => {
                let route = dragonfly.route(from, to);
                route.skip(1).take(between).for_each(each);
            }
        }
    }
}
