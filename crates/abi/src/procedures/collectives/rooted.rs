//! One to all and all to one: broadcast, gather, scatter.

use super::Made;
use super::blocks::*;
use crate::buffer::UserBuffer;
use crate::error::Error;
use crate::handle::Comm;
use datatype::Buffer;
use mpi::State;
use mpi::coll::Work;
use std::ffi::c_int;

#[inline(always)]
pub(super) fn make_bcast(state: &State, _: Comm, buffer: UserBuffer, root: c_int) -> Made {
    let buffer = buffer.buffer(state)?;
    Ok(Work::Bcast { buffer, root })
}

/// MPI_Gather and MPI_Gatherv.
#[inline(always)]
pub(super) fn make_gather(
    state: &State,
    comm: Comm,
    send: UserBuffer,
    receive: UserBlocks,
    root: c_int,
) -> Made {
    let is_even = receive.is_even();
    let at_root = is_root(state, comm, root)?;
    let size = size_and_rank(state, comm)?.0;
    let send = own_block(state, send, at_root)?;
    let receive = match at_root {
        true => Some(receive.checked("recvcount")?.resolve(state, size)?),
        false => None,
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

/// MPI_Scatter and MPI_Scatterv.
#[inline(always)]
pub(super) fn make_scatter(
    state: &State,
    comm: Comm,
    send: UserBlocks,
    receive: UserBuffer,
    root: c_int,
) -> Made {
    let is_even = send.is_even();
    let at_root = is_root(state, comm, root)?;
    let size = size_and_rank(state, comm)?.0;
    let send = match at_root {
        true => Some(send.checked("sendcount")?.resolve(state, size)?),
        false => None,
    };
    let receive = own_block(state, receive, at_root)?;
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

/// This rank's block of a gather or scatter; `None` if it is in place at the root.
fn own_block(state: &State, own: UserBuffer, at_root: bool) -> Result<Option<Buffer>, Error> {
    match at_root {
        true => own.buffer_unless_in_place(state),
        false => own.buffer(state).map(Some),
    }
}
