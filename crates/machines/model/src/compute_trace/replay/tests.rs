use super::CallKind::{Clock, Operation, Poll};
use super::*;
use crate::compute_trace::ComputeTrace;
use proptest::prelude::*;

fn replay(lines: &str) -> Replay {
    Replay::of(lines.into(), true)
}

/// Makes `number` polls; returns the time before each.
fn polls(replay: &mut Replay, number: usize) -> Vec<u64> {
    let poll = |_| replay.enter("MPI_Test", Poll).unwrap();
    (0..number).map(poll).collect()
}

fn operation(replay: &mut Replay, call: &str) -> u64 {
    replay.enter(call, Operation).unwrap()
}

fn packed(trace: &ComputeTrace) -> File {
    use std::os::fd::FromRawFd;
    // SAFETY: a new descriptor with no other owner.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"packed".as_ptr(), 0)) };
    file.write_all_at(&trace.pack(), 0).unwrap();
    file
}

#[test]
fn each_rank_reads_its_own_part() {
    let trace = ComputeTrace {
        program: "./pi".into(),
        ranks: vec!["MPI_Send 12\n".into(), String::new()],
        work: {
            let mut work = Rates::none();
            work.read("copy 4096 50000").unwrap();
            work
        },
    };
    let file = packed(&trace);
    let mut first = Replay::open(&file, 0).unwrap();
    assert_eq!(first.enter("MPI_Send", Operation), Ok(12));
    let why = Replay::open(&file, 1).unwrap().enter("MPI_Send", Operation);
    assert!(why.unwrap_err().contains("no further call was recorded"));
    assert!(Replay::open(&file, 2).is_err());
    assert_eq!(rates(&file, 2).unwrap(), trace.work);
    assert!(rates(&file, 3).is_err());
}

#[test]
fn another_sequence_of_sure_calls_is_refused_unless_something_depends_on_time() {
    let recorded = "MPI_Send 12\nMPI_Bcast 5\nMPI_Finalize 0\n";
    let file = |first: &str| {
        packed(&ComputeTrace {
            program: "./pi".into(),
            ranks: vec![recorded.into(), first.into()],
            work: Rates::none(),
        })
    };
    let mut other = Replay::open(&file(""), 0).unwrap();
    assert_eq!(other.enter("MPI_Send", Operation), Ok(12));
    let why = other.enter("MPI_Recv", Operation).unwrap_err();
    assert_eq!(
        why,
        "its call 2 is MPI_Recv, and MPI_Bcast was recorded there"
    );
    // Another rank polls, reads the clock, or receives from any source.
    for first in [
        "MPI_Test 3 x1\n",
        "MPI_Wtime 1 x1\n",
        "MPI_Waitany 1\n",
        "MPI_Recv 1 p-1073741825\n",
    ] {
        let mut free = Replay::open(&file(first), 0).unwrap();
        assert_eq!(free.enter("MPI_Send", Operation), Ok(12));
        assert_eq!(free.enter("MPI_Recv", Operation), Ok(5), "{first}");
        let first = free.differences().first.clone();
        assert_eq!(first, Some(why.clone()));
    }
}

#[test]
fn a_marked_step_begins_with_the_return_of_the_call_before_it() {
    let mut marked = replay("MPI_Send 3\nstep\nMPI_Test 9 x1\nMPI_Wait 4\nstep\nMPI_Recv 1\n");
    assert_eq!(marked.take_steps(), 0);
    assert_eq!(operation(&mut marked, "MPI_Send"), 3);
    assert_eq!([marked.take_steps(), marked.take_steps()], [1, 0]);
    assert_eq!(polls(&mut marked, 1), [9]);
    assert_eq!(marked.take_steps(), 0);
    assert_eq!(operation(&mut marked, "MPI_Wait"), 4);
    assert_eq!(marked.take_steps(), 1);
    assert_eq!(operation(&mut marked, "MPI_Recv"), 1);
    assert_eq!(replay("step\nMPI_Send 3\n").take_steps(), 1);
}

#[test]
fn a_poll_takes_its_interval_whatever_it_returns() {
    // In older files, the poll that had a result is on a line of its own.
    let mut same = replay("MPI_Test 100 x4\nMPI_Test 9\nMPI_Test 60 x2\nMPI_Send 3\n");
    assert_eq!(polls(&mut same, 8), [25, 25, 25, 25, 9, 30, 30, 0]);
    assert_eq!(operation(&mut same, "MPI_Send"), 3);
}

#[test]
fn fewer_polls_leave_their_time_to_the_next_call_and_more_take_none() {
    let lines = "MPI_Test 100 x4\nMPI_Test 9 x1\nMPI_Send 3\n";
    let mut fewer = replay(lines);
    assert_eq!(polls(&mut fewer, 2), [25, 25]);
    assert_eq!(operation(&mut fewer, "MPI_Send"), 50 + 9 + 3);
    let mut more = replay(lines);
    assert_eq!(polls(&mut more, 7), [25, 25, 25, 25, 9, 0, 0]);
    assert_eq!(operation(&mut more, "MPI_Send"), 3);
}

#[test]
fn a_wait_may_stand_for_a_poll_and_a_poll_for_a_wait() {
    // The program overlaps with polls until all is done, then waits for the rest.
    let lines = "MPI_Isend 1\nMPI_Test 30 x3\nMPI_Wait 7\nMPI_Send 3\n";
    let mut same = replay(lines);
    assert_eq!(operation(&mut same, "MPI_Isend"), 1);
    assert_eq!(polls(&mut same, 5), [10, 10, 10, 0, 0]);
    assert_eq!(operation(&mut same, "MPI_Wait"), 7);
    // A poll has the result, so the program does not wait.
    let mut without = replay(lines);
    assert_eq!(operation(&mut without, "MPI_Isend"), 1);
    assert_eq!(polls(&mut without, 2), [10, 10]);
    assert_eq!(operation(&mut without, "MPI_Send"), 10 + 7 + 3);
    // No poll has the result here.
    let mut waits = replay("MPI_Isend 1\nMPI_Test 30 x3\nMPI_Send 3\n");
    assert_eq!(operation(&mut waits, "MPI_Isend"), 1);
    assert_eq!(polls(&mut waits, 2), [10, 10]);
    assert_eq!(operation(&mut waits, "MPI_Wait"), 10);
    assert_eq!(operation(&mut waits, "MPI_Wait"), 0);
    assert_eq!(operation(&mut waits, "MPI_Send"), 3);
}

#[test]
fn a_question_about_a_status_may_come_elsewhere() {
    let mut asks =
        replay("MPI_Isend 1\nMPI_Test 20 x2\nMPI_Get_count 4\nMPI_Test 30 x3\nMPI_Send 3\n");
    assert_eq!(operation(&mut asks, "MPI_Isend"), 1);
    assert_eq!(polls(&mut asks, 1), [10]);
    assert_eq!(operation(&mut asks, "MPI_Get_count"), 14);
    assert_eq!(operation(&mut asks, "MPI_Get_count"), 0);
    assert_eq!(polls(&mut asks, 4), [10, 10, 10, 0]);
    assert_eq!(operation(&mut asks, "MPI_Send"), 3);
}

#[test]
fn the_clock_is_read_at_its_place_among_polls() {
    let lines = "MPI_Test 100 x4\nMPI_Wtime 7 x1\nMPI_Test 20 x2\nMPI_Test 9 x1\nMPI_Wtime 50 x1\nMPI_Send 3\n";
    let mut fewer = replay(lines);
    assert_eq!(fewer.enter("MPI_Test", Poll), Ok(25));
    assert_eq!(fewer.enter("MPI_Wtime", Clock), Ok(75 + 7));
    assert_eq!(polls(&mut fewer, 2), [10, 10]);
    assert_eq!(fewer.enter("MPI_Wtime", Clock), Ok(9 + 50));
    let more = fewer.enter("MPI_Wtime", Clock);
    assert_eq!(more, Ok(0), "one more than recorded, beside polls");
    assert_eq!(operation(&mut fewer, "MPI_Send"), 3);
}

#[test]
fn a_program_that_waits_for_the_clock_ends() {
    let mut waits = replay("MPI_Wtime 7 x1\nMPI_Send 3\n");
    let (mut time, mut readings) = (0, 0);
    while time < 10_000_000_000 {
        time += waits.enter("MPI_Wtime", Clock).unwrap();
        readings += 1;
        assert!(readings < 10_000, "the clock is at {time} ns");
    }
    assert_eq!(waits.differences().invented, time - 7);
    let why = waits.differences().first.clone().unwrap();
    assert!(
        why.contains("reads MPI_Wtime more than 128 times in a row"),
        "{why}"
    );
}

#[test]
fn messages_between_two_calls_of_another_kind_may_come_in_any_order() {
    let lines = "MPI_Test 0 x1\nMPI_Isend 1\nMPI_Irecv 20\nMPI_Testany 300 x3\nMPI_Isend 4000\nMPI_Irecv 50000\nMPI_Barrier 7\nMPI_Isend 9\n";
    let mut other = replay(lines);
    let mut charged =
        ["MPI_Irecv", "MPI_Irecv", "MPI_Isend"].map(|call| operation(&mut other, call));
    assert_eq!(charged, [20, 50000, 1]);
    // The polls come after the calls that have been replayed.
    assert_eq!(other.enter("MPI_Testany", Poll), Ok(100));
    charged = ["MPI_Isend", "MPI_Barrier", "MPI_Isend"].map(|call| operation(&mut other, call));
    assert_eq!(charged, [4200, 7, 9]);
    assert_eq!(*other.differences(), Differences::default());
    // One more call takes the mean of its kind after a call of that name, and one that is not made
    // is left out.
    let mut other = replay(lines);
    charged = ["MPI_Irecv", "MPI_Irecv", "MPI_Irecv"].map(|call| operation(&mut other, call));
    assert_eq!(charged, [20, 50000, 25010]);
    assert_eq!(operation(&mut other, "MPI_Barrier"), 7);
    let found = other.differences();
    assert_eq!((found.invented, found.left_out), (25010, 1 + 300 + 4000));
}

/// A worker that does `tasks` tasks, where three were recorded. Returns the time before each send,
/// and before the calls at the end.
fn worker(tasks: usize) -> (Vec<u64>, Differences) {
    let mut worker = replay(
        "MPI_Recv 0\nMPI_Send 10\nMPI_Recv 1\nMPI_Send 20\nMPI_Recv 1\nMPI_Send 30\nMPI_Recv 1\nMPI_Barrier 5\nMPI_Finalize 2\n",
    );
    let mut times = Vec::new();
    for _ in 0..tasks {
        operation(&mut worker, "MPI_Recv");
        times.push(operation(&mut worker, "MPI_Send"));
    }
    operation(&mut worker, "MPI_Recv");
    times.push(operation(&mut worker, "MPI_Barrier"));
    times.push(operation(&mut worker, "MPI_Finalize"));
    (times, worker.differences().clone())
}

#[test]
fn a_worker_may_do_more_tasks_or_fewer() {
    assert_eq!(worker(3), (vec![10, 20, 30, 5, 2], Differences::default()));
    let (times, found) = worker(5);
    assert_eq!(times, [10, 20, 30, 20, 20, 5, 2]);
    // The receives between the tasks are additional, too.
    assert_eq!((found.invented, found.left_out), (42, 0));
    let first = "its call 8 is MPI_Send, and MPI_Barrier was recorded there";
    assert_eq!(found.first.as_deref(), Some(first));
    let (times, found) = worker(1);
    assert_eq!(times, [10, 5, 2]);
    assert_eq!((found.invented, found.left_out), (0, 52));
}

/// Recorded calls: for each its index in `CALLS`, its nanoseconds, and its number of polls.
fn recorded() -> impl Strategy<Value = Vec<(usize, u64, u64)>> {
    let call = (0..CALLS.len(), 0..1000u64, 1..9u64);
    proptest::collection::vec(call, 0..60)
}

const CALLS: [(&str, CallKind); 7] = [
    ("MPI_Test", Poll),
    ("MPI_Iprobe", Poll),
    ("MPI_Wtime", Clock),
    ("MPI_Wait", Operation),
    ("MPI_Send", Operation),
    ("MPI_Recv", Operation),
    ("MPI_Bcast", Operation),
];
/// The range of the sure calls among them.
const SURE: std::ops::Range<usize> = 4..7;

fn lines(calls: &[(usize, u64, u64)]) -> String {
    let line = |(call, nanos, times): &(usize, u64, u64)| match CALLS[*call] {
        (name, Operation) => format!("{name} {nanos}\n"),
        (name, _) => format!("{name} {nanos} x{times}\n"),
    };
    calls.iter().map(line).collect::<String>() + "MPI_Finalize 1\n"
}

proptest! {
    /// With the recorded sure calls, and any polls and waits between them, the sum of the charged
    /// times equals the recorded sum at each sure call.
    #[test]
    fn other_polls_and_waits_keep_the_sum(
        calls in recorded(),
        between in proptest::collection::vec((0..4usize, 0..30usize), 61),
    ) {
        let mut replay = replay(&lines(&calls));
        let (mut wanted, mut charged) = (0, 0);
        for ((call, nanos, _), (other, number)) in calls.iter().zip(between) {
            wanted += nanos;
            if !SURE.contains(call) {
                continue;
            }
            for _ in 0..number {
                charged += replay.enter(CALLS[other].0, CALLS[other].1).unwrap();
                prop_assert!(charged <= wanted + replay.differences().invented);
            }
            charged += operation(&mut replay, CALLS[*call].0);
            // The replay may have charged time for readings of the clock beyond the recorded
            // number.
            let invented = replay.differences().invented;
            prop_assert_eq!(charged, wanted + invented);
        }
        prop_assert_eq!(replay.differences().left_out, 0);
    }

    /// With any calls at all, the charged time is the recorded one, less what is left out, plus
    /// what is invented.
    #[test]
    fn other_sure_calls_are_accounted_for(
        calls in recorded(),
        made in proptest::collection::vec(0..CALLS.len(), 0..90),
    ) {
        let text = lines(&calls);
        let mut replay = replay(&text);
        let mut charged = 0;
        for call in made {
            charged += replay.enter(CALLS[call].0, CALLS[call].1).unwrap();
        }
        charged += operation(&mut replay, "MPI_Finalize");
        let Differences { invented, left_out, .. } = replay.differences();
        let recorded = passed(&text).0;
        prop_assert_eq!(charged, recorded + invented - left_out);
    }
}
