//! The procedures of a trace: how each is replayed.

use std::collections::HashMap;

use mpi_abi::hosted::RECORDED;
use trace::{Fact, Signature, Trace};

/// The method by which a procedure is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The procedure of the library with this number is called.
    Called(usize),
    /// The call takes its recorded time only: it moves nothing, and makes nothing that a later call
    /// uses.
    Passed(&'static str, bool),
    /// The program sleeps for a time that the trace gives.
    Slept,
    /// The line of the trace is no call: it states a fact about the recorded run.
    Told(Fact),
    /// The rank leaves MPI.
    Finished,
}

/// Procedures that query or label, by the beginnings of their names. What they return is not
/// needed: the program's decisions are in the trace.
const PASSED: [&str; 80] = [
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

/// Procedures that cannot be replayed, by the beginnings of their names, each with the reason.
const REFUSED: [(&str, &str); 5] = [
    ("Abort", "it ends the job"),
    ("File_call_errhandler", "it calls a function of the program"),
    ("Comm_call_errhandler", "it calls a function of the program"),
    ("Win_call_errhandler", "it calls a function of the program"),
    (
        "Register_datarep",
        "its data are converted by functions of the program",
    ),
];

/// The method of replay of each procedure that a trace names.
pub(crate) struct Names(Vec<Method>);

impl Names {
    /// The methods of the procedures of a trace. An error names one that cannot be replayed.
    pub(crate) fn of(trace: &Trace) -> Result<Names, String> {
        let numbers = RECORDED.iter().enumerate().map(|(at, one)| (one.name, at));
        let numbers: HashMap<&str, usize> = numbers.collect();
        let methods = trace.signatures.iter().map(|one| method(one, &numbers));
        Ok(Names(methods.collect::<Result<_, _>>()?))
    }

    /// The method of replay of the procedure with this signature.
    pub(crate) fn method(&self, signature: u32) -> Method {
        self.0[signature as usize]
    }
}

fn method(signature: &Signature, numbers: &HashMap<&str, usize>) -> Result<Method, String> {
    let name = signature.name.as_str();
    if let Some(fact) = Fact::of(signature) {
        return Ok(Method::Told(fact));
    }
    let Some(&number) = numbers.get(name) else {
        return other(name);
    };
    if RECORDED[number].line != signature.line() {
        return Err(format!("{name} has other parameters here; record it again"));
    }
    let begins = |word: &str| {
        name.strip_prefix("MPI_")
            .is_some_and(|own| own.starts_with(word))
    };
    if let Some((_, why)) = REFUSED.iter().find(|(word, _)| begins(word)) {
        return Err(format!("{name} cannot be replayed: {why}"));
    }
    if name == "MPI_Finalize" {
        return Ok(Method::Finished);
    }
    Ok(match PASSED.iter().any(|word| begins(word)) {
        true => Method::Passed(RECORDED[number].name, true),
        false => Method::Called(number),
    })
}

/// The method of a call that the library does not announce as a procedure: a reading of the clock,
/// or a sleep.
fn other(name: &str) -> Result<Method, String> {
    const CLOCKS: [&str; 2] = ["MPI_Wtime", "clock_gettime"];
    if name == "sleep" {
        return Ok(Method::Slept);
    }
    if name == "MPI_Pcontrol" {
        return Ok(Method::Passed("MPI_Pcontrol", true));
    }
    let clock = CLOCKS.iter().find(|clock| **clock == name);
    let clock = clock.ok_or_else(|| format!("{name} is no procedure that this library has"))?;
    Ok(Method::Passed(clock, false))
}
