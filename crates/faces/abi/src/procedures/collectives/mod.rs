//! Chapters 6 and 8: collective operations on communicators and on neighbourhoods, blocking,
//! nonblocking and persistent.
//!
//! The tables below give the C parameters of each procedure and the function that makes a
//! `mpi::coll::Work` of them, which all forms share. Arguments that are significant at the root
//! only are ignored at other ranks. So are all arguments of a rank that passes MPI_PROC_NULL as the
//! root between two groups.

mod blocks;
mod exchange;
mod neighbourhood;
mod reductions;
mod rooted;

use super::info::check_hints;
use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::counts::{CommArray, CommCounts};
use crate::error::Done;
use crate::handle::{Comm, Datatype, Info, Op, Request};
use blocks::UserBlocks;
use exchange::*;
use mpi::coll::Work;
use neighbourhood::*;
use reductions::*;
use rooted::*;
use std::ffi::{c_int, c_void};

/// Declares the blocking, the nonblocking and the persistent form of each procedure.
macro_rules! collectives {
    ($($name:ident $inonblocking:ident $init:ident ($($argument:ident: $kind:ty),*) $make:ident($($value:expr),*);)*) => {
        $(
            /// The blocking form of the collective operation.
            ///
            /// # Safety
            /// The buffers fulfil [`UserBuffer::new`]'s promise until the call returns; arrays have
            /// an element for each rank of the communicator where the standard says that the call
            /// reads them.
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "the standard's")]
            pub unsafe fn $name(call: &Running, $($argument: $kind,)* comm: Comm) -> Done {
                let work = {
                    let state = call.rank.lock();
                    // SAFETY: the caller promises the buffers and arrays until the call returns.
                    unsafe { $make(&state, comm, $($value),*) }?
                };
                call.rank.collective(call.procedure, &work, comm.id())
            }

            /// The nonblocking form of the collective operation.
            ///
            /// # Safety
            /// The buffers fulfil [`UserBuffer::new`]'s promise until the request is complete;
            /// arrays have an element for each rank of the communicator where the standard says
            /// that the call reads them.
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
                    // SAFETY: the caller promises the buffers until the request is complete, and
                    // the arrays during the call, which copies them.
                    unsafe { $make(&state, comm, $($value),*) }?
                };
                let id = call.rank.start_collective(work, comm.id())?;
                request.set(Request::from(id.0));
                Ok(())
            }

            /// The persistent form of the collective operation.
            ///
            /// # Safety
            /// The buffers fulfil [`UserBuffer::new`]'s promise whenever the operation is active;
            /// arrays have an element for each rank of the communicator where the standard says
            /// that the call reads them.
            #[allow(clippy::too_many_arguments, reason = "the standard's")]
            pub unsafe fn $init(
                call: &Running,
                $($argument: $kind,)*
                comm: Comm,
                info: Info,
                request: Out<Request>,
            ) -> Done {
                check_hints(info)?;
                let work = {
                    let state = call.rank.lock();
                    // SAFETY: the caller promises the buffers whenever the operation is active,
                    // and the arrays during the call, which copies them.
                    unsafe { $make(&state, comm, $($value),*) }?
                };
                let id = call.rank.collective_init(work, comm.id())?;
                request.set(Request::from(id.0));
                Ok(())
            }
        )*
    };
}

collectives! {
    bcast ibcast bcast_init
        (buffer: *mut c_void, count: i64, datatype: Datatype, root: c_int)
        make_bcast(UserBuffer::new(buffer, count, datatype), root);
    gather igather gather_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int)
        make_gather(UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBlocks::even(recvbuf, recvcount, recvtype), root);
    gatherv igatherv gatherv_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, displs: CommCounts, recvtype: Datatype, root: c_int)
        make_gather(UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBlocks::uneven(recvbuf, recvcounts, displs, recvtype), root);
    scatter iscatter scatter_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int)
        make_scatter(UserBlocks::even(sendbuf, sendcount, sendtype),
            UserBuffer::new(recvbuf, recvcount, recvtype), root);
    scatterv iscatterv scatterv_init
        (sendbuf: *const c_void, sendcounts: CommCounts, displs: CommCounts, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int)
        make_scatter(UserBlocks::uneven(sendbuf, sendcounts, displs, sendtype),
            UserBuffer::new(recvbuf, recvcount, recvtype), root);
    allgather iallgather allgather_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype)
        make_allgather(UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBlocks::even(recvbuf, recvcount, recvtype));
    allgatherv iallgatherv allgatherv_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, displs: CommCounts, recvtype: Datatype)
        make_allgather(UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBlocks::uneven(recvbuf, recvcounts, displs, recvtype));
    alltoall ialltoall alltoall_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype)
        make_alltoall(UserBlocks::even(sendbuf, sendcount, sendtype),
            UserBlocks::even(recvbuf, recvcount, recvtype));
    alltoallv ialltoallv alltoallv_init
        (sendbuf: *const c_void, sendcounts: CommCounts, sdispls: CommCounts, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, rdispls: CommCounts, recvtype: Datatype)
        make_alltoall(UserBlocks::uneven(sendbuf, sendcounts, sdispls, sendtype),
            UserBlocks::uneven(recvbuf, recvcounts, rdispls, recvtype));
    alltoallw ialltoallw alltoallw_init
        (sendbuf: *const c_void, sendcounts: CommCounts, sdispls: CommCounts, sendtypes: CommArray<Datatype>,
            recvbuf: *mut c_void, recvcounts: CommCounts, rdispls: CommCounts, recvtypes: CommArray<Datatype>)
        make_alltoall(UserBlocks::mixed(sendbuf, sendcounts, sdispls, sendtypes),
            UserBlocks::mixed(recvbuf, recvcounts, rdispls, recvtypes));
    reduce ireduce reduce_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op, root: c_int)
        make_reduce(UserBuffer::new(sendbuf, count, datatype), UserBuffer::new(recvbuf, count, datatype), op, root);
    allreduce iallreduce allreduce_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op)
        make_allreduce(UserBuffer::new(sendbuf, count, datatype), UserBuffer::new(recvbuf, count, datatype), op);
    reduce_scatter ireduce_scatter reduce_scatter_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: CommCounts, datatype: Datatype, op: Op)
        make_reduce_scatter(UnequalVectors::new(sendbuf, recvbuf, datatype), recvcounts, op);
    reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: i64, datatype: Datatype, op: Op)
        make_reduce_scatter_block(UnequalVectors::new(sendbuf, recvbuf, datatype), recvcount, op);
    scan iscan scan_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op)
        make_scan(UserBuffer::new(sendbuf, count, datatype), UserBuffer::new(recvbuf, count, datatype), op, false);
    exscan iexscan exscan_init
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op)
        make_scan(UserBuffer::new(sendbuf, count, datatype), UserBuffer::new(recvbuf, count, datatype), op, true);
}

collectives! {
    neighbor_allgather ineighbor_allgather neighbor_allgather_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype)
        make_neighbour_allgather(UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBlocks::even(recvbuf, recvcount, recvtype));
    neighbor_allgatherv ineighbor_allgatherv neighbor_allgatherv_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, displs: CommCounts, recvtype: Datatype)
        make_neighbour_allgather(UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBlocks::uneven(recvbuf, recvcounts, displs, recvtype));
    neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype)
        make_neighbour_alltoall(UserBlocks::even(sendbuf, sendcount, sendtype),
            UserBlocks::even(recvbuf, recvcount, recvtype));
    neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init
        (sendbuf: *const c_void, sendcounts: CommCounts, sdispls: CommCounts, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, rdispls: CommCounts, recvtype: Datatype)
        make_neighbour_alltoall(UserBlocks::uneven(sendbuf, sendcounts, sdispls, sendtype),
            UserBlocks::uneven(recvbuf, recvcounts, rdispls, recvtype));
    neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init
        (sendbuf: *const c_void, sendcounts: CommCounts, sdispls: CommCounts, sendtypes: CommArray<Datatype>,
            recvbuf: *mut c_void, recvcounts: CommCounts, rdispls: CommCounts, recvtypes: CommArray<Datatype>)
        make_neighbour_alltoall(UserBlocks::mixed(sendbuf, sendcounts, sdispls, sendtypes),
            UserBlocks::mixed(recvbuf, recvcounts, rdispls, recvtypes));
}

/// `MPI_Barrier` (MPI 5.0, chapter 6).
#[inline]
pub fn barrier(call: &Running, comm: Comm) -> Done {
    call.rank
        .collective(call.procedure, &Work::Barrier, comm.id())
}

/// `MPI_Ibarrier` (MPI 5.0, chapter 6).
pub fn ibarrier(call: &Running, comm: Comm, request: Out<Request>) -> Done {
    let id = call.rank.start_collective(Work::Barrier, comm.id())?;
    request.set(Request::from(id.0));
    Ok(())
}

/// `MPI_Barrier_init` (MPI 5.0, chapter 6).
pub fn barrier_init(call: &Running, comm: Comm, info: Info, request: Out<Request>) -> Done {
    check_hints(info)?;
    let id = call.rank.collective_init(Work::Barrier, comm.id())?;
    request.set(Request::from(id.0));
    Ok(())
}
