//! The arguments of collectives with blocks from all ranks to all: allgather and alltoall.

use super::blocks::*;
use crate::buffer::UserBuffer;
use crate::handle::Comm;
use mpi::State;
use mpi::coll::Work;

/// The operation that MPI_Allgather or MPI_Allgatherv has described by these arguments.
#[inline(always)]
pub(super) fn make_allgather(
    state: &State,
    comm: Comm,
    send: UserBuffer,
    receive: UserBlocks,
) -> Made {
    let size = block_count_of(state, comm)?;
    Ok(Work::Allgather {
        send: send.buffer_unless_in_place(state)?,
        receive: receive.resolve(state, size)?,
    })
}

/// The operation that MPI_Alltoall, MPI_Alltoallv or MPI_Alltoallw has described by these
/// arguments.
#[inline(always)]
pub(super) fn make_alltoall(
    state: &State,
    comm: Comm,
    send: UserBlocks,
    receive: UserBlocks,
) -> Made {
    let size = block_count_of(state, comm)?;
    Ok(Work::Alltoall {
        send: send.resolve_unless_in_place(state, size)?,
        receive: receive.resolve(state, size)?,
    })
}
