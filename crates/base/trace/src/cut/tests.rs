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

/// The trace with these numbers of calls of each rank.
fn shortened(trace: &Trace, lengths: &[usize]) -> Trace {
    let mut builder = Builder::new("test".into());
    let new = numbers(trace, &mut builder);
    for (rank, length) in lengths.iter().enumerate() {
        let mut own = Own::default();
        for (call, nanos) in trace.calls_of(rank).take(*length) {
            own.push(new[call as usize], nanos);
        }
        builder.rank(&own.calls, own.gaps, Gaps::default());
        builder.measured(crate::Measured::default());
    }
    builder.finish()
}

#[test]
fn ranks_that_end_early_end_behind_one_collective_operation() {
    let trace = made(Pattern::Ring, true);
    assert!(beginning(&trace).unwrap().is_none());
    // MPI_Init, and in each step MPI_Sendrecv and MPI_Allreduce.
    let all = names(&trace, 0).len();
    let lengths: Vec<usize> = (0..8).map(|rank| [all, 9, 8, 12][rank % 4]).collect();
    let found = beginning(&shortened(&trace, &lengths)).unwrap().unwrap();
    for rank in 0..8 {
        let kept = names(&found.trace, rank);
        assert_eq!(
            kept[..kept.len() - 1],
            names(&trace, rank)[..kept.len() - 1]
        );
        assert_eq!(kept.last(), Some(&"MPI_Finalize"));
        assert_eq!(kept.len(), 9);
        // More than one call in a hundred is left out, so the times are those of another run.
        assert_eq!(found.trace.ranks[rank].measured, None);
    }
    assert_eq!(found.left_out, lengths.iter().sum::<usize>() as u64 - 8 * 8);
    assert!(
        found.trace.notes[0].starts_with("cut: "),
        "{:?}",
        found.trace.notes
    );
    assert!(beginning(&found.trace).unwrap().is_none());
}

#[test]
fn a_message_on_its_way_moves_the_end_to_the_collective_operation_before() {
    let signature = |builder: &mut Builder, line: &str| {
        builder.signature(crate::Signature::parse(line).unwrap())
    };
    let mut builder = Builder::new("test".into());
    let barrier = signature(&mut builder, "MPI_Barrier comm:comm");
    let barrier = builder.call(barrier, vec![Value::Number(257)]);
    let message = |builder: &mut Builder, name: &str, peer: &str, to: i64| {
        let line =
            format!("{name} buf:in count:count datatype:datatype {peer}:{peer} tag:tag comm:comm");
        let line = signature(builder, &line);
        let number = Value::Number;
        let values = vec![
            number(0),
            number(1),
            number(0),
            Value::Relative(to),
            number(0),
            number(257),
        ];
        builder.call(line, values)
    };
    let send = message(&mut builder, "MPI_Send", "dest", 1);
    let receive = message(&mut builder, "MPI_Recv", "source", -1);
    let gaps = |calls: usize| {
        let mut gaps = Gaps::default();
        gaps.push(1, calls as u64);
        gaps
    };
    for calls in [
        vec![barrier, send, barrier, barrier],
        vec![barrier, barrier, receive],
    ] {
        builder.rank(&calls, gaps(calls.len()), Gaps::default());
    }
    let found = beginning(&builder.finish()).unwrap().unwrap();
    let kept = [0, 1].map(|rank| names(&found.trace, rank));
    assert_eq!(kept, [["MPI_Barrier", "MPI_Finalize"]; 2]);
}

#[test]
fn without_a_collective_operation_of_all_ranks_there_is_no_beginning() {
    let trace = made(Pattern::Ring, false);
    let lengths: Vec<usize> = (0..8).map(|rank| 5 - rank % 2).collect();
    let why = beginning(&shortened(&trace, &lengths))
        .map(drop)
        .unwrap_err();
    assert!(
        why.contains("no collective operation of all ranks"),
        "{why}"
    );
}
