//! The buffer arguments of collectives that have a block for each rank.

use crate::args;
use crate::buffer::UserBuffer;
use crate::constants::{MPI_ERR_COUNT, MPI_IN_PLACE, MPI_PROC_NULL, MPI_ROOT};
use crate::counts::{CommArray, CommCounts};
use crate::error::Error;
use crate::handle::{Comm, Datatype};
use mpi::State;
use mpi::coll::{Blocks, Work};
use std::ffi::{c_int, c_void};

/// The operation that the arguments of a procedure describe, or the error of the arguments.
pub(super) type Made = Result<Work, Error>;

/// The number of ranks that have a block of this rank or for it: the ranks of the communicator, or
/// of an intercommunicator's remote group.
#[inline]
pub(super) fn block_count_of(state: &State, comm: Comm) -> Result<usize, Error> {
    Ok(state.objects().comms().get(comm.id())?.core.peers().len())
}

/// The size of this rank's group, and the rank's number in it.
#[inline]
pub(super) fn size_and_rank(state: &State, comm: Comm) -> Result<(usize, usize), Error> {
    let core = &state.objects().comms().get(comm.id())?.core;
    Ok((core.size(), core.rank))
}

/// The role of this rank in an operation with a root or between two groups.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// This rank is the root of the operation.
    Root,
    /// This rank is the root of an operation between two groups, without a block or vector of its
    /// own.
    RootBetween,
    /// This rank is not the root, and has arguments of its own.
    Other,
    /// Another rank of this rank's group is the root of an operation between two groups: the
    /// arguments of this rank are ignored.
    Nobody,
}

/// This rank's role, and the number of ranks that have a block at the root. A root that does not
/// exist is detected later.
#[inline]
pub(super) fn part_and_size(
    state: &State,
    comm: Comm,
    root: c_int,
) -> Result<(Part, usize), Error> {
    let core = &state.objects().comms().get(comm.id())?.core;
    let part = match core.is_inter() {
        false if usize::try_from(root) == Ok(core.rank) => Part::Root,
        true if root == MPI_ROOT => Part::RootBetween,
        true if root == MPI_PROC_NULL => Part::Nobody,
        _ => Part::Other,
    };
    Ok((part, core.peers().len()))
}

/// The arguments of a buffer with a block for each rank.
///
/// The value carries the caller's promise about the memory and the arrays, so its methods are safe.
/// The arrays have one element for each rank that has a block.
#[derive(Clone, Copy)]
pub(super) struct UserBlocks<'a> {
    address: *const c_void,
    shape: BlockShape<'a>,
}

#[derive(Clone, Copy)]
enum BlockShape<'a> {
    /// The same number of elements for every rank, in consecutive blocks.
    Even(i64, Datatype),
    /// A count and a displacement in extents for each rank.
    Uneven(CommCounts<'a>, CommCounts<'a>, Datatype),
    /// A count, a displacement in bytes and a datatype for each rank.
    Mixed(CommCounts<'a>, CommCounts<'a>, CommArray<'a, Datatype>),
}

impl<'a> UserBlocks<'a> {
    /// Consecutive blocks of `count` elements each.
    ///
    /// # Safety
    /// [`UserBuffer::new`]'s promise for the blocks of all ranks of the communicator.
    #[inline(always)]
    pub(super) unsafe fn even(address: *const c_void, count: i64, datatype: Datatype) -> Self {
        UserBlocks {
            address,
            shape: BlockShape::Even(count, datatype),
        }
    }

    /// Blocks with a count and a displacement in extents for each rank.
    ///
    /// # Safety
    /// [`UserBuffer::new`]'s promise for each block; the arrays have an element for each rank of
    /// the communicator if the call reads them.
    #[inline(always)]
    pub(super) unsafe fn uneven(
        address: *const c_void,
        counts: CommCounts<'a>,
        displs: CommCounts<'a>,
        datatype: Datatype,
    ) -> Self {
        UserBlocks {
            address,
            shape: BlockShape::Uneven(counts, displs, datatype),
        }
    }

    /// Blocks with a count, a displacement in bytes and a datatype for each rank.
    ///
    /// # Safety
    /// [`UserBuffer::new`]'s promise for each block; the arrays have an element for each rank of
    /// the communicator if the call reads them.
    #[inline(always)]
    pub(super) unsafe fn mixed(
        address: *const c_void,
        counts: CommCounts<'a>,
        displs: CommCounts<'a>,
        datatypes: CommArray<'a, Datatype>,
    ) -> Self {
        UserBlocks {
            address,
            shape: BlockShape::Mixed(counts, displs, datatypes),
        }
    }

    /// True if all blocks have one size.
    #[inline(always)]
    pub(super) fn is_even(&self) -> bool {
        matches!(self.shape, BlockShape::Even(..))
    }

    /// Rejects a negative count. For a count that is significant at some ranks only, which the
    /// entry point cannot check.
    ///
    /// # Errors
    /// MPI_ERR_COUNT, with the name of the parameter.
    #[inline(always)]
    pub(super) fn checked(self, name: &str) -> Result<Self, Error> {
        if let BlockShape::Even(count, _) = self.shape {
            args::count(name, count)?;
        }
        Ok(self)
    }

    /// The memory of the blocks for a group of `size` ranks.
    #[inline(always)]
    pub(super) fn resolve(&self, state: &State, size: usize) -> Result<Blocks, Error> {
        match self.shape {
            BlockShape::Even(count, datatype) => {
                let all = count.checked_mul(size as i64);
                let all = all.ok_or_else(|| too_many("the counts of all ranks together"))?;
                // SAFETY: the constructor was promised the blocks of all ranks.
                let buffer = unsafe { UserBuffer::new(self.address, all, datatype) };
                Ok(Blocks::even(buffer.buffer(state)?, size))
            }
            BlockShape::Uneven(counts, displs, datatype) => {
                self.uneven_blocks(state, size, counts, displs, datatype)
            }
            BlockShape::Mixed(counts, displs, datatypes) => {
                self.mixed_blocks(state, size, counts, displs, datatypes)
            }
        }
    }

    /// The memory of the blocks of `size` ranks, or `None` if the address is MPI_IN_PLACE.
    #[inline(always)]
    pub(super) fn resolve_unless_in_place(
        &self,
        state: &State,
        size: usize,
    ) -> Result<Option<Blocks>, Error> {
        if self.address == MPI_IN_PLACE.cast_const() {
            return Ok(None);
        }
        self.resolve(state, size).map(Some)
    }

    fn uneven_blocks(
        &self,
        state: &State,
        size: usize,
        counts: CommCounts,
        displs: CommCounts,
        datatype: Datatype,
    ) -> Result<Blocks, Error> {
        // SAFETY: `uneven` was promised arrays of the communicator's size.
        let (counts, displs) = unsafe { (counts.with_len(size)?, displs.with_len(size)?) };
        let extent = state.objects().types().committed(datatype.id())?.extent();
        let blocks = (0..size).map(|rank| {
            let offset = extent.wrapping_mul(displs.get(rank) as isize);
            let count = block_count(counts.get(rank), rank)?;
            // SAFETY: `uneven` was promised the memory of each block.
            unsafe { self.block(offset, count, datatype) }.buffer(state)
        });
        Ok(Blocks::Each(blocks.collect::<Result<_, _>>()?))
    }

    fn mixed_blocks(
        &self,
        state: &State,
        size: usize,
        counts: CommCounts,
        displs: CommCounts,
        datatypes: CommArray<Datatype>,
    ) -> Result<Blocks, Error> {
        // SAFETY: `mixed` was promised arrays of the communicator's size.
        let (counts, displs, datatypes) = unsafe {
            (
                counts.with_len(size)?,
                displs.with_len(size)?,
                datatypes.with_len(size)?,
            )
        };
        let blocks = (0..size).map(|rank| {
            let count = block_count(counts.get(rank), rank)?;
            // SAFETY: `mixed` was promised the memory of each block.
            unsafe { self.block(displs.get(rank) as isize, count, datatypes[rank]) }.buffer(state)
        });
        Ok(Blocks::Each(blocks.collect::<Result<_, _>>()?))
    }

    /// The buffer of one rank's block.
    ///
    /// # Safety
    /// [`UserBuffer::new`]'s promise for the block at `offset` bytes from the address.
    unsafe fn block(&self, offset: isize, count: i64, datatype: Datatype) -> UserBuffer {
        // SAFETY: the caller promises the memory of this block.
        unsafe { UserBuffer::new(self.address.wrapping_byte_offset(offset), count, datatype) }
    }
}

/// Checks the count of one rank, from an array that no entry point checks.
#[inline]
pub(super) fn block_count(count: i64, rank: usize) -> Result<i64, Error> {
    if count < 0 {
        Err(negative(count, rank))
    } else {
        Ok(count)
    }
}

#[cold]
fn negative(count: i64, rank: usize) -> Error {
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
