//! Chapter 6: collective operations on intracommunicators, in their blocking and nonblocking forms.
//!
//! Each procedure turns its arguments into a `mpi::coll::Work` once; both forms take that.
//! Arguments that count at the root only are not looked at elsewhere.

mod exchange;
mod parts;
mod reductions;
mod rooted;

use super::Done;
use crate::args::Out;
use crate::call_guard::Running;
use crate::counts::{CommArray, CommCounts};
use crate::error::Error;
use crate::handle::{Comm, Datatype, Op, Request};
use exchange::*;
use mpi::coll::Work;
use reductions::*;
use rooted::*;
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
