//! Communicators with a graph topology (MPI 5.0 §8.5.3, §8.5.4).

use std::sync::Arc;

use crate::comm::Core;
use crate::comm::calls::making::Making;
use crate::rank::Rank;
use crate::state::Objects;
use crate::topology::{DistGraph, Edges, Graph, Shape, Topology};
use crate::{Class, Error, Result, UNDEFINED};

/// Bytes of the record of an edge that is sent to one of its ends: direction, rank at the other
/// end, weight.
const EDGE: usize = 12;

impl Objects {
    /// The graph topology of a communicator.
    pub fn graph(&self, comm: u32) -> Result<&Graph> {
        match self.shape(comm)? {
            Some(Shape::Graph(graph)) => Ok(graph),
            _ => Err(other(comm, "graph topology", "MPI_Graph_create makes one")),
        }
    }

    /// This rank's edges in the distributed graph of a communicator.
    pub fn dist_graph(&self, comm: u32) -> Result<&DistGraph> {
        match self.shape(comm)? {
            Some(Shape::DistGraph(graph)) => Ok(graph),
            _ => Err(other(
                comm,
                "distributed graph topology",
                "MPI_Dist_graph_create and MPI_Dist_graph_create_adjacent make one",
            )),
        }
    }

    fn shape(&self, comm: u32) -> Result<Option<&Shape>> {
        let topology = self.comms.get(comm)?.topology.as_deref();
        Ok(topology.map(|topology| &topology.shape))
    }

    /// `MPI_Graph_map`: this rank's number in a graph, or [`UNDEFINED`] if the graph has no node
    /// for it.
    pub fn graph_map(&self, comm: u32, graph: &Graph) -> Result<i32> {
        let core = self.intra(comm)?;
        check_size(graph, core)?;
        Ok(if core.rank < graph.nodes() {
            core.rank as i32
        } else {
            UNDEFINED
        })
    }
}

#[cold]
fn other(comm: u32, kind: &str, maker: &str) -> Error {
    let detail = format!("communicator {comm:#x} has no {kind}: {maker}");
    Error::new(Class::TOPOLOGY, detail)
}

impl Rank {
    /// `MPI_Graph_create`: `MPI_COMM_NULL` on ranks for which the graph has no node.
    pub fn graph_create(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        graph: Graph,
    ) -> Result<u32> {
        let parent = self.begin_intra(comm)?;
        let fits = check_size(&graph, &parent.core);
        let ranks = fits.map(|()| (0..graph.nodes() as u32).collect());
        self.topology_comm(operation, parent, ranks, |place| {
            Ok(Topology::graph(graph, place))
        })
    }

    /// `MPI_Dist_graph_create_adjacent`: each rank passes its own edges, so only the agreement on
    /// the communicator needs messages.
    pub fn dist_graph_create_adjacent(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        graph: DistGraph,
    ) -> Result<u32> {
        let parent = self.begin_intra(comm)?;
        let check = |name, edges: &Edges| {
            check_ends(name, &edges.ranks, &parent.core)?;
            check_weights(&edges.weights)
        };
        let checked = check("sources", &graph.incoming);
        let checked = checked.and_then(|()| check("destinations", &graph.outgoing));
        let ranks = checked.map(|()| (0..parent.core.size() as u32).collect());
        self.topology_comm(operation, parent, ranks, |_| {
            Ok(Topology::dist_graph(graph))
        })
    }

    /// `MPI_Dist_graph_create`: a rank passes any edges, as source, destination and weight, and
    /// receives its own edges from the other ranks.
    pub fn dist_graph_create(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        edges: &[[i32; 3]],
        weighted: bool,
    ) -> Result<u32> {
        let parent = self.begin_intra(comm)?;
        let check = |&[source, destination, weight]: &[i32; 3]| {
            check_ends("sources", &[source], &parent.core)?;
            check_ends("destinations", &[destination], &parent.core)?;
            check_weights(&[weight])
        };
        let checked = edges.iter().try_for_each(check);
        let contexts = self.exchange_contexts(operation, &parent, Making::Topology, checked)?;
        let given = records(edges, parent.core.size());
        let got = self.exchange_records(operation, comm, &given)?;
        let mut graph = DistGraph {
            incoming: Edges::default(),
            outgoing: Edges::default(),
            weighted,
        };
        for record in got.iter().flat_map(|from| from.chunks_exact(EDGE)) {
            let [direction, rank, weight] = decode(record);
            match direction {
                INCOMING => graph.incoming.add(rank, weight),
                _ => graph.outgoing.add(rank, weight),
            }
        }
        let (members, place) = (parent.core.members.clone(), parent.core.rank);
        let mut new = parent.child(Core::new(contexts[0], members, place));
        new.topology = Some(Arc::new(Topology::dist_graph(graph)));
        self.add_comm(new)
    }
}

const INCOMING: i32 = 0;
const OUTGOING: i32 = 1;

/// For each rank, the records of those edges that have it at one of their ends.
fn records(edges: &[[i32; 3]], ranks: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(); ranks];
    let mut tell = |rank: i32, record: [i32; 3]| {
        let bytes = record.into_iter().flat_map(i32::to_ne_bytes);
        all[rank as usize].extend(bytes);
    };
    for &[source, destination, weight] in edges {
        tell(source, [OUTGOING, destination, weight]);
        tell(destination, [INCOMING, source, weight]);
    }
    all
}

fn decode(record: &[u8]) -> [i32; 3] {
    let (words, _) = record.as_chunks::<4>();
    std::array::from_fn(|at| i32::from_ne_bytes(words[at]))
}

fn check_size(graph: &Graph, core: &Core) -> Result<()> {
    let (nodes, ranks) = (graph.nodes(), core.size());
    if nodes > ranks {
        let detail = format!("a graph of {nodes} nodes, but there are {ranks} ranks");
        return Err(Error::new(Class::ARG, detail));
    }
    Ok(())
}

fn check_ends(name: &str, ends: &[i32], core: &Core) -> Result<()> {
    let ranks = 0..core.size() as i32;
    match ends.iter().find(|end| !ranks.contains(end)) {
        None => Ok(()),
        Some(end) => {
            let detail = format!(
                "{name} has {end}, but the communicator has the ranks 0 to {}",
                core.size() - 1
            );
            Err(Error::new(Class::ARG, detail))
        }
    }
}

fn check_weights(weights: &[i32]) -> Result<()> {
    match weights.iter().find(|weight| **weight < 0) {
        None => Ok(()),
        Some(weight) => {
            let detail = format!("an edge has the weight {weight}; weights are not negative");
            Err(Error::new(Class::ARG, detail))
        }
    }
}
