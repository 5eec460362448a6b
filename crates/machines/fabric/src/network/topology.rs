//! The names of topologies and of rules of routing.

use crate::quantity::{Quantity, Raw};

/// The topology of a network of switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Topology {
    /// The topology is a fat tree: the smallest that connects the hosts, or one with given levels.
    #[default]
    FatTree,
    /// The topology is a dragonfly: balanced, or of groups that are grids of switches.
    Dragonfly,
    /// The topology is a hypercube.
    Hypercube,
    /// The topology is a torus.
    Torus,
    /// The topology is a mesh.
    Mesh,
}

/// The rule by which a packet gets its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The destination determines the path.
    Destination,
    /// A packet takes the path that is expected to be the fastest when it leaves.
    Adaptive,
}

const TOPOLOGIES: [(Topology, &str); 5] = [
    (Topology::FatTree, "fat-tree"),
    (Topology::Dragonfly, "dragonfly"),
    (Topology::Hypercube, "hypercube"),
    (Topology::Torus, "torus"),
    (Topology::Mesh, "mesh"),
];

const ROUTINGS: [(Routing, &str); 2] = [
    (Routing::Destination, "destination"),
    (Routing::Adaptive, "adaptive"),
];

/// A quantity that is a name from a list, in whose order the values are numbered.
macro_rules! named {
    ($type:ty, $names:ident, $valid:literal) => {
        impl Quantity for $type {
            const VALID: &'static str = $valid;

            fn read(raw: &Raw) -> Option<$type> {
                let Raw::Text(text) = raw else { return None };
                let known = $names.iter().find(|(_, name)| name == text);
                known.map(|(value, _)| *value)
            }
            fn show(&self) -> String {
                $names[*self as usize].1.to_owned()
            }
            fn to_word(&self) -> u64 {
                *self as u64
            }
            fn from_word(word: u64) -> Option<$type> {
                let known = $names.get(usize::try_from(word).ok()?);
                known.map(|(value, _)| *value)
            }
        }
    };
}

named!(
    Topology,
    TOPOLOGIES,
    "\"fat-tree\", \"dragonfly\", \"hypercube\", \"torus\" or \"mesh\""
);
named!(Routing, ROUTINGS, "\"destination\" or \"adaptive\"");

impl Quantity for Option<Routing> {
    const VALID: &'static str = Routing::VALID;

    fn read(raw: &Raw) -> Option<Option<Routing>> {
        Routing::read(raw).map(Some)
    }
    fn show(&self) -> String {
        self.map_or("none".into(), |routing| routing.show())
    }
    fn to_word(&self) -> u64 {
        self.map_or(0, |routing| routing.to_word() + 1)
    }
    fn from_word(word: u64) -> Option<Option<Routing>> {
        match word.checked_sub(1) {
            None => Some(None),
            Some(word) => Routing::from_word(word).map(Some),
        }
    }
}
