//! The procedures that move nothing.

use trace::is_query;

/// Procedures beside queries that the fast way passes over, by the beginnings of their names: they
/// make or free what its messages do not depend on.
const FURTHER: [&str; 14] = [
    "Comm_group",
    "Comm_set_info",
    "Errhandler_",
    "Get_library_version",
    "Get_version",
    "Group_",
    "Info_",
    "Op_free",
    "Pack",
    "Pcontrol",
    "Type_commit",
    "Type_free",
    "Type_get_contents",
    "Unpack",
];

/// True if a procedure moves nothing, and makes nothing that another call needs.
pub(crate) fn moves_nothing(procedure: &str) -> bool {
    let own = procedure.strip_prefix("MPI_").unwrap_or(procedure);
    is_query(procedure) || FURTHER.iter().any(|begin| own.starts_with(begin))
}
