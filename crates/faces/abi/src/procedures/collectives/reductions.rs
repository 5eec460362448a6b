//! The arguments of reductions: to one rank, to all ranks, over the ranks up to this one.

use super::blocks::*;
use crate::buffer::UserBuffer;
use crate::constants::MPI_IN_PLACE;
use crate::counts::CommCounts;
use crate::error::Error;
use crate::handle::{Comm, Datatype, Op};
use mpi::State;
use mpi::coll::{Counts, Reduction, Work};
use mpi::op::Operation;
use std::ffi::{c_int, c_void};

pub(super) fn make_reduce(
    state: &State,
    comm: Comm,
    send: UserBuffer,
    receive: UserBuffer,
    op: Op,
    root: c_int,
) -> Made {
    let (part, _) = part_and_size(state, comm, root)?;
    let reduction = match part {
        Part::RootBetween => Reduction {
            send: None,
            receive: Some(receive.elements(state)?),
            op: state.objects().ops().get(op.id(), receive.datatype().0)?,
        },
        Part::Root => to_all(state, send, receive, op)?,
        Part::Other => Reduction {
            send: Some(send.elements(state)?),
            receive: None,
            op: state.objects().ops().get(op.id(), send.datatype().0)?,
        },
        Part::Nobody => nothing(),
    };
    Ok(Work::Reduce { reduction, root })
}

/// The reduction of a rank that has no part in it.
#[cold]
fn nothing() -> Reduction {
    Reduction {
        send: None,
        receive: None,
        op: Operation::Predefined(datatype::Op::Sum),
    }
}

#[inline(always)]
pub(super) fn make_allreduce(
    state: &State,
    _: Comm,
    send: UserBuffer,
    receive: UserBuffer,
    op: Op,
) -> Made {
    Ok(Work::Allreduce(to_all(state, send, receive, op)?))
}

/// The operation of MPI_Scan, or of MPI_Exscan if `exclusive`, with these arguments.
#[inline(always)]
pub(super) fn make_scan(
    state: &State,
    _: Comm,
    send: UserBuffer,
    receive: UserBuffer,
    op: Op,
    exclusive: bool,
) -> Made {
    Ok(Work::Scan {
        reduction: to_all(state, send, receive, op)?,
        exclusive,
    })
}

/// MPI_Reduce_scatter.
pub(super) fn make_reduce_scatter(
    state: &State,
    comm: Comm,
    vectors: UnequalVectors,
    recvcounts: CommCounts,
    op: Op,
) -> Made {
    let (size, rank) = size_and_rank(state, comm)?;
    // SAFETY: the maker of `vectors` promised counts of the communicator's size.
    let recvcounts = unsafe { recvcounts.with_len(size) }?;
    let counts =
        (0..size).map(|rank| block_count(recvcounts.get(rank), rank).map(|count| count as usize));
    let counts: Box<[usize]> = counts.collect::<Result<_, _>>()?;
    let total = counts
        .iter()
        .try_fold(0i64, |sum, &count| sum.checked_add(count as i64));
    let total = total.ok_or_else(|| too_many("the counts of all ranks together"))?;
    Ok(Work::ReduceScatter {
        reduction: vectors.reduction(state, total, counts[rank] as i64, op)?,
        counts: Counts::Each(counts),
    })
}

/// MPI_Reduce_scatter_block.
pub(super) fn make_reduce_scatter_block(
    state: &State,
    comm: Comm,
    vectors: UnequalVectors,
    recvcount: i64,
    op: Op,
) -> Made {
    let total = recvcount.checked_mul(size_and_rank(state, comm)?.0 as i64);
    let total = total.ok_or_else(|| too_many("the counts of all ranks together"))?;
    Ok(Work::ReduceScatter {
        reduction: vectors.reduction(state, total, recvcount, op)?,
        counts: Counts::Even(recvcount as usize),
    })
}

/// A reduction of vectors of equal length, whose result goes to the receive vector of every rank.
#[inline(always)]
fn to_all(
    state: &State,
    send: UserBuffer,
    receive: UserBuffer,
    op: Op,
) -> Result<Reduction, Error> {
    Ok(Reduction {
        send: send.elements_unless_in_place(state)?,
        receive: Some(receive.elements(state)?),
        op: state.objects().ops().get(op.id(), receive.datatype().0)?,
    })
}

/// The vectors of a reduction in which a rank sends the elements of all ranks and receives those of
/// one.
///
/// The value carries the caller's promise about the memory, so its methods are safe.
#[derive(Clone, Copy)]
pub(super) struct UnequalVectors {
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    datatype: Datatype,
}

impl UnequalVectors {
    /// The vectors at these addresses, with their datatype.
    ///
    /// # Safety
    /// [`UserBuffer::new`]'s promise for both vectors: `sendbuf` holds the elements of all ranks
    /// and `recvbuf` those of this rank, or `recvbuf` those of all ranks if `sendbuf` is
    /// MPI_IN_PLACE. An array of counts that goes with them has an element for each rank of the
    /// communicator.
    #[inline(always)]
    pub(super) unsafe fn new(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        datatype: Datatype,
    ) -> UnequalVectors {
        UnequalVectors {
            sendbuf,
            recvbuf,
            datatype,
        }
    }

    /// A reduction of `total` elements, of which this rank gets `own`.
    fn reduction(self, state: &State, total: i64, own: i64, op: Op) -> Result<Reduction, Error> {
        let in_place = self.sendbuf == MPI_IN_PLACE.cast_const();
        let room = if in_place { total } else { own };
        // SAFETY: `new` was promised vectors of these lengths.
        let (send, receive) = unsafe {
            (
                UserBuffer::new(self.sendbuf, total, self.datatype),
                UserBuffer::new(self.recvbuf, room, self.datatype),
            )
        };
        to_all(state, send, receive, op)
    }
}
