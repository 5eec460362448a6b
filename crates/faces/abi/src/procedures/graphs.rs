//! Chapter 8: graph topologies.

use super::comms::set_new;
use super::info::check_hints;
use crate::args::{self, CommArray, Flag, Out, fill};
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::{Comm, Info};
use crate::making::arguments;
use mpi::topology::{DistGraph, Edges, Graph};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// `MPI_Graph_create` (MPI 5.0, chapter 8). The ranks keep their numbers, even if `reorder` allows
/// new ones.
pub fn graph_create(
    call: &Running,
    comm: Comm,
    _nnodes: usize,
    index: &[c_int],
    edges: CommArray<c_int>,
    _reorder: bool,
    new: Out<Comm>,
) -> Done {
    let graph = arguments(call.procedure, comm, graph(index, edges))?;
    set_new(
        new,
        call.rank.graph_create(call.procedure, comm.id(), graph),
    )
}

/// `MPI_Graph_map` (MPI 5.0, chapter 8).
pub fn graph_map(
    call: &Running,
    comm: Comm,
    _nnodes: usize,
    index: &[c_int],
    edges: CommArray<c_int>,
    rank: Out<c_int>,
) -> Done {
    let graph = graph(index, edges)?;
    rank.set(call.rank.objects().graph_map(comm.id(), &graph)?);
    Ok(())
}

fn graph(index: &[c_int], edges: CommArray<c_int>) -> Result<Graph, Error> {
    let count = index.iter().copied().max().unwrap_or(0).max(0);
    // SAFETY: C promises as many edges as the greatest element of `index`.
    let edges = unsafe { edges.with_len(count as usize) }?;
    Graph::new(index, edges)
}

/// `MPI_Graphdims_get` (MPI 5.0, chapter 8).
pub fn graphdims_get(call: &Running, comm: Comm, nodes: Out<c_int>, edges: Out<c_int>) -> Done {
    let state = call.rank.lock();
    let graph = state.objects().graph(comm.id())?;
    nodes.set(graph.nodes() as c_int);
    edges.set(graph.edges().len() as c_int);
    Ok(())
}

/// `MPI_Graph_get` (MPI 5.0, chapter 8).
pub fn graph_get(
    call: &Running,
    comm: Comm,
    _maxindex: usize,
    _maxedges: usize,
    index: &mut [MaybeUninit<c_int>],
    edges: &mut [MaybeUninit<c_int>],
) -> Done {
    let state = call.rank.lock();
    let graph = state.objects().graph(comm.id())?;
    fill(index, graph.index().iter().copied());
    fill(edges, graph.edges().iter().copied());
    Ok(())
}

/// `MPI_Graph_neighbors_count` (MPI 5.0, chapter 8).
pub fn graph_neighbors_count(call: &Running, comm: Comm, rank: c_int, count: Out<c_int>) -> Done {
    let state = call.rank.lock();
    count.set(state.objects().graph(comm.id())?.neighbours_of(rank)?.len() as c_int);
    Ok(())
}

/// `MPI_Graph_neighbors` (MPI 5.0, chapter 8).
pub fn graph_neighbors(
    call: &Running,
    comm: Comm,
    rank: c_int,
    _maxneighbors: usize,
    neighbours: &mut [MaybeUninit<c_int>],
) -> Done {
    let state = call.rank.lock();
    let all = state.objects().graph(comm.id())?.neighbours_of(rank)?;
    fill(neighbours, all.iter().copied());
    Ok(())
}

/// `MPI_Dist_graph_create_adjacent` (MPI 5.0, chapter 8): each rank passes its own edges. The ranks
/// keep their numbers.
pub fn dist_graph_create_adjacent(
    call: &Running,
    comm: Comm,
    _indegree: usize,
    sources: &[c_int],
    source_weights: CommArray<c_int>,
    _outdegree: usize,
    destinations: &[c_int],
    destination_weights: CommArray<c_int>,
    info: Info,
    _reorder: bool,
    new: Out<Comm>,
) -> Done {
    arguments(call.procedure, comm, check_hints(info))?;
    let ends = (sources.len(), destinations.len());
    let given = both_weights((source_weights, destination_weights), ends);
    let (incoming, outgoing) = arguments(call.procedure, comm, given)?;
    let edges = |ranks: &[c_int], weights: Option<&[c_int]>| Edges {
        ranks: ranks.to_vec(),
        weights: weights.map_or_else(|| vec![1; ranks.len()], <[c_int]>::to_vec),
    };
    let graph = DistGraph {
        weighted: incoming.is_some(),
        incoming: edges(sources, incoming),
        outgoing: edges(destinations, outgoing),
    };
    set_new(
        new,
        call.rank
            .dist_graph_create_adjacent(call.procedure, comm.id(), graph),
    )
}

/// `MPI_Dist_graph_create` (MPI 5.0, chapter 8): each rank passes any edges. The ranks keep their
/// numbers.
pub fn dist_graph_create(
    call: &Running,
    comm: Comm,
    _n: usize,
    sources: &[c_int],
    degrees: &[c_int],
    destinations: CommArray<c_int>,
    edge_weights: CommArray<c_int>,
    info: Info,
    _reorder: bool,
    new: Out<Comm>,
) -> Done {
    arguments(call.procedure, comm, check_hints(info))?;
    let degrees: Result<Vec<usize>, Error> = degrees
        .iter()
        .map(|&degree| args::len("degrees", degree))
        .collect();
    let degrees = arguments(call.procedure, comm, degrees)?;
    let count = degrees.iter().sum();
    // SAFETY: C promises as many destinations as the sum of the degrees.
    let destinations = unsafe { destinations.with_len(count) };
    let destinations = arguments(call.procedure, comm, destinations)?;
    let weights = arguments(call.procedure, comm, weights(edge_weights, count))?;
    let all_sources = sources
        .iter()
        .zip(&degrees)
        .flat_map(|(&source, &degree)| std::iter::repeat_n(source, degree));
    let edges: Vec<[c_int; 3]> = all_sources
        .zip(destinations)
        .enumerate()
        .map(|(at, (source, &destination))| {
            [
                source,
                destination,
                weights.map_or(1, |weights| weights[at]),
            ]
        })
        .collect();
    let is_weighted = weights.is_some();
    set_new(
        new,
        call.rank
            .dist_graph_create(call.procedure, comm.id(), &edges, is_weighted),
    )
}

/// `MPI_Dist_graph_neighbors_count` (MPI 5.0, chapter 8).
pub fn dist_graph_neighbors_count(
    call: &Running,
    comm: Comm,
    indegree: Out<c_int>,
    outdegree: Out<c_int>,
    weighted: Out<Flag>,
) -> Done {
    let state = call.rank.lock();
    let graph = state.objects().dist_graph(comm.id())?;
    indegree.set(graph.incoming.len() as c_int);
    outdegree.set(graph.outgoing.len() as c_int);
    weighted.set(graph.weighted);
    Ok(())
}

/// `MPI_Dist_graph_neighbors` (MPI 5.0, chapter 8).
///
/// # Safety
/// The arrays of weights have room for as many numbers as those of ranks, or are MPI_UNWEIGHTED.
pub unsafe fn dist_graph_neighbors(
    call: &Running,
    comm: Comm,
    _maxindegree: usize,
    sources: &mut [MaybeUninit<c_int>],
    source_weights: *mut c_int,
    _maxoutdegree: usize,
    destinations: &mut [MaybeUninit<c_int>],
    destination_weights: *mut c_int,
) -> Done {
    let state = call.rank.lock();
    let graph = state.objects().dist_graph(comm.id())?;
    for (name, edges, ranks, weights) in [
        ("sourceweights", &graph.incoming, sources, source_weights),
        (
            "destweights",
            &graph.outgoing,
            destinations,
            destination_weights,
        ),
    ] {
        let wants_weights = graph.weighted && weights != MPI_UNWEIGHTED && !ranks.is_empty();
        if wants_weights {
            // SAFETY: the caller promises as much room as for the ranks.
            let weights = unsafe { args::slice_out(name, weights, ranks.len()) }?;
            fill(weights, edges.weights.iter().copied());
        }
        fill(ranks, edges.ranks.iter().copied());
    }
    Ok(())
}

/// The weights of the incoming and of the outgoing edges: both are present, or none.
#[allow(clippy::type_complexity, reason = "two arrays, or none")]
fn both_weights<'a>(
    (incoming, outgoing): (CommArray<'a, c_int>, CommArray<'a, c_int>),
    (indegree, outdegree): (usize, usize),
) -> Result<(Option<&'a [c_int]>, Option<&'a [c_int]>), Error> {
    let both = (weights(incoming, indegree)?, weights(outgoing, outdegree)?);
    if both.0.is_none() != both.1.is_none() {
        let detail = "one of sourceweights and destweights is MPI_UNWEIGHTED: both are, or none";
        return Err(Error::new(MPI_ERR_ARG, detail));
    }
    Ok(both)
}

/// The weights of `count` edges; `None` for MPI_UNWEIGHTED.
fn weights(array: CommArray<'_, c_int>, count: usize) -> Result<Option<&[c_int]>, Error> {
    let address = array.address();
    if address == MPI_UNWEIGHTED.cast_const() {
        return Ok(None);
    }
    if count == 0 || address == MPI_WEIGHTS_EMPTY.cast_const() {
        return match count {
            0 => Ok(Some(&[])),
            _ => Err(Error::new(
                MPI_ERR_ARG,
                "MPI_WEIGHTS_EMPTY stands for an array without weights, but there are edges",
            )),
        };
    }
    // SAFETY: C promises a weight for each edge.
    unsafe { array.with_len(count) }.map(Some)
}
