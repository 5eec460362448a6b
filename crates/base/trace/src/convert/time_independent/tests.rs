use super::*;
use crate::Value;
use proptest::prelude::*;

fn read_one(text: &str, rate: Option<f64>) -> Result<Trace, String> {
    read(&[("a.txt", text)], rate, "trace import".into())
}

/// The calls of a rank: names and computing.
fn calls(trace: &Trace, rank: usize) -> Vec<(String, u64)> {
    let calls = trace.calls_of(rank);
    let named = |(call, nanos)| (trace.signature(call).name.clone(), nanos);
    calls.map(named).collect()
}

const PAIR: &str = "0 init\n1 init\n\
    0 compute 1e6\n0 send 1 7 1024 1\n0 irecv 1 8 -1\n0 wait 1 0 8\n0 finalize\n\
    1 irecv 0 7 1024 1\n1 test 0 1 7\n1 waitall\n1 sleep 0.001\n1 isend 0 8 16\n1 wait\n1 finalize\n";

#[test]
fn actions_become_calls() {
    let trace = read_one(PAIR, Some(1e9)).unwrap();
    let zero = |names: &[&str]| names.iter().map(|name| (name.to_string(), 0)).collect();
    let mut wanted: Vec<(String, u64)> =
        zero(&["MPI_Send", "MPI_Irecv", "MPI_Waitall", "MPI_Finalize"]);
    wanted[0].1 = 1_000_000;
    assert_eq!(calls(&trace, 0), wanted);
    let names = ["MPI_Irecv", "MPI_Test", "MPI_Waitall", "MPI_Isend"];
    let mut wanted: Vec<(String, u64)> =
        zero(&[&names[..], &["MPI_Waitall", "MPI_Finalize"]].concat());
    wanted[3].1 = 1_000_000;
    assert_eq!(calls(&trace, 1), wanted);
    let (sent, _) = trace.calls_of(0).next().unwrap();
    let numbers = |numbers: [i64; 3]| numbers.map(Value::Number);
    assert_eq!(
        trace.calls[sent as usize].values[..3],
        numbers([4096, 1024, 0x209])
    );
    // The receive that leaves its size open takes that of the send.
    let (received, _) = trace.calls_of(0).nth(1).unwrap();
    assert_eq!(
        trace.calls[received as usize].values[..3],
        numbers([4096, 16, 0x247])
    );
}

#[test]
fn files_of_ranks_are_one_trace_and_old_actions_have_no_tags() {
    let files = [
        ("0", "0 init\n0 Irecv 1 2000\n0 waitAll\n0 finalize\n"),
        (
            "1",
            "# a comment\np1 init\np1 Isend 0 2000\np1 wait\np1 barrier\n",
        ),
    ];
    let trace = read(&files, None, "trace import".into()).unwrap();
    assert_eq!(trace.ranks.len(), 2);
    let names: Vec<String> = calls(&trace, 1).into_iter().map(|call| call.0).collect();
    assert_eq!(
        names,
        ["MPI_Isend", "MPI_Waitall", "MPI_Barrier", "MPI_Finalize"]
    );
}

#[test]
fn collective_actions_have_the_values_of_their_calls() {
    let all = "bcast 5e4 1 0\nR reduce 5e4 5e8 0 4\nR allreduce 8 1\nR alltoall 4 4 1 1\n\
        R alltoallv 100 1 2 100 3 4\nR gather 8 8 1\nR gatherv 8 5 6 1\nR allgather 1 1\n\
        R allgatherv 1 2 3\nR scatter 1 1\nR scatterv 1 2 3 0\nR reducescatter 3 4 11\n\
        R scan 1 1 0\nR exscan 1 1 0\nR barrier\n";
    let text: String = (0..2)
        .map(|rank: usize| format!("R init\nR {all}").replace('R', &rank.to_string()))
        .collect();
    let trace = read_one(&text, None).unwrap();
    assert_eq!(trace.calls_of(0).count(), 16);
    assert_eq!(Trace::read(&trace.write()), Ok(trace.clone()));
    let find = |rank: usize, name: &str| {
        let mut calls = trace.calls_of(rank);
        let (call, _) = calls
            .find(|(call, _)| trace.signature(*call).name == name)
            .unwrap();
        trace.calls[call as usize].values.clone()
    };
    let numbers = |numbers: &[i64]| Value::Numbers(numbers.into());
    let alltoallv = find(0, "MPI_Alltoallv");
    assert_eq!(
        [&alltoallv[1], &alltoallv[2]],
        [&numbers(&[1, 2]), &numbers(&[0, 1])]
    );
    assert_eq!(
        [&alltoallv[5], &alltoallv[6]],
        [&numbers(&[3, 4]), &numbers(&[0, 3])]
    );
    assert_eq!(find(0, "MPI_Gatherv")[4..6], [Value::Absent, Value::Absent]);
    assert_eq!(find(1, "MPI_Gatherv")[4], numbers(&[5, 6]));
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line() {
    for (text, why) in [
        ("0 compute 5\n", "line 1: it computes, and the operations"),
        ("x send 1 1\n", "`x`, where the number of a rank"),
        ("0 send 1 0 8\n", "line 1: `1` is no rank; there are 1"),
        ("1 barrier\n", "there are no actions of rank 0"),
        ("\n", "there are no actions"),
        ("0 barrier\n0 wait\n", "line 2: no isend or irecv"),
        ("0 comm_split\n", "comm_split: the format does not say"),
        ("0 frobnicate\n", "`frobnicate` is no action"),
        ("0 allreduce 0.5 1\n", "`0.5` elements"),
        ("0 bcast 8 0 99\n", "`99` is no number of a datatype"),
        ("0 recv -1 0 8\n", "receives from any source"),
        ("0 recv 0 0 -1\n", "rank 0 sends nothing with its tag"),
        (
            "0 send 0 0\n0 send\n",
            "line 2: word 1 behind the action is missing",
        ),
        ("0 sleep 1 2\n", "`2` is one word too many for sleep"),
    ] {
        let said = read_one(text, None).unwrap_err();
        assert!(said.contains(why), "{text}: {said}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "([01] (init|send|irecv|wait|bcast|alltoallv|compute)( [0-9e.-]{1,3}){0,7}\n){0,8}") {
        if let Ok(trace) = read_one(&text, Some(1e9)) {
            prop_assert_eq!(Trace::read(&trace.write()), Ok(trace));
        }
    }
}
