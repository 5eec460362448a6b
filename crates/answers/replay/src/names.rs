//! The procedures of a trace: how each is replayed.

use std::cell::Cell;
use std::collections::HashMap;

use mpi_abi::hosted::RECORDED;
use trace::{Fact, Signature, Trace, is_query};

use crate::plan::Plan;

/// The method by which a procedure is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The procedure of the library with this number is called.
    Called(usize),
    /// The call takes its recorded time only: it moves nothing, and makes nothing that a later call
    /// uses. Such are queries, and calls that have returned an error, which have no arguments in a
    /// trace.
    Passed(&'static str, bool),
    /// The program sleeps for a time that the trace gives.
    Slept,
    /// The line of the trace is no call: it states a fact about the recorded run.
    Told(Fact),
    /// The rank leaves MPI.
    Finished,
}

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
pub(crate) struct Names {
    methods: Vec<Method>,
    plans: Vec<Plan>,
    /// For each call of the trace whether it has passed checks that no rank can fail afterwards.
    passed: Vec<Cell<bool>>,
}

impl Names {
    /// The methods of the procedures of a trace. An error names one that cannot be replayed.
    pub(crate) fn of(trace: &Trace) -> Result<Names, String> {
        let numbers = RECORDED.iter().enumerate().map(|(at, one)| (one.name, at));
        let numbers: HashMap<&str, usize> = numbers.collect();
        let methods = trace.signatures.iter().map(|one| method(one, &numbers));
        Ok(Names {
            methods: methods.collect::<Result<_, _>>()?,
            plans: trace.signatures.iter().map(Plan::of).collect(),
            passed: trace.calls.iter().map(|_| Cell::new(false)).collect(),
        })
    }

    /// The method of replay of the procedure with this signature.
    pub(crate) fn method(&self, signature: u32) -> Method {
        self.methods[signature as usize]
    }

    /// The plan of the procedure with this signature.
    pub(crate) fn plan(&self, signature: u32) -> &Plan {
        &self.plans[signature as usize]
    }

    /// Whether the call with this number has passed checks whose answer is the same on all ranks.
    pub(crate) fn passed(&self, call: u32) -> &Cell<bool> {
        &self.passed[call as usize]
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
    if signature.parameters.is_empty() && RECORDED[number].line != name {
        return Ok(Method::Passed(RECORDED[number].name, true));
    }
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
    Ok(match is_query(name) {
        true => Method::Passed(RECORDED[number].name, true),
        false => Method::Called(number),
    })
}

/// The method of a call that the library does not announce as a procedure: a reading of the clock,
/// a sleep, or a mark of the program.
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
