//! Computing that is scaled, replaced, marked and combined.

use trace::{Measured, Signature, Taken};

use super::*;
use crate::names::Method;

/// The computing of ranks with these lines: the name of a call, its nanoseconds, and perhaps the
/// class of its length.
fn of(ranks: &[&str]) -> Computing {
    let mut builder = Builder::new("./pi 7".into());
    let (mut calls, mut lines) = (Vec::new(), Vec::new());
    for rank in ranks {
        let (mut own, mut gaps, mut shown) = (Vec::new(), Gaps::default(), Vec::new());
        for line in rank.lines() {
            let mut words = line.split(' ');
            let mut word = || words.next();
            let (name, nanos) = (word().unwrap(), word().unwrap().parse().unwrap());
            let signature = Signature::parse(name).unwrap();
            let method = Method::Passed("MPI_Send", name != "MPI_Wtime");
            let kind = Kind::of(method, &signature);
            let number = builder.signature(signature);
            let call = builder.call(number, Vec::new());
            if call as usize == calls.len() {
                let key = CallKey::default();
                calls.push(Described { kind, key });
            }
            own.push(call);
            gaps.push(nanos, 1);
            let size = word().map(|size| size.parse().unwrap());
            shown.push(Line { call, size, nanos });
        }
        builder.rank(&own, gaps, Gaps::default());
        lines.push(shown);
    }
    Computing {
        trace: Arc::new(builder.finish()),
        calls: Arc::new(calls),
        ranks: lines,
        work: Rates::none(),
        scale: 1000,
    }
}

/// The lines of each rank, as [`of`] reads them.
fn lines(computing: &Computing) -> Vec<String> {
    let line = |line: &Line| {
        let size = line.size.map_or(String::new(), |size| format!(" {size}"));
        format!("{} {}{size}\n", computing.named(line).0, line.nanos)
    };
    let ranks = computing.ranks.iter();
    ranks
        .map(|lines| lines.iter().map(line).collect())
        .collect()
}

/// The lines of the median of recordings. `None`: they have none.
fn median(all: &[&Computing]) -> Option<Vec<String>> {
    Computing::median(all).map(|found| lines(&found))
}

#[test]
fn calls_have_the_computing_since_the_last_one() {
    let found = of(&["MPI_Send 5 4\nMPI_Test 7\nMPI_Wtime 1\nMPI_Wait 1\n", ""]);
    let sized = CallKey {
        size: Some(4),
        ..CallKey::default()
    };
    let calls: Vec<_> = found.calls(0).collect();
    let wait = ("MPI_Wait", CallKey::default(), 9);
    assert_eq!(calls, [("MPI_Send", sized, 5), wait]);
    assert_eq!((found.calls(1).count(), found.calls(2).count()), (0, 0));
    assert_eq!((found.ranks(), found.total()), (2, 14));
}

#[test]
fn a_faster_processor_shortens_every_time() {
    let found = of(&["MPI_Send 1000\nMPI_Test 70\n"]);
    let faster = found.scaled(500);
    assert_eq!(lines(&faster), ["MPI_Send 500\nMPI_Test 35\n"]);
    assert_eq!((faster.scale, found.scaled(1000)), (500, found.clone()));
    let long = of(&["MPI_Send 18446744073709551615\n"]);
    assert_eq!(long.scaled(2000).total(), u64::MAX);
}

#[test]
fn computing_is_replaced_call_by_call() {
    let found = of(&["MPI_Send 1\nMPI_Test 7\nMPI_Wait 1\n", "MPI_Recv 3\n"]);
    let other = found.replaced(&[vec![5, 6], Vec::new()]);
    let wanted = ["MPI_Send 5\nMPI_Test 0\nMPI_Wait 6\n", "MPI_Recv 3\n"];
    assert_eq!(lines(&other), wanted);
}

#[test]
fn steps_are_marked_where_the_call_before_returns() {
    let found = of(&["MPI_Send 1\nMPI_Test 7\nMPI_Wait 1\nMPI_Send 2\n", ""]);
    let trace = found.trace(&[vec![1, 2, 3], Vec::new()]);
    let calls = trace.calls_of(0);
    let names: Vec<_> = calls
        .map(|(call, nanos)| (trace.signature(call).name.as_str(), nanos))
        .collect();
    let step = ("step", 0);
    let [one, test, wait] = [("MPI_Send", 1), ("MPI_Test", 7), ("MPI_Wait", 1)];
    assert_eq!(names, [one, step, test, wait, step, ("MPI_Send", 2), step]);
    assert_eq!(trace.calls_of(1).count(), 0);
    assert_eq!(found.trace(&[]), **found.recorded());
}

#[test]
fn the_median_of_each_call_leaves_out_a_disturbance() {
    let quiet = of(&["MPI_Send 10\nMPI_Test 70\n", "MPI_Recv 5\n"]);
    let disturbed = of(&["MPI_Send 9000\nMPI_Test 72\n", "MPI_Recv 1\n"]);
    let third = of(&["MPI_Send 12\nMPI_Test 90\n", "MPI_Recv 6\n"]);
    let all = [&quiet, &disturbed, &third];
    let wanted = ["MPI_Send 12\nMPI_Test 72\n", "MPI_Recv 5\n"];
    assert_eq!(median(&all).unwrap(), wanted);
    assert_eq!(lines(&Computing::middle(&all).unwrap()), wanted);
    // The median of two times is their mean.
    let wanted = ["MPI_Send 11\nMPI_Test 80\n", "MPI_Recv 5\n"];
    assert_eq!(median(&[&quiet, &third]).unwrap(), wanted);
    assert_eq!(median(&[]), None);
    assert!(Computing::have_equal_calls(&all));
}

#[test]
fn other_polls_and_clock_readings_are_those_of_the_middle() {
    let few = of(&["MPI_Wtime 40\nMPI_Recv 10\nMPI_Send 3\n"]);
    let more = of(&["MPI_Wtime 20\nMPI_Wtime 40\nMPI_Wait 30\nMPI_Recv 10\nMPI_Send 5\n"]);
    let many = of(&["MPI_Wtime 900\nMPI_Test 10\nMPI_Recv 10\nMPI_Send 9\n"]);
    let middle = ["MPI_Wtime 20\nMPI_Wtime 40\nMPI_Wait 30\nMPI_Recv 10\nMPI_Send 5\n"];
    assert_eq!(median(&[&many, &few, &more]).unwrap(), middle);
    // Of two recordings the shorter one stays, with the mean of both times.
    let mean = ["MPI_Wtime 60\nMPI_Recv 15\nMPI_Send 4\n"];
    assert_eq!(median(&[&few, &more]).unwrap(), mean);
    assert!(Computing::have_equal_calls(&[&few, &many]));
    assert!(!Computing::have_equal_calls(&[&few, &more]));
    // Where a rank has computed nothing, the last call gets the time.
    let idle = of(&["MPI_Wtime 0\nMPI_Recv 0\nMPI_Send 3\n"]);
    let busy = of(&["MPI_Recv 50\nMPI_Send 3\n"]);
    let wanted = ["MPI_Wtime 0\nMPI_Recv 25\nMPI_Send 3\n"];
    assert_eq!(median(&[&idle, &busy]).unwrap(), wanted);
}

#[test]
fn where_sure_calls_differ_one_whole_recording_is_taken() {
    let short = of(&["MPI_Test 10\nMPI_Recv 5\n"]);
    let middle = of(&["MPI_Test 20\nMPI_Bcast 5\n"]);
    let long = of(&["MPI_Test 90\nMPI_Recv 5 4\n"]);
    let more = of(&["MPI_Test 10\nMPI_Recv 5\nMPI_Send 1\n"]);
    let wider = of(&["MPI_Test 10\nMPI_Recv 5\n", "MPI_Recv 5\n"]);
    for other in [&middle, &long, &more, &wider] {
        assert_eq!(median(&[&short, other]), None, "{other:?}");
        assert_eq!(median(&[other, &short]), None, "{other:?}");
    }
    let found = Computing::middle(&[&long, &short, &middle]);
    assert_eq!(found, Some(middle));
}

#[test]
fn interruptions_lengthen_the_computing_before_their_calls() {
    let mut computing = of(&["MPI_Send 5\nMPI_Wtime 6\nMPI_Send 7\n", "MPI_Send 1\n"]);
    let mut trace = Trace::clone(computing.recorded());
    let taken = [(0, 100), (2, u64::MAX)];
    trace.ranks[0].measured = Some(Measured {
        taken: taken.map(|(call, nanos)| Taken { call, nanos }).into(),
        ..Measured::default()
    });
    computing.trace = Arc::new(trace);
    let longest = format!("MPI_Send 105\nMPI_Wtime 6\nMPI_Send {}\n", u64::MAX);
    assert_eq!(lines(&computing.with_taken()), [&longest, "MPI_Send 1\n"]);
}

#[test]
fn times_of_work_inside_mpi_are_scaled_and_combined() {
    let plain = of(&["MPI_Send 1\n"]);
    let mut timed = plain.clone();
    timed.work.read("MPI_SUM:MPI_DOUBLE 4096 51200").unwrap();
    let slower = timed.scaled(2000).replaced(&[]);
    assert_eq!(slower.work, timed.work.scaled(2000));
    let found = Computing::median(&[&timed, &plain]).unwrap();
    assert_eq!(found.work, timed.work);
    let written = found.trace(&[]).work;
    assert_eq!(written, ["MPI_SUM:MPI_DOUBLE 4096 51200"]);
}
