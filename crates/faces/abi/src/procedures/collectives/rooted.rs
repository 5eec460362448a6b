//! The arguments of collectives from one rank to all and from all to one: broadcast, gather,
//! scatter.

use super::blocks::*;
use crate::buffer::UserBuffer;
use crate::error::Error;
use crate::handle::Comm;
use datatype::Buffer;
use mpi::State;
use mpi::coll::Work;
use std::ffi::c_int;

#[inline(always)]
pub(super) fn make_bcast(state: &State, comm: Comm, buffer: UserBuffer, root: c_int) -> Made {
    let buffer = match buffer.buffer(state) {
        Err(error) => insignificant(state, comm, root, error)?,
        found => found?,
    };
    Ok(Work::Bcast { buffer, root })
}

/// An empty buffer if this rank has no part in the broadcast, so that its arguments are ignored;
/// otherwise the error of its arguments.
#[cold]
fn insignificant(state: &State, comm: Comm, root: c_int, error: Error) -> Result<Buffer, Error> {
    match part_and_size(state, comm, root)? {
        (Part::Nobody, _) => Ok(Buffer::empty()),
        _ => Err(error),
    }
}

/// The operation that MPI_Gather or MPI_Gatherv has described by these arguments.
#[inline(always)]
pub(super) fn make_gather(
    state: &State,
    comm: Comm,
    send: UserBuffer,
    receive: UserBlocks,
    root: c_int,
) -> Made {
    let is_even = receive.is_even();
    let (part, size) = part_and_size(state, comm, root)?;
    let send = own_block(state, send, part)?;
    let receive = match part {
        Part::Root | Part::RootBetween => Some(receive.checked("recvcount")?.resolve(state, size)?),
        _ => None,
    };
    Ok(match is_even {
        true => Work::Gather {
            send,
            receive,
            root,
        },
        false => Work::Gatherv {
            send,
            receive,
            root,
        },
    })
}

/// The operation that MPI_Scatter or MPI_Scatterv has described by these arguments.
#[inline(always)]
pub(super) fn make_scatter(
    state: &State,
    comm: Comm,
    send: UserBlocks,
    receive: UserBuffer,
    root: c_int,
) -> Made {
    let is_even = send.is_even();
    let (part, size) = part_and_size(state, comm, root)?;
    let send = match part {
        Part::Root | Part::RootBetween => Some(send.checked("sendcount")?.resolve(state, size)?),
        _ => None,
    };
    let receive = own_block(state, receive, part)?;
    Ok(match is_even {
        true => Work::Scatter {
            send,
            receive,
            root,
        },
        false => Work::Scatterv {
            send,
            receive,
            root,
        },
    })
}

/// This rank's block of a gather or scatter. `None`: the block is in place at the root, or this
/// rank has no block.
fn own_block(state: &State, own: UserBuffer, part: Part) -> Result<Option<Buffer>, Error> {
    match part {
        Part::Root => own.buffer_unless_in_place(state),
        Part::Other => own.buffer(state).map(Some),
        Part::RootBetween | Part::Nobody => Ok(None),
    }
}
