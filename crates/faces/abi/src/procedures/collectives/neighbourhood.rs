//! The arguments of collectives with blocks from and to the neighbours in a topology.

use super::blocks::*;
use crate::buffer::UserBuffer;
use crate::handle::Comm;
use mpi::State;
use mpi::coll::Work;

/// The operation that MPI_Neighbor_allgather or MPI_Neighbor_allgatherv has described by these
/// arguments.
pub(super) fn make_neighbour_allgather(
    state: &State,
    comm: Comm,
    send: UserBuffer,
    receive: UserBlocks,
) -> Made {
    let topology = state.objects().neighbourhood(comm.id())?;
    Ok(Work::NeighbourAllgather {
        send: send.buffer(state)?,
        receive: receive.resolve(state, topology.neighbours.sources().len())?,
        topology,
    })
}

/// The operation that MPI_Neighbor_alltoall, MPI_Neighbor_alltoallv or MPI_Neighbor_alltoallw has
/// described by these arguments.
pub(super) fn make_neighbour_alltoall(
    state: &State,
    comm: Comm,
    send: UserBlocks,
    receive: UserBlocks,
) -> Made {
    let topology = state.objects().neighbourhood(comm.id())?;
    let neighbours = &topology.neighbours;
    Ok(Work::NeighbourAlltoall {
        send: send.resolve(state, neighbours.destinations().len())?,
        receive: receive.resolve(state, neighbours.sources().len())?,
        topology,
    })
}
