//! The network of a rail: a topology of one kind of switch, with routes.

pub mod counts;
pub mod dragonfly;
pub mod grid;
pub mod grouped;
pub mod path;
pub mod tree;

use crate::components::InvalidValue;
use crate::quantity::{Quantity, Raw};

use counts::Counts;
use dragonfly::Dragonfly;
use grid::Grid;
use grouped::Grouped;
use path::{Choice, MOST_LINKS, Path};
use tree::Tree;

/// The topology of a network of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// The topology is the smallest fat tree that connects the hosts.
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

/// The values of a rail's keys that determine its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The topology.
    pub topology: Topology,
    /// The number of ports of a switch; 0: no switch.
    pub ports: u32,
    /// The number of hosts of a leaf switch for each of its links up.
    pub oversubscription: u32,
    /// The number of hosts of a switch; `None`: the usual one of the topology.
    pub hosts: Option<u32>,
    /// The switches along each dimension, or the columns and rows of a dragonfly's group.
    pub dimensions: Option<Counts>,
    /// The cables between two neighbours, by dimension; of a dragonfly between two switches of a
    /// row, of a column, and between two groups.
    pub cables: Option<Counts>,
}

/// A network of switches with numbered links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A fat tree.
    Tree(Tree),
    /// A balanced dragonfly.
    Dragonfly(Dragonfly),
    /// A dragonfly whose groups are grids.
    Grouped(Grouped),
    /// A torus, a mesh or a hypercube.
    Grid(Grid),
}

impl Shape {
    /// The number of cables of which there is one unless a key says otherwise.
    fn cables(&self) -> Counts {
        let one = Counts::of(&[1]);
        self.cables.or(one).expect("one number is valid")
    }

    fn grid(&self, nodes: u32) -> Option<Grid> {
        let hosts = u64::from(self.hosts.unwrap_or(1).max(1));
        let sizes = match self.topology {
            Topology::Hypercube => Grid::cube(u64::from(nodes).div_ceil(hosts)),
            _ => self.dimensions,
        };
        let wraps = self.topology == Topology::Torus;
        sizes.map(|sizes| Grid::new(hosts, sizes, self.cables(), wraps))
    }

    fn grouped(&self, nodes: u32) -> Option<Grouped> {
        let sizes = self.dimensions?;
        let hosts = u64::from(self.hosts.unwrap_or(1).max(1));
        let [columns, rows] = [
            sizes.at(0),
            if sizes.as_slice().len() > 1 {
                sizes.at(1)
            } else {
                1
            },
        ];
        let cables = self.cables();
        Some(Grouped {
            hosts,
            columns,
            rows,
            cables: [cables.at(0), cables.at(1), cables.at(2)],
            groups: u64::from(nodes).div_ceil(hosts * columns * rows),
        })
    }

    /// The number of hosts for which a network of this shape has room. Without ports it is two
    /// hosts back to back.
    pub fn room(&self) -> u64 {
        match self.topology {
            _ if self.ports == 0 => 2,
            Topology::FatTree => Tree::room(self.ports, self.oversubscription),
            Topology::Dragonfly if self.dimensions.is_none() => Dragonfly::room(self.ports),
            // A group has a port for each other group at least.
            Topology::Dragonfly => self.grouped(1).map_or(0, |one| {
                one.room() * (one.columns * one.rows * u64::from(self.ports) + 1)
            }),
            Topology::Hypercube => u64::from(self.hosts.unwrap_or(1)) << counts::MOST_DIMENSIONS,
            Topology::Torus | Topology::Mesh => self.grid(1).map_or(0, |grid| grid.room()),
        }
    }

    /// The ports that a switch of the network needs; 0: as many as it has.
    fn needs(&self, nodes: u32) -> u64 {
        match self.topology {
            Topology::FatTree => 0,
            Topology::Dragonfly => self.grouped(nodes).map_or(0, |network| {
                let [row, column, between] = network.cables;
                let switches = network.columns * network.rows;
                let global = (network.groups.saturating_sub(1) * between).div_ceil(switches);
                network.hosts + (network.columns - 1) * row + (network.rows - 1) * column + global
            }),
            _ => self.grid(nodes).map_or(0, |grid| grid.needs()),
        }
    }

    /// Checks the keys of the network of `nodes` hosts.
    pub fn check(&self, nodes: u32) -> Result<(), InvalidValue> {
        let is_grid = matches!(self.topology, Topology::Torus | Topology::Mesh);
        InvalidValue::unless(!is_grid || self.dimensions.is_some(), "dimensions", || {
            format!(
                "a {} needs the number of its switches along each dimension, such as \"4x4x4\"",
                self.topology.show()
            )
        })?;
        let has_parts = self.hosts.is_some() || self.dimensions.is_some() || self.cables.is_some();
        let is_switched = self.ports > 0;
        InvalidValue::unless(
            is_switched || self.topology == Topology::FatTree && !has_parts,
            "topology",
            || "hosts back to back have no network of switches; name a switch".into(),
        )?;
        InvalidValue::unless(
            self.topology != Topology::FatTree || !has_parts,
            "switch_hosts",
            || {
                "a fat tree follows from the ports of its switches and from oversubscription; leave switch_hosts, dimensions and cables out".into()
            },
        )?;
        let is_cube = self.topology == Topology::Hypercube && self.dimensions.is_some();
        InvalidValue::unless(!is_cube, "dimensions", || {
            "the dimensions of a hypercube follow from its hosts; leave them out".into()
        })?;
        let is_flat = self
            .dimensions
            .is_none_or(|sizes| sizes.as_slice().len() <= 2);
        InvalidValue::unless(
            self.topology != Topology::Dragonfly || is_flat,
            "dimensions",
            || "a group of a dragonfly has columns and rows, such as \"16x6\"".into(),
        )?;
        let room = self.room();
        InvalidValue::unless(
            (2..=room).contains(&u64::from(nodes)),
            "nodes",
            || match self.topology {
                _ if !is_switched => format!(
                    "{nodes} hosts cannot be connected back to back; name a switch, or set nodes = 2"
                ),
                Topology::FatTree => format!(
                    "three levels of {}-port switches cannot connect {nodes} hosts; valid are 2 to {room}",
                    self.ports
                ),
                _ => format!(
                    "a {} of {}-port switches cannot connect {nodes} hosts; valid are 2 to {room}",
                    self.topology.show(),
                    self.ports
                ),
            },
        )?;
        let needs = self.needs(nodes);
        InvalidValue::unless(needs <= u64::from(self.ports), "switch", || {
            format!(
                "the network needs switches with {needs} ports, and this one has {}",
                self.ports
            )
        })?;
        let longest = match self.topology {
            Topology::FatTree | Topology::Dragonfly => 0,
            _ => self.grid(nodes).map_or(0, |grid| grid.longest()),
        };
        let is_short = longest <= MOST_LINKS as u64 / 2;
        InvalidValue::unless(is_short, "dimensions", || {
            format!(
                "paths of {longest} links between switches are not possible; at most {} are",
                MOST_LINKS / 2
            )
        })
    }
}

impl Network {
    /// The network of this shape for `nodes` hosts, which [`Shape::check`] has accepted.
    pub fn new(shape: &Shape, nodes: u32) -> Network {
        let tree = || Network::Tree(Tree::new(nodes, shape.ports, shape.oversubscription));
        match shape.topology {
            Topology::FatTree => tree(),
            Topology::Dragonfly => match shape.grouped(nodes) {
                Some(grouped) => Network::Grouped(grouped),
                None if shape.ports > 0 => Network::Dragonfly(Dragonfly::new(nodes, shape.ports)),
                None => tree(),
            },
            _ => shape.grid(nodes).map_or_else(tree, Network::Grid),
        }
    }

    /// The number of switches on the path between two hosts.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match self {
            _ if from == to => 0,
            Network::Tree(tree) => tree.hops(from, to),
            Network::Dragonfly(dragonfly) => dragonfly.hops(from, to),
            _ => self.path(from, to, Choice::ByDestination).links().len() as u32 + 1,
        }
    }

    /// True if the network has links between switches.
    pub fn has_inner_links(&self) -> bool {
        match self {
            Network::Tree(tree) => tree.levels() > 1,
            _ => true,
        }
    }

    /// The number of hosts that the switches of the network have room for.
    pub fn hosts(&self) -> u32 {
        let room = match self {
            Network::Tree(tree) => tree.width(),
            Network::Dragonfly(dragonfly) => dragonfly.width(),
            Network::Grouped(grouped) => grouped.room(),
            Network::Grid(grid) => grid.room(),
        };
        room as u32
    }

    /// The upper bound of link numbers: each link has a number below it.
    pub fn links(&self) -> u64 {
        match self {
            Network::Tree(tree) => tree.links(),
            Network::Dragonfly(dragonfly) => dragonfly.links(),
            Network::Grouped(grouped) => grouped.links(),
            Network::Grid(grid) => grid.links(),
        }
    }

    /// The number of shortest paths from one host to another that differ in their links.
    pub fn choices(&self, from: u32, to: u32) -> u32 {
        match self {
            Network::Tree(tree) => tree.choices(from, to),
            Network::Dragonfly(dragonfly) => dragonfly.choices(from, to),
            Network::Grouped(grouped) => grouped.choices(from, to),
            Network::Grid(grid) => grid.choices(),
        }
    }

    /// The links between switches on a shortest path from one host to another, in order.
    pub fn path(&self, from: u32, to: u32, choice: Choice) -> Path {
        let between = match self {
            Network::Grouped(grouped) => return grouped.path(from, to, choice),
            Network::Grid(grid) => return grid.path(from, to, choice),
            _ => self.hops(from, to).saturating_sub(1) as usize,
        };
        match self {
            Network::Tree(tree) => tree
                .route_by(from, to, choice)
                .skip(1)
                .take(between)
                .collect(),
            Network::Dragonfly(dragonfly) => {
                let route = dragonfly.route_by(from, to, choice);
                route.skip(1).take(between).collect()
            }
            _ => Path::default(),
        }
    }
}
