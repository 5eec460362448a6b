//! Chapter 6: collective operations on intracommunicators, in their blocking and nonblocking forms.
//!
//! Each procedure turns its arguments into a `mpi::coll::Work` once; both forms take that.
//! Arguments that count at the root only are not looked at elsewhere.

use super::Done;
use crate::args::{self, Out};
use crate::buffer::{buffer, buffer_unless_in_place, elements, elements_unless_in_place};
use crate::constants::MPI_ERR_COUNT;
use crate::counts::{CommArray, CommCounts};
use crate::error::Error;
use crate::frame::Running;
use crate::handle::{Comm, Datatype, Op, Request};
use datatype::Buffer;
use mpi::State;
use mpi::coll::{Counts, Parts, Reduction, Work};
use std::ffi::{c_int, c_void};

/// What a procedure's arguments come to, or what is wrong with them.
type Made = Result<Work, Error>;

macro_rules! collectives {
    ($($name:ident $inonblocking:ident $make:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            /// # Safety
            /// C's promise for message buffers and for the arrays of this procedure.
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "the standard's")]
            pub unsafe fn $name(call: &Running, $($argument: $kind,)* comm: Comm) -> Done {
                let work = {
                    let state = call.rank.lock();
                    // SAFETY: the caller's promise.
                    unsafe { $make(&state, $($argument,)* comm) }?
                };
                call.rank.collective(call.procedure, &work, comm.id())
            }

            /// # Safety
            /// The same; for message buffers until the request is complete.
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "the standard's")]
            pub unsafe fn $inonblocking(
                call: &Running,
                $($argument: $kind,)*
                comm: Comm,
                request: Out<Request>,
            ) -> Done {
                let work = {
                    let state = call.rank.lock();
                    // SAFETY: the caller's promise.
                    unsafe { $make(&state, $($argument,)* comm) }?
                };
                let id = call.rank.start_collective(work, comm.id())?;
                request.set(Request::from(id.0));
                Ok(())
            }
        )*
    };
}

collectives! {
    bcast ibcast
        make_bcast(buffer: *mut c_void, count: i64, datatype: Datatype, root: c_int);
    gather igather
        make_gather(sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int);
    gatherv igatherv
        make_gatherv(sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, displs: CommCounts, recvtype: Datatype, root: c_int);
    scatter iscatter
        make_scatter(sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int);
    scatterv iscatterv
        make_scatterv(sendbuf: *const c_void, sendcounts: CommCounts, displs: CommCounts, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int);
    allgather iallgather
        make_allgather(sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype);
    allgatherv iallgatherv
        make_allgatherv(sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, displs: CommCounts, recvtype: Datatype);
    alltoall ialltoall
        make_alltoall(sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype);
    alltoallv ialltoallv
        make_alltoallv(sendbuf: *const c_void, sendcounts: CommCounts, sdispls: CommCounts, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, rdispls: CommCounts, recvtype: Datatype);
    alltoallw ialltoallw
        make_alltoallw(sendbuf: *const c_void, sendcounts: CommCounts, sdispls: CommCounts,
            sendtypes: CommArray<Datatype>,
            recvbuf: *mut c_void, recvcounts: CommCounts, rdispls: CommCounts, recvtypes: CommArray<Datatype>);
    reduce ireduce
        make_reduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op,
            root: c_int);
    allreduce iallreduce
        make_allreduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op);
    reduce_scatter ireduce_scatter
        make_reduce_scatter(sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: CommCounts,
            datatype: Datatype, op: Op);
    reduce_scatter_block ireduce_scatter_block
        make_reduce_scatter_block(sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: i64,
            datatype: Datatype, op: Op);
    scan iscan
        make_scan(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op);
    exscan iexscan
        make_exscan(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op);
}

#[inline]
pub fn barrier(call: &Running, comm: Comm) -> Done {
    call.rank
        .collective(call.procedure, &Work::Barrier, comm.id())
}

pub fn ibarrier(call: &Running, comm: Comm, request: Out<Request>) -> Done {
    let id = call.rank.start_collective(Work::Barrier, comm.id())?;
    request.set(Request::from(id.0));
    Ok(())
}

/// How many ranks the communicator has, and which of them this is.
#[inline]
fn place(state: &State, comm: Comm) -> Result<(usize, usize), Error> {
    let core = &state.comms.get(comm.id())?.core;
    Ok((core.size(), core.rank))
}

fn is_root(state: &State, comm: Comm, root: c_int) -> Result<bool, Error> {
    Ok(usize::try_from(root) == Ok(place(state, comm)?.1))
}

/// A part of `count` elements for each of `size` ranks, one behind the other.
///
/// # Safety
/// C's promise for message buffers.
unsafe fn even(
    state: &State,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
    size: usize,
) -> Result<Parts, Error> {
    let all = count.checked_mul(size as i64);
    let all = all.ok_or_else(|| too_many("the counts of all ranks together"))?;
    // SAFETY: the caller's promise.
    Ok(Parts::even(
        unsafe { buffer(state, address, all, datatype) }?,
        size,
    ))
}

/// A part for each of `size` ranks, as many elements and as far from the address, in extents, as the arrays say.
///
/// # Safety
/// C's promise for message buffers and for the arrays.
unsafe fn uneven(
    state: &State,
    address: *const c_void,
    counts: CommCounts,
    displs: CommCounts,
    datatype: Datatype,
    size: usize,
) -> Result<Parts, Error> {
    // SAFETY: the caller's promise.
    let (counts, displs) = unsafe { (counts.with_len(size)?, displs.with_len(size)?) };
    let extent = state.types.committed(datatype.id())?.extent();
    let parts = (0..size).map(|rank| {
        let count = part_count(counts.get(rank), rank)?;
        let offset = extent.wrapping_mul(displs.get(rank) as isize);
        // SAFETY: the same.
        unsafe { buffer(state, address.wrapping_byte_offset(offset), count, datatype) }
    });
    Ok(Parts::Each(parts.collect::<Result<_, _>>()?))
}

/// The same with a datatype for each rank, and displacements in bytes.
///
/// # Safety
/// As for [`uneven`].
unsafe fn mixed(
    state: &State,
    address: *const c_void,
    counts: CommCounts,
    displs: CommCounts,
    datatypes: CommArray<Datatype>,
    size: usize,
) -> Result<Parts, Error> {
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
    Ok(Parts::Each(parts.collect::<Result<_, _>>()?))
}

#[inline]
fn part_count(count: i64, rank: usize) -> Result<i64, Error> {
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
fn too_many(what: &str) -> Error {
    Error::new(
        MPI_ERR_COUNT,
        format!("{what} are more than any memory holds"),
    )
}

/// # Safety
/// C's promise for message buffers.
unsafe fn make_bcast(
    state: &State,
    address: *mut c_void,
    count: i64,
    datatype: Datatype,
    root: c_int,
    _: Comm,
) -> Made {
    // SAFETY: the caller's promise.
    let buffer = unsafe { buffer(state, address, count, datatype) }?;
    Ok(Work::Bcast { buffer, root })
}

/// This rank's part of a gather or scatter: where it is, unless it is in place at the root.
///
/// # Safety
/// C's promise for message buffers.
unsafe fn own_part(
    state: &State,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
    at_root: bool,
) -> Result<Option<Buffer>, Error> {
    // SAFETY: the caller's promise.
    unsafe {
        if at_root {
            buffer_unless_in_place(state, address, count, datatype)
        } else {
            buffer(state, address, count, datatype).map(Some)
        }
    }
}

/// # Safety
/// C's promise for message buffers.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
unsafe fn make_gather(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Made {
    let at_root = is_root(state, comm, root)?;
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = own_part(state, sendbuf, sendcount, sendtype, at_root)?;
        let receive = at_root.then(|| {
            let count = args::count("recvcount", recvcount)?;
            even(state, recvbuf, count, recvtype, size)
        });
        (send, receive.transpose()?)
    };
    Ok(Work::Gather {
        send,
        receive,
        root,
    })
}

/// # Safety
/// C's promise for message buffers and for the arrays.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
unsafe fn make_gatherv(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: CommCounts,
    displs: CommCounts,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Made {
    let at_root = is_root(state, comm, root)?;
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = own_part(state, sendbuf, sendcount, sendtype, at_root)?;
        let receive = at_root.then(|| uneven(state, recvbuf, recvcounts, displs, recvtype, size));
        (send, receive.transpose()?)
    };
    Ok(Work::Gatherv {
        send,
        receive,
        root,
    })
}

/// # Safety
/// C's promise for message buffers.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
unsafe fn make_scatter(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Made {
    let at_root = is_root(state, comm, root)?;
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = at_root.then(|| {
            let count = args::count("sendcount", sendcount)?;
            even(state, sendbuf, count, sendtype, size)
        });
        (
            send.transpose()?,
            own_part(state, recvbuf, recvcount, recvtype, at_root)?,
        )
    };
    Ok(Work::Scatter {
        send,
        receive,
        root,
    })
}

/// # Safety
/// C's promise for message buffers and for the arrays.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
unsafe fn make_scatterv(
    state: &State,
    sendbuf: *const c_void,
    sendcounts: CommCounts,
    displs: CommCounts,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Made {
    let at_root = is_root(state, comm, root)?;
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = at_root.then(|| uneven(state, sendbuf, sendcounts, displs, sendtype, size));
        (
            send.transpose()?,
            own_part(state, recvbuf, recvcount, recvtype, at_root)?,
        )
    };
    Ok(Work::Scatterv {
        send,
        receive,
        root,
    })
}

/// # Safety
/// C's promise for message buffers.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
unsafe fn make_allgather(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    comm: Comm,
) -> Made {
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    unsafe {
        let send = buffer_unless_in_place(state, sendbuf, sendcount, sendtype)?;
        let receive = even(state, recvbuf, recvcount, recvtype, size)?;
        Ok(Work::Allgather { send, receive })
    }
}

/// # Safety
/// C's promise for message buffers and for the arrays.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
unsafe fn make_allgatherv(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: CommCounts,
    displs: CommCounts,
    recvtype: Datatype,
    comm: Comm,
) -> Made {
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    unsafe {
        let send = buffer_unless_in_place(state, sendbuf, sendcount, sendtype)?;
        let receive = uneven(state, recvbuf, recvcounts, displs, recvtype, size)?;
        Ok(Work::Allgather { send, receive })
    }
}

/// Is it the address that stands for "in place"?
fn in_place(address: *const c_void) -> bool {
    address == crate::constants::MPI_IN_PLACE.cast_const()
}

/// # Safety
/// C's promise for message buffers.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
unsafe fn make_alltoall(
    state: &State,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    comm: Comm,
) -> Made {
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = (!in_place(sendbuf)).then(|| even(state, sendbuf, sendcount, sendtype, size));
        (
            send.transpose()?,
            even(state, recvbuf, recvcount, recvtype, size)?,
        )
    };
    Ok(Work::Alltoall { send, receive })
}

/// # Safety
/// C's promise for message buffers and for the arrays.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
unsafe fn make_alltoallv(
    state: &State,
    sendbuf: *const c_void,
    sendcounts: CommCounts,
    sdispls: CommCounts,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: CommCounts,
    rdispls: CommCounts,
    recvtype: Datatype,
    comm: Comm,
) -> Made {
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = (!in_place(sendbuf))
            .then(|| uneven(state, sendbuf, sendcounts, sdispls, sendtype, size));
        (
            send.transpose()?,
            uneven(state, recvbuf, recvcounts, rdispls, recvtype, size)?,
        )
    };
    Ok(Work::Alltoall { send, receive })
}

/// # Safety
/// C's promise for message buffers and for the arrays.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
unsafe fn make_alltoallw(
    state: &State,
    sendbuf: *const c_void,
    sendcounts: CommCounts,
    sdispls: CommCounts,
    sendtypes: CommArray<Datatype>,
    recvbuf: *mut c_void,
    recvcounts: CommCounts,
    rdispls: CommCounts,
    recvtypes: CommArray<Datatype>,
    comm: Comm,
) -> Made {
    let size = place(state, comm)?.0;
    // SAFETY: the caller's promise.
    let (send, receive) = unsafe {
        let send = (!in_place(sendbuf))
            .then(|| mixed(state, sendbuf, sendcounts, sdispls, sendtypes, size));
        (
            send.transpose()?,
            mixed(state, recvbuf, recvcounts, rdispls, recvtypes, size)?,
        )
    };
    Ok(Work::Alltoall { send, receive })
}

/// # Safety
/// C's promise for message buffers.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
unsafe fn make_reduce(
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
unsafe fn to_all(
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
unsafe fn make_allreduce(
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
unsafe fn make_scan(
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
unsafe fn make_exscan(
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
unsafe fn spread(
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
unsafe fn make_reduce_scatter(
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
unsafe fn make_reduce_scatter_block(
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
