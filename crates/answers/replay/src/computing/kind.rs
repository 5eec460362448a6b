//! The kinds of calls, by what time decides about them.
//!
//! A *sure* call always has a result, so a program makes the same sure calls in every run, unless
//! it decides by time. A *poll* may return without a result, and a *wait* is unnecessary if a poll
//! had the result: the numbers of both between two sure calls depend on time. A *question* about a
//! status or a handle may follow a poll that has a result, so it is no sure call either.

use trace::Signature;

use crate::names::Method;

/// The procedures that may return without a result, without the prefix `MPI_`.
const POLLS: [&str; 12] = [
    "Improbe",
    "Iprobe",
    "Parrived",
    "Request_get_status",
    "Request_get_status_all",
    "Request_get_status_any",
    "Request_get_status_some",
    "Test",
    "Testall",
    "Testany",
    "Testsome",
    "Win_test",
];
/// The procedures that wait for a result that a poll may have found already, and those that query a
/// message or a handle, except those of a status (`MPI_Status_`). Without the prefix `MPI_`.
const WAITS_AND_QUESTIONS: [&str; 21] = [
    "Comm_get_attr",
    "Comm_rank",
    "Comm_size",
    "Comm_test_inter",
    "Get_count",
    "Get_count_c",
    "Get_elements",
    "Get_elements_c",
    "Get_elements_x",
    "Mprobe",
    "Probe",
    "Test_cancelled",
    "Type_get_extent",
    "Type_get_extent_c",
    "Type_size",
    "Type_size_c",
    "Wait",
    "Waitall",
    "Waitany",
    "Waitsome",
    "Win_wait",
];

/// The kind of a line of a trace, by what time decides about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call that every run of the program makes.
    Sure,
    /// A wait or a question, which a run may make or not.
    Optional,
    /// A poll, a reading of the clock, or another line that is no step of the program.
    Aside,
}

impl Kind {
    /// The kind of the calls with this signature.
    pub(super) fn of(method: Method, signature: &Signature) -> Kind {
        let own = signature.name.strip_prefix("MPI_").unwrap_or_default();
        // A call of MPI_Pcontrol without its level marks nothing.
        let is_mute = own == "Pcontrol" && signature.parameters.is_empty();
        let is_aside = matches!(
            method,
            Method::Slept | Method::Told(_) | Method::Passed(_, false)
        );
        match own {
            _ if is_aside || is_mute || POLLS.contains(&own) => Kind::Aside,
            _ if WAITS_AND_QUESTIONS.contains(&own) || own.starts_with("Status_") => Kind::Optional,
            _ => Kind::Sure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_decides_about_polls_waits_and_questions() {
        let of = |line: &str, method| Kind::of(method, &Signature::parse(line).unwrap());
        for (line, kind) in [
            ("MPI_Send buf:in dest:dest", Kind::Sure),
            ("MPI_Test request:<>request flag:out", Kind::Aside),
            ("MPI_Waitall request:<>request", Kind::Optional),
            ("MPI_Status_set_cancelled status:status", Kind::Optional),
            ("MPI_Pcontrol level:level", Kind::Sure),
            ("MPI_Pcontrol", Kind::Aside),
        ] {
            assert_eq!(of(line, Method::Passed("MPI_Send", true)), kind, "{line}");
        }
        let clock = Method::Passed("MPI_Wtime", false);
        assert_eq!(of("MPI_Wtime", clock), Kind::Aside);
        assert_eq!(of("sleep", Method::Slept), Kind::Aside);
    }
}
