//! The error of a call with invalid arguments that makes a communicator or a window, as it is
//! passed to the other ranks of the call, which wait for this one.

use crate::error::Error;
use crate::handle::Comm;
use crate::state::LIBRARY;
use mpi::Making;

/// The kind of exchange between the ranks of a procedure that makes a communicator or a window.
/// `None`: the procedure makes neither, or not all ranks of the communicator take part.
fn of(procedure: &str) -> Option<Making> {
    let name = procedure.strip_prefix("MPI_")?;
    Some(match name.strip_suffix("_c").unwrap_or(name) {
        "Comm_dup" | "Comm_dup_with_info" => Making::Duplicate,
        "Comm_idup" | "Comm_idup_with_info" => Making::DuplicateLater,
        "Comm_create" => Making::Create,
        "Comm_split" | "Comm_split_type" => Making::Split,
        "Cart_create" | "Cart_sub" | "Graph_create" => Making::Topology,
        "Dist_graph_create" | "Dist_graph_create_adjacent" => Making::Topology,
        "Intercomm_create" => Making::Between,
        "Intercomm_merge" => Making::Merge,
        "Win_create" | "Win_create_dynamic" => Making::Window,
        "Win_allocate" | "Win_allocate_shared" => Making::Window,
        _ => return None,
    })
}

/// The arguments of a procedure that makes a communicator or a window. If they are invalid, the
/// other ranks get the error too.
pub(crate) fn arguments<A>(
    procedure: &'static str,
    comm: Comm,
    given: Result<A, Error>,
) -> Result<A, Error> {
    given.map_err(|error| refuse(procedure, comm, error))
}

/// Notifies the other ranks of such a call that this rank fails. Returns the error of the call.
#[cold]
pub(crate) fn refuse(procedure: &'static str, comm: Comm, error: Error) -> Error {
    match (of(procedure), LIBRARY.rank()) {
        (Some(making), Some(rank)) => rank.refuse_making(procedure, comm.id(), making, error),
        _ => error,
    }
}
