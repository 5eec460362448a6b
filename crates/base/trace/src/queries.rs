//! The procedures that query or label. A replay passes them over: they move nothing, and what they
//! return is not needed, because the decisions of the program are in the trace.

/// The procedures that query or label, by the beginnings of their names.
const QUERIES: [&str; 80] = [
    "Alloc_mem",
    "Attr_",
    "Cart_coords",
    "Cart_get",
    "Cart_map",
    "Cart_rank",
    "Cart_shift",
    "Cartdim_get",
    "Comm_compare",
    "Comm_create_errhandler",
    "Comm_create_keyval",
    "Comm_delete_attr",
    "Comm_free_keyval",
    "Comm_get_attr",
    "Comm_get_errhandler",
    "Comm_get_info",
    "Comm_get_name",
    "Comm_get_parent",
    "Comm_rank",
    "Comm_remote_size",
    "Comm_set_attr",
    "Comm_set_errhandler",
    "Comm_set_name",
    "Comm_size",
    "Comm_test_inter",
    "Dims_create",
    "Dist_graph_neighbors",
    "File_create_errhandler",
    "File_get_errhandler",
    "File_get_info",
    "File_set_errhandler",
    "Free_mem",
    "Get_address",
    "Get_count",
    "Get_elements",
    "Get_hw_resource_info",
    "Get_processor_name",
    "Graph_get",
    "Graph_map",
    "Graph_neighbors",
    "Graphdims_get",
    "Group_compare",
    "Group_rank",
    "Group_size",
    "Group_translate_ranks",
    "Is_thread_main",
    "Keyval_",
    "Op_commutative",
    "Pack_external_size",
    "Pack_size",
    "Query_thread",
    "Status_",
    "Test_cancelled",
    "Topo_test",
    "Type_create_keyval",
    "Type_delete_attr",
    "Type_extent",
    "Type_free_keyval",
    "Type_get_attr",
    "Type_get_envelope",
    "Type_get_extent",
    "Type_get_name",
    "Type_get_true_extent",
    "Type_lb",
    "Type_set_attr",
    "Type_set_name",
    "Type_size",
    "Type_ub",
    "Win_create_errhandler",
    "Win_create_keyval",
    "Win_delete_attr",
    "Win_free_keyval",
    "Win_get_attr",
    "Win_get_errhandler",
    "Win_get_info",
    "Win_get_name",
    "Win_set_attr",
    "Win_set_errhandler",
    "Win_set_name",
    "Win_shared_query",
];

/// True if a procedure, such as `MPI_Comm_size`, queries or labels.
pub fn is_query(procedure: &str) -> bool {
    let own = procedure.strip_prefix("MPI_");
    own.is_some_and(|own| QUERIES.iter().any(|begin| own.starts_with(begin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_that_move_or_make_something_are_no_queries() {
        for query in [
            "MPI_Comm_size",
            "MPI_Type_get_extent_c",
            "MPI_Status_set_elements",
        ] {
            assert!(is_query(query), "{query}");
        }
        for other in [
            "MPI_Comm_split",
            "MPI_Send",
            "MPI_Type_commit",
            "Comm_size",
            "sleep",
        ] {
            assert!(!is_query(other), "{other}");
        }
    }
}
