//! The part of the standard that traces without a recording need: the signatures of procedures, and
//! handles of the ABI.

use crate::signature::Signature;
use crate::value::{NUMBER_OF_MEMORY, Value};

/// The value of MPI_COMM_WORLD in a trace.
pub const WORLD: i64 = 0x101;
/// The value of MPI_COMM_SELF in a trace.
pub const SELF: i64 = 0x102;
/// MPI_PROC_NULL.
pub(crate) const PROC_NULL: i64 = -3;
/// MPI_ANY_SOURCE.
pub(crate) const ANY_SOURCE: i64 = -1;
/// MPI_ANY_TAG.
pub(crate) const ANY_TAG: i64 = -2;
/// MPI_BYTE.
pub(crate) const BYTE: i64 = 0x247;
/// MPI_DOUBLE.
pub(crate) const DOUBLE: i64 = 0x214;
/// MPI_SUM.
pub(crate) const SUM: i64 = 0x21;
/// MPI_BOR.
pub(crate) const BOR: i64 = 0x29;
/// The value that stands for the first buffer of a rank.
pub(crate) const MEMORY: Value = Value::Number(NUMBER_OF_MEMORY);

/// The lines of the signatures, as `procedures.txt` has them.
const LINES: [&str; 23] = [
    "MPI_Allgather sendbuf:in sendcount:count sendtype:datatype recvbuf:out recvcount:count recvtype:datatype comm:comm",
    "MPI_Allgatherv sendbuf:in sendcount:count sendtype:datatype recvbuf:out recvcounts:count[*] displs:displ[*] \
     recvtype:datatype comm:comm",
    "MPI_Allreduce sendbuf:in recvbuf:out count:count datatype:datatype op:op comm:comm",
    "MPI_Alltoall sendbuf:in sendcount:count sendtype:datatype recvbuf:out recvcount:count recvtype:datatype comm:comm",
    "MPI_Alltoallv sendbuf:in sendcounts:count[*] sdispls:displ[*] sendtype:datatype recvbuf:out recvcounts:count[*] \
     rdispls:displ[*] recvtype:datatype comm:comm",
    "MPI_Barrier comm:comm",
    "MPI_Bcast buffer:out count:count datatype:datatype root:root comm:comm",
    "MPI_Exscan sendbuf:in recvbuf:out count:count datatype:datatype op:op comm:comm",
    "MPI_Finalize",
    "MPI_Gather sendbuf:in sendcount:count sendtype:datatype recvbuf:out recvcount:count_at_root recvtype:datatype \
     root:root comm:comm",
    "MPI_Gatherv sendbuf:in sendcount:count sendtype:datatype recvbuf:out recvcounts:count[*] displs:displ[*] \
     recvtype:datatype root:root comm:comm",
    "MPI_Irecv buf:out count:count datatype:datatype source:source tag:tag_any comm:comm request:>request",
    "MPI_Isend buf:in count:count datatype:datatype dest:dest tag:tag comm:comm request:>request",
    "MPI_Recv buf:out count:count datatype:datatype source:source tag:tag_any comm:comm status:>status",
    "MPI_Reduce sendbuf:in recvbuf:out count:count datatype:datatype op:op root:root comm:comm",
    "MPI_Reduce_scatter sendbuf:in recvbuf:out recvcounts:count[*] datatype:datatype op:op comm:comm",
    "MPI_Scan sendbuf:in recvbuf:out count:count datatype:datatype op:op comm:comm",
    "MPI_Scatter sendbuf:in sendcount:count_at_root sendtype:datatype recvbuf:out recvcount:count recvtype:datatype \
     root:root comm:comm",
    "MPI_Scatterv sendbuf:in sendcounts:count[*] displs:displ[*] sendtype:datatype recvbuf:out recvcount:count \
     recvtype:datatype root:root comm:comm",
    "MPI_Send buf:in count:count datatype:datatype dest:dest tag:tag comm:comm",
    "MPI_Sendrecv sendbuf:in sendcount:count sendtype:datatype dest:dest sendtag:tag recvbuf:out recvcount:count \
     recvtype:datatype source:source recvtag:tag_any comm:comm status:>status",
    "MPI_Test request:<>request flag:>flag status:>status",
    "MPI_Waitall count:n array_of_requests:<>request[count] array_of_statuses:>status[count]",
];

/// The signature of one of the procedures that traces without a recording call.
pub(crate) fn signature(name: &str) -> Signature {
    let line = LINES
        .iter()
        .find(|line| line.split(' ').next() == Some(name));
    let parsed = line.and_then(|line| Signature::parse(line));
    parsed.expect("each procedure of a made trace has a line")
}
