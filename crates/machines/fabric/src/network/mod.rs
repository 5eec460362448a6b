//! The network of a rail: a topology of one kind of switch, with routes.

pub mod counts;
pub mod dragonfly;
pub mod graph;
pub mod grid;
pub mod grouped;
pub mod lanes;
pub mod levels;
mod outline;
mod oversubscription;
pub mod path;
pub mod shape;
mod sketch;
mod stop;
mod stops;
pub mod topology;
pub mod tree;

use dragonfly::Dragonfly;
use graph::GraphKey;
use grid::Grid;
use grouped::Grouped;
use levels::Levels;
use path::{Choice, Path};
use tree::Tree;

pub use oversubscription::Oversubscription;
pub use shape::Shape;
pub use sketch::{Layer, Sketch};
pub use stop::Stop;
pub use topology::{Routing, Topology};

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
    /// A fat tree with given levels.
    Levels(Levels),
    /// A graph from a file.
    Graph(GraphKey),
}

impl Network {
    /// The network of this shape for `nodes` hosts, which [`Shape::check`] has accepted.
    pub fn new(shape: &Shape, nodes: u32) -> Network {
        let tree = || Network::Tree(Tree::new(nodes, shape.ports, shape.oversubscription));
        if let Some(key) = shape.graph_key() {
            return Network::Graph(key);
        }
        match shape.topology {
            Topology::FatTree => shape.levels().map_or_else(tree, Network::Levels),
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
            Network::Levels(levels) => levels.hops(from, to),
            Network::Graph(key) => key.graph().hops(from, to),
            _ => self.path(from, to, Choice::ByDestination).links().len() as u32 + 1,
        }
    }

    /// True if the network has links between switches.
    pub fn has_inner_links(&self) -> bool {
        match self {
            Network::Tree(tree) => tree.levels() > 1,
            Network::Graph(key) => !key.graph().links().is_empty(),
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
            Network::Levels(levels) => levels.room(),
            Network::Graph(key) => key.graph().hosts().into(),
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
            Network::Levels(levels) => levels.links(),
            Network::Graph(key) => key.graph().links().len() as u64,
        }
    }

    /// The number of shortest paths from one host to another that differ in their links.
    pub fn choices(&self, from: u32, to: u32) -> u32 {
        match self {
            Network::Tree(tree) => tree.choices(from, to),
            Network::Dragonfly(dragonfly) => dragonfly.choices(from, to),
            Network::Grouped(grouped) => grouped.choices(from, to),
            Network::Grid(grid) => grid.choices(),
            Network::Levels(levels) => levels.choices(from, to),
            Network::Graph(key) => key.graph().choices(from, to),
        }
    }

    /// The number of virtual lanes that routes by the destination need, so that packets on full
    /// links cannot wait for each other in a cycle: a torus and a dragonfly need a second one.
    pub fn lanes(&self) -> u32 {
        match self {
            Network::Tree(_) | Network::Levels(_) => 1,
            Network::Grid(grid) => 1 + u32::from(grid.has_rings()),
            Network::Dragonfly(dragonfly) => dragonfly.lanes(),
            Network::Grouped(grouped) => grouped.lanes(),
            Network::Graph(key) => key.graph().lanes(),
        }
    }

    /// The links between switches on a shortest path from one host to another, in order.
    pub fn path(&self, from: u32, to: u32, choice: Choice) -> Path {
        let between = match self {
            Network::Grouped(grouped) => return grouped.path(from, to, choice),
            Network::Grid(grid) => return grid.path(from, to, choice),
            Network::Levels(levels) => return levels.path(from, to, choice),
            Network::Graph(key) => return key.graph().path(from, to, choice),
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
