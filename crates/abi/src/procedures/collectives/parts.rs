//! Vectors in parts, one for each rank, as the arguments of a procedure describe them.

use crate::buffer::buffer;
use crate::constants::MPI_ERR_COUNT;
use crate::counts::{CommArray, CommCounts};
use crate::error::Error;
use crate::handle::{Comm, Datatype};
use mpi::State;
use mpi::coll::Blocks;
use std::ffi::{c_int, c_void};

/// How many ranks the communicator has, and which of them this is.
#[inline]
pub(super) fn place(state: &State, comm: Comm) -> Result<(usize, usize), Error> {
    let core = &state.comms.get(comm.id())?.core;
    Ok((core.size(), core.rank))
}

pub(super) fn is_root(state: &State, comm: Comm, root: c_int) -> Result<bool, Error> {
    Ok(usize::try_from(root) == Ok(place(state, comm)?.1))
}

/// A part of `count` elements for each of `size` ranks, one behind the other.
///
/// # Safety
/// C's promise for message buffers.
pub(super) unsafe fn even(
    state: &State,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
    size: usize,
) -> Result<Blocks, Error> {
    let all = count.checked_mul(size as i64);
    let all = all.ok_or_else(|| too_many("the counts of all ranks together"))?;
    // SAFETY: the caller's promise.
    Ok(Blocks::even(
        unsafe { buffer(state, address, all, datatype) }?,
        size,
    ))
}

/// A part for each of `size` ranks, as many elements and as far from the address, in extents, as the arrays say.
///
/// # Safety
/// C's promise for message buffers and for the arrays.
pub(super) unsafe fn uneven(
    state: &State,
    address: *const c_void,
    counts: CommCounts,
    displs: CommCounts,
    datatype: Datatype,
    size: usize,
) -> Result<Blocks, Error> {
    // SAFETY: the caller's promise.
    let (counts, displs) = unsafe { (counts.with_len(size)?, displs.with_len(size)?) };
    let extent = state.types.committed(datatype.id())?.extent();
    let parts = (0..size).map(|rank| {
        let count = part_count(counts.get(rank), rank)?;
        let offset = extent.wrapping_mul(displs.get(rank) as isize);
        // SAFETY: the same.
        unsafe { buffer(state, address.wrapping_byte_offset(offset), count, datatype) }
    });
    Ok(Blocks::Each(parts.collect::<Result<_, _>>()?))
}

/// The same with a datatype for each rank, and displacements in bytes.
///
/// # Safety
/// As for [`uneven`].
pub(super) unsafe fn mixed(
    state: &State,
    address: *const c_void,
    counts: CommCounts,
    displs: CommCounts,
    datatypes: CommArray<Datatype>,
    size: usize,
) -> Result<Blocks, Error> {
    // SAFETY: the caller's promise.
    let arrays = unsafe {
        (
            counts.with_len(size)?,
            displs.with_len(size)?,
            datatypes.with_len(size)?,
        )
    };
    let (counts, displs, datatypes) = arrays;
    let parts = (0..size).map(|rank| {
        let count = part_count(counts.get(rank), rank)?;
        let start = address.wrapping_byte_offset(displs.get(rank) as isize);
        // SAFETY: the same.
        unsafe { buffer(state, start, count, datatypes[rank]) }
    });
    Ok(Blocks::Each(parts.collect::<Result<_, _>>()?))
}

#[inline]
pub(super) fn part_count(count: i64, rank: usize) -> Result<i64, Error> {
    if count < 0 {
        Err(negative(count, rank))
    } else {
        Ok(count)
    }
}

#[cold]
pub(super) fn negative(count: i64, rank: usize) -> Error {
    let detail = format!("the count for rank {rank} is {count}; it must not be negative");
    Error::new(MPI_ERR_COUNT, detail)
}

#[cold]
pub(super) fn too_many(what: &str) -> Error {
    Error::new(
        MPI_ERR_COUNT,
        format!("{what} are more than any memory holds"),
    )
}
