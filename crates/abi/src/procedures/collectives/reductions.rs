//! Vectors of all ranks combined: to one, to all, to those before.

use super::Made;
use super::parts::*;
use crate::buffer::{elements, elements_unless_in_place};
use crate::counts::CommCounts;
use crate::error::Error;
use crate::handle::{Comm, Datatype, Op};
use mpi::State;
use mpi::coll::{Counts, Reduction, Work};
use std::ffi::{c_int, c_void};

/// # Safety
/// C's promise for message buffers.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(super) unsafe fn make_reduce(
    state: &State,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    root: c_int,
    comm: Comm,
) -> Made {
    let at_root = is_root(state, comm, root)?;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        if at_root {
            let send = elements_unless_in_place(state, sendbuf, count, datatype)?;
            (send, Some(elements(state, recvbuf, count, datatype)?))
        } else {
            (Some(elements(state, sendbuf, count, datatype)?), None)
        }
    };
    let op = state.ops.get(op.id(), datatype.0)?;
    Ok(Work::Reduce {
        reduction: Reduction { send, receive, op },
        root,
    })
}

/// A reduction whose result every rank gets.
///
/// # Safety
/// C's promise for message buffers.
#[inline]
pub(super) unsafe fn to_all(
    state: &State,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Result<Reduction, Error> {
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = elements_unless_in_place(state, sendbuf, count, datatype)?;
        (send, Some(elements(state, recvbuf, count, datatype)?))
    };
    Ok(Reduction {
        send,
        receive,
        op: state.ops.get(op.id(), datatype.0)?,
    })
}

/// # Safety
/// C's promise for message buffers.
#[inline]
pub(super) unsafe fn make_allreduce(
    state: &State,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    _: Comm,
) -> Made {
    // SAFETY: the caller's promise.
    Ok(Work::Allreduce(unsafe {
        to_all(state, sendbuf, recvbuf, count, datatype, op)
    }?))
}

/// # Safety
/// C's promise for message buffers.
pub(super) unsafe fn make_scan(
    state: &State,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    _: Comm,
) -> Made {
    // SAFETY: the caller's promise.
    let reduction = unsafe { to_all(state, sendbuf, recvbuf, count, datatype, op) }?;
    Ok(Work::Scan {
        reduction,
        exclusive: false,
    })
}

/// # Safety
/// C's promise for message buffers.
pub(super) unsafe fn make_exscan(
    state: &State,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    _: Comm,
) -> Made {
    // SAFETY: the caller's promise.
    let reduction = unsafe { to_all(state, sendbuf, recvbuf, count, datatype, op) }?;
    Ok(Work::Scan {
        reduction,
        exclusive: true,
    })
}

/// A reduction of `total` elements of which this rank gets `own`.
///
/// # Safety
/// C's promise for message buffers.
pub(super) unsafe fn spread(
    state: &State,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    (total, own): (i64, i64),
    datatype: Datatype,
    op: Op,
) -> Result<Reduction, Error> {
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = elements_unless_in_place(state, sendbuf, total, datatype)?;
        let room = if send.is_some() { own } else { total };
        (send, Some(elements(state, recvbuf, room, datatype)?))
    };
    Ok(Reduction {
        send,
        receive,
        op: state.ops.get(op.id(), datatype.0)?,
    })
}

/// # Safety
/// C's promise for message buffers and for the array.
pub(super) unsafe fn make_reduce_scatter(
    state: &State,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: CommCounts,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> Made {
    let (size, rank) = place(state, comm)?;
    // SAFETY: the caller's promise.
    let recvcounts = unsafe { recvcounts.with_len(size) }?;
    let counts =
        (0..size).map(|rank| part_count(recvcounts.get(rank), rank).map(|count| count as usize));
    let counts: Box<[usize]> = counts.collect::<Result<_, _>>()?;
    let total = counts
        .iter()
        .try_fold(0i64, |sum, &count| sum.checked_add(count as i64));
    let total = total.ok_or_else(|| too_many("the counts of all ranks together"))?;
    // SAFETY: the same.
    let reduction = unsafe {
        spread(
            state,
            sendbuf,
            recvbuf,
            (total, counts[rank] as i64),
            datatype,
            op,
        )
    }?;
    Ok(Work::ReduceScatter {
        reduction,
        counts: Counts::Each(counts),
    })
}

/// # Safety
/// C's promise for message buffers.
pub(super) unsafe fn make_reduce_scatter_block(
    state: &State,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> Made {
    let total = recvcount.checked_mul(place(state, comm)?.0 as i64);
    let total = total.ok_or_else(|| too_many("the counts of all ranks together"))?;
    // SAFETY: the caller's promise.
    let reduction = unsafe { spread(state, sendbuf, recvbuf, (total, recvcount), datatype, op) }?;
    Ok(Work::ReduceScatter {
        reduction,
        counts: Counts::Even(recvcount as usize),
    })
}
