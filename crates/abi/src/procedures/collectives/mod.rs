//! Chapter 6: collective operations on intracommunicators, blocking and nonblocking.
//!
//! The table below gives each procedure its C parameters and turns them into a `mpi::coll::Work`,
//! which both forms take. Arguments that are significant at the root only are ignored elsewhere.

mod blocks;
mod exchange;
mod reductions;
mod rooted;

use super::Done;
use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::counts::{CommArray, CommCounts};
use crate::error::Error;
use crate::handle::{Comm, Datatype, Op, Request};
use blocks::UserBlocks;
use exchange::*;
use mpi::coll::Work;
use reductions::*;
use rooted::*;
use std::ffi::{c_int, c_void};

/// The operation that a procedure's arguments describe.
type Made = Result<Work, Error>;

/// Declares the blocking and the nonblocking form of each procedure.
macro_rules! collectives {
    ($($name:ident $inonblocking:ident ($($argument:ident: $kind:ty),*) $make:ident($($value:expr),*);)*) => {
        $(
            /// # Safety
            /// The buffers fulfil [`UserBuffer::new`]'s promise until the call returns; arrays have an element for
            /// each rank of the communicator where the standard says that the call reads them.
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

            /// # Safety
            /// The buffers fulfil [`UserBuffer::new`]'s promise until the request is complete; arrays have an element
            /// for each rank of the communicator where the standard says that the call reads them.
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
                    // SAFETY: the caller promises the buffers until the request is complete, and the arrays during
                    // the call, which copies them.
                    unsafe { $make(&state, comm, $($value),*) }?
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
        (buffer: *mut c_void, count: i64, datatype: Datatype, root: c_int)
        make_bcast(UserBuffer::new(buffer, count, datatype), root);
    gather igather
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int)
        make_gather(UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBlocks::even(recvbuf, recvcount, recvtype), root);
    gatherv igatherv
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, displs: CommCounts, recvtype: Datatype, root: c_int)
        make_gather(UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBlocks::uneven(recvbuf, recvcounts, displs, recvtype), root);
    scatter iscatter
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int)
        make_scatter(UserBlocks::even(sendbuf, sendcount, sendtype),
            UserBuffer::new(recvbuf, recvcount, recvtype), root);
    scatterv iscatterv
        (sendbuf: *const c_void, sendcounts: CommCounts, displs: CommCounts, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int)
        make_scatter(UserBlocks::uneven(sendbuf, sendcounts, displs, sendtype),
            UserBuffer::new(recvbuf, recvcount, recvtype), root);
    allgather iallgather
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype)
        make_allgather(UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBlocks::even(recvbuf, recvcount, recvtype));
    allgatherv iallgatherv
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, displs: CommCounts, recvtype: Datatype)
        make_allgather(UserBuffer::new(sendbuf, sendcount, sendtype),
            UserBlocks::uneven(recvbuf, recvcounts, displs, recvtype));
    alltoall ialltoall
        (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype,
            recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype)
        make_alltoall(UserBlocks::even(sendbuf, sendcount, sendtype),
            UserBlocks::even(recvbuf, recvcount, recvtype));
    alltoallv ialltoallv
        (sendbuf: *const c_void, sendcounts: CommCounts, sdispls: CommCounts, sendtype: Datatype,
            recvbuf: *mut c_void, recvcounts: CommCounts, rdispls: CommCounts, recvtype: Datatype)
        make_alltoall(UserBlocks::uneven(sendbuf, sendcounts, sdispls, sendtype),
            UserBlocks::uneven(recvbuf, recvcounts, rdispls, recvtype));
    alltoallw ialltoallw
        (sendbuf: *const c_void, sendcounts: CommCounts, sdispls: CommCounts, sendtypes: CommArray<Datatype>,
            recvbuf: *mut c_void, recvcounts: CommCounts, rdispls: CommCounts, recvtypes: CommArray<Datatype>)
        make_alltoall(UserBlocks::mixed(sendbuf, sendcounts, sdispls, sendtypes),
            UserBlocks::mixed(recvbuf, recvcounts, rdispls, recvtypes));
    reduce ireduce
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op, root: c_int)
        make_reduce(UserBuffer::new(sendbuf, count, datatype), UserBuffer::new(recvbuf, count, datatype), op, root);
    allreduce iallreduce
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op)
        make_allreduce(UserBuffer::new(sendbuf, count, datatype), UserBuffer::new(recvbuf, count, datatype), op);
    reduce_scatter ireduce_scatter
        (sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: CommCounts, datatype: Datatype, op: Op)
        make_reduce_scatter(UnequalVectors::new(sendbuf, recvbuf, datatype), recvcounts, op);
    reduce_scatter_block ireduce_scatter_block
        (sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: i64, datatype: Datatype, op: Op)
        make_reduce_scatter_block(UnequalVectors::new(sendbuf, recvbuf, datatype), recvcount, op);
    scan iscan
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op)
        make_scan(UserBuffer::new(sendbuf, count, datatype), UserBuffer::new(recvbuf, count, datatype), op, false);
    exscan iexscan
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Datatype, op: Op)
        make_scan(UserBuffer::new(sendbuf, count, datatype), UserBuffer::new(recvbuf, count, datatype), op, true);
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
