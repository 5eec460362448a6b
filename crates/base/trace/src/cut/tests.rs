use std::collections::BTreeSet;

use super::*;
use crate::{Pattern, Recipe, Value};

fn made(pattern: Pattern, sums: bool) -> Trace {
    Recipe {
        pattern,
        ranks: 8,
        steps: 6,
        bytes: 64,
        nanos: 50,
        sum_every: u64::from(sums),
        seed: 1,
    }
    .make("trace make".into())
}

fn kept(ranks: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
    ranks.into_iter().collect()
}

fn names(trace: &Trace, rank: usize) -> Vec<&str> {
    let calls = trace.calls_of(rank);
    calls
        .map(|(call, _)| trace.signature(call).name.as_str())
        .collect()
}

#[test]
fn some_ranks_have_fewer_peers_and_the_same_computing() {
    let trace = made(Pattern::Ring, true);
    let why = ranks(&trace, &kept(0..4), Others::Refuse, "part").unwrap_err();
    assert!(
        why.starts_with("rank ") && why.contains("MPI_Sendrecv: its peer, rank "),
        "{why}"
    );
    let (part, counts) = ranks(&trace, &kept(2..6), Others::LeaveOut, "part").unwrap();
    // Each end of the row has one message in each step with a rank outside.
    assert_eq!((counts.smaller, counts.left_out), (4 * 6, 2 * 6));
    assert_eq!(part.ranks.len(), 4);
    assert_eq!(part.notes, ["part"]);
    assert_eq!(names(&part, 0), names(&trace, 2));
    assert_eq!(part.ranks[3].gaps, trace.ranks[5].gaps);
    let of = |rank: usize| {
        let (call, _) = part.calls_of(rank).next().unwrap();
        let values = &part.calls[call as usize].values;
        [3, 8].map(|at| values[at].clone())
    };
    let none = Value::Number(-3);
    assert_eq!(of(0), [Value::Relative(1), none.clone()]);
    assert_eq!(of(1), [Value::Relative(1), Value::Relative(-1)]);
    assert_eq!(of(3), [none, Value::Relative(-1)]);
    let why = ranks(&trace, &kept([9]), Others::Refuse, "part").unwrap_err();
    assert_eq!(why, "there is no rank 9: the trace has 8");
}

#[test]
fn all_ranks_and_all_calls_are_the_whole() {
    for (pattern, ..) in Pattern::ALL {
        let trace = made(pattern, true);
        let (mut all, _) = ranks(&trace, &kept(0..8), Others::Refuse, "part").unwrap();
        all.notes.clear();
        assert_eq!(all, trace);
        let calls = vec![0..usize::MAX; 8];
        let mut all = windows(&trace, &calls, "part").unwrap();
        all.notes.clear();
        assert_eq!(all, trace);
    }
}

#[test]
fn some_steps_keep_what_later_calls_need() {
    let trace = made(Pattern::Halo2d, true);
    let step = names(&trace, 0).len() / 6;
    let part = windows(&trace, &vec![step..3 * step; 8], "part").unwrap();
    assert_eq!(names(&part, 5).len(), 2 * step + 1);
    assert_eq!(names(&part, 5).last(), Some(&"MPI_Finalize"));
    let of_rank = |trace: &Trace| trace.calls_of(5).map(|(_, nanos)| nanos).sum::<u64>();
    assert_eq!(of_rank(&part) * 3, of_rank(&trace));
}

#[test]
fn a_message_with_one_end_in_the_part_is_refused() {
    let trace = made(Pattern::Nto1, false);
    let mut calls = vec![1..2; 8];
    calls[0] = 7..14;
    assert!(windows(&trace, &calls, "part").is_ok());
    calls[3] = 0..0;
    let why = windows(&trace, &calls, "part").unwrap_err();
    assert!(
        why.contains("rank 3 sends 0 messages to rank 0, which receives 1"),
        "{why}"
    );
    let trace = made(Pattern::Allreduce, false);
    let mut calls = vec![1..3; 8];
    calls[6] = 1..2;
    let why = windows(&trace, &calls, "part").unwrap_err();
    assert!(why.contains("rank 6 1"), "{why}");
    let trace = made(Pattern::Halo2d, false);
    let why = windows(&trace, &vec![1..12; 8], "part").unwrap_err();
    assert!(
        why.contains("MPI_Irecv: it completes in rank") && why.contains("MPI_Waitall"),
        "{why}"
    );
}
