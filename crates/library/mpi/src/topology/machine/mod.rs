//! Process topologies: the ranks of a communicator as the points of a grid or graph (MPI 5.0 §8).
//!
//! Ranks of a grid may be reordered ([`by_hosts`]), ranks of a graph are not.

mod cartesian;
mod dist_graph;
mod graph;
mod neighbours;
mod reorder;

pub use cartesian::Cartesian;
pub use dist_graph::{DistGraph, Edges};
pub use graph::Graph;
pub use neighbours::Neighbours;
pub use reorder::by_hosts;

use crate::Result;

/// `MPI_CART`, with the ABI's value: the answer of `MPI_Topo_test` for a Cartesian topology.
pub const CART: i32 = 211;
/// `MPI_GRAPH`, with the ABI's value.
pub const GRAPH: i32 = 212;
/// `MPI_DIST_GRAPH`, with the ABI's value.
pub const DIST_GRAPH: i32 = 213;

/// The topology of a communicator, from the view of one of its ranks.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The grid or graph that connects the ranks.
    pub shape: Shape,
    /// The neighbours of this rank.
    pub neighbours: Neighbours,
}

/// The grid or graph that connects the ranks of a communicator.
#[derive(Clone, Debug)]
pub enum Shape {
    /// The ranks form a Cartesian grid.
    Cartesian(Cartesian),
    /// A graph of which every rank has all edges.
    Graph(Graph),
    /// A graph of which each rank has only its own edges.
    DistGraph(DistGraph),
}

impl Topology {
    /// The topology of a grid, as `rank` sees it.
    pub fn cartesian(grid: Cartesian, rank: usize) -> Result<Topology> {
        Ok(Topology {
            neighbours: Neighbours::of_grid(&grid, rank as i32)?,
            shape: Shape::Cartesian(grid),
        })
    }

    /// The topology of a graph, as `rank` sees it.
    pub fn graph(graph: Graph, rank: usize) -> Topology {
        Topology {
            neighbours: Neighbours::both_ways(graph.neighbours(rank)),
            shape: Shape::Graph(graph),
        }
    }

    /// A distributed graph, from the view of the rank whose edges are in `graph`.
    pub fn dist_graph(graph: DistGraph) -> Topology {
        let (sources, destinations) = (&graph.incoming.ranks, &graph.outgoing.ranks);
        Topology {
            neighbours: Neighbours::directed(sources.clone(), destinations.clone()),
            shape: Shape::DistGraph(graph),
        }
    }

    /// The result of `MPI_Topo_test`.
    pub fn kind(&self) -> i32 {
        match &self.shape {
            Shape::Cartesian(_) => CART,
            Shape::Graph(_) => GRAPH,
            Shape::DistGraph(_) => DIST_GRAPH,
        }
    }
}
