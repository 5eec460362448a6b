//! Replays of traces that are made here, good and bad.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fabric::catalogue::Catalogue;
use model::config::MachineConfig;
use trace::{Builder, Fact, Gaps, Pattern, Recipe, Signature, Trace, Value};

use crate::{CallKey, Computing, Outcome, Stage, check, replay};

/// A process has one world at a time, and one rank that the library finds.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn replayed(trace: Trace, per_host: usize) -> Result<Outcome, String> {
    let system = Catalogue::builtin().system("edr").unwrap();
    let scene = MachineConfig::new(&system, trace.ranks.len(), per_host, 1).unwrap();
    let world = memory_file::of_length("world", sim::memory::Memory::BYTES).unwrap();
    let stage = Stage {
        scene: scene.encode(),
        world: Arc::new(world),
        profile: None,
        settings: Vec::new(),
    };
    replay(Arc::new(trace), &stage)
}

fn recipe(pattern: Pattern, ranks: usize) -> Trace {
    let recipe = Recipe {
        pattern,
        ranks,
        steps: 3,
        bytes: 20_000,
        nanos: 1000,
        sum_every: 1,
        seed: 1,
    };
    recipe.make("make".into())
}

/// A trace of two ranks that make these calls and end. A call is the line of a signature, and its
/// values.
fn of_calls(calls: &[(&str, Vec<Value>)]) -> Trace {
    let mut builder = Builder::new("test".into());
    for _ in 0..2 {
        let end = [("MPI_Finalize", Vec::new())];
        let (mut numbers, mut gaps) = (Vec::new(), Gaps::default());
        for (line, values) in calls.iter().chain(&end) {
            let signature = builder.signature(Signature::parse(line).unwrap());
            numbers.push(builder.call(signature, values.clone()));
            gaps.push(0, 1);
        }
        builder.rank(&numbers, gaps, Gaps::default());
    }
    builder.finish()
}

/// The values of a call, all of them numbers.
fn numbers<const N: usize>(numbers: [i64; N]) -> Vec<Value> {
    numbers.map(Value::Number).to_vec()
}

const BCAST: &str = "MPI_Bcast buffer:out count:count datatype:datatype root:root comm:comm";
const WORLD: i64 = 0x101;
const BYTE: i64 = 0x247;

#[test]
fn every_pattern_takes_time_and_the_same_each_time() {
    let _alone = alone();
    for (pattern, ..) in Pattern::ALL {
        let first = replayed(recipe(pattern, 6), 2).unwrap();
        assert!(
            first.picos > 3_000_000 && first.other_choices == 0,
            "{pattern:?}: {first:?}"
        );
        assert_eq!(replayed(recipe(pattern, 6), 2), Ok(first), "{pattern:?}");
    }
}

#[test]
fn computing_is_added() {
    let _alone = alone();
    let barrier = ("MPI_Barrier comm:comm", numbers([WORLD]));
    let mut trace = of_calls(&[barrier]);
    let quick = replayed(trace.clone(), 1).unwrap().picos;
    for rank in &mut trace.ranks {
        rank.gaps = Gaps::default();
        rank.gaps.push(700, 2);
    }
    assert_eq!(replayed(trace, 1).unwrap().picos, quick + 2 * 700_000);
}

#[test]
fn no_trace_reaches_other_memory_than_the_replay_has() {
    let _alone = alone();
    assert!(replayed(of_calls(&[(BCAST, numbers([4096, 9, BYTE, 0, WORLD]))]), 1).is_ok());
    let far = "MPI_Type_create_hindexed count:count array_of_blocklengths:count[count] \
               array_of_displacements:extent[count] oldtype:datatype newtype:>datatype";
    let commit = "MPI_Type_commit datatype:<>datatype";
    let of = |displacement: i64| {
        let one = |number| Value::Numbers(vec![number]);
        let made = [
            Value::Number(1),
            one(1),
            one(displacement),
            Value::Number(BYTE),
        ];
        let made = [&made[..], &numbers([4096])].concat();
        let used = numbers([4096, 1, 4096, 0, WORLD]);
        of_calls(&[(far, made), (commit, numbers([4096])), (BCAST, used)])
    };
    assert!(replayed(of(64), 1).is_ok());
    let why = replayed(of(1 << 46), 1).unwrap_err();
    assert!(
        why.contains("MPI_Bcast: its buffers are absolute addresses"),
        "{why}"
    );
    let address = of_calls(&[(BCAST, numbers([77, 9, BYTE, 0, WORLD]))]);
    let why = replayed(address, 1).unwrap_err();
    assert!(
        why.contains("buffer: an address that no program has"),
        "{why}"
    );
}

#[test]
fn what_cannot_be_replayed_is_named_before_anything_runs() {
    let handler = "MPI_Comm_call_errhandler comm:comm errorcode:int";
    let why = check(&of_calls(&[(handler, numbers([WORLD, 1]))])).unwrap_err();
    assert!(
        why.contains("MPI_Comm_call_errhandler cannot be replayed: it calls a function"),
        "{why}"
    );
    let other = of_calls(&[("MPI_Barrier comm:comm flag:flag", numbers([WORLD, 0]))]);
    assert!(
        check(&other)
            .unwrap_err()
            .contains("has other parameters here")
    );
    let unknown = of_calls(&[("MPI_Levitate", Vec::new())]);
    assert!(
        check(&unknown)
            .unwrap_err()
            .contains("MPI_Levitate is no procedure")
    );
}

#[test]
fn files_have_the_sizes_of_the_recorded_run_and_are_nowhere() {
    let _alone = alone();
    const CREATE_TO_READ_AND_WRITE: i64 = 2 | 32;
    const FROM_END: i64 = 402;
    let name = || Value::Text(b"a-file-of-a-replay".to_vec());
    let (comm, mode) = (
        Value::Number(WORLD),
        Value::Number(CREATE_TO_READ_AND_WRITE),
    );
    let open = "MPI_File_open comm:comm filename:str amode:int info:info fh:>file";
    let opened = vec![comm, name(), mode, Value::Absent, Value::Number(4096)];
    let write = "MPI_File_write_at_all fh:file offset:offset buf:in count:count \
                 datatype:datatype status:>status";
    let written = [
        &numbers([4096, 1 << 40, 4096, 100, BYTE])[..],
        &[Value::Absent],
    ]
    .concat();
    let seek = "MPI_File_seek fh:file offset:offset whence:int";
    let close = "MPI_File_close fh:<>file";
    let of = |found: i64, back: i64| {
        let fact = vec![name(), Value::Number(found)];
        of_calls(&[
            (Fact::FileSize.line(), fact),
            (open, opened.clone()),
            (seek, numbers([4096, -back, FROM_END])),
            (write, written.clone()),
            (close, numbers([4096])),
        ])
    };
    assert!(replayed(of(1000, 1000), 1).unwrap().picos > 0);
    let why = replayed(of(1000, 1001), 1).unwrap_err();
    assert!(why.contains("MPI_File_seek"), "{why}");
    assert!(!std::path::Path::new("a-file-of-a-replay").exists());
}

#[test]
fn keys_have_the_sizes_of_datatypes_that_the_program_has_made() {
    let made = "MPI_Type_contiguous count:count oldtype:datatype newtype:>datatype";
    let trace = of_calls(&[
        (Fact::TypeSize.line(), numbers([4096, 24])),
        (made, numbers([24, BYTE, 4096])),
        (BCAST, numbers([4096, 9, 4096, 0, WORLD])),
        (BCAST, numbers([4096, 9, 4097, 0, WORLD])),
    ]);
    let found = Computing::of(Arc::new(trace)).unwrap();
    let calls = found.calls(0).filter(|call| call.0 == "MPI_Bcast");
    let sizes: Vec<_> = calls.map(|call| call.1.size).collect();
    assert_eq!(sizes, [216, 9].map(|size| Some(CallKey::size_of(size))));
}

#[test]
fn arrays_have_the_lengths_that_calls_read() {
    let _alone = alone();
    let line =
        "MPI_Waitall count:n array_of_requests:<>request[count] array_of_statuses:>status[count]";
    let values = |count, requests| vec![Value::Number(count), requests, Value::Absent];
    let null = Value::Numbers(vec![0x180; 2]);
    assert!(replayed(of_calls(&[(line, values(2, null.clone()))]), 1).is_ok());
    let why = replayed(of_calls(&[(line, values(3, null))]), 1).unwrap_err();
    assert!(
        why.contains("array_of_requests has another length"),
        "{why}"
    );
    let gather = "MPI_Allgatherv sendbuf:in sendcount:count sendtype:datatype recvbuf:out \
                  recvcounts:count[*] displs:displ[*] recvtype:datatype comm:comm";
    let of = |counts: Vec<i64>| {
        let displs = Value::Numbers(vec![0, 1]);
        let middle = [Value::Number(4096), Value::Numbers(counts), displs];
        let ends = [numbers([4096, 1, BYTE]), numbers([BYTE, WORLD])];
        of_calls(&[(gather, [&ends[0][..], &middle, &ends[1]].concat())])
    };
    assert!(replayed(of(vec![1, 1]), 1).is_ok());
    let why = replayed(of(vec![1]), 1).unwrap_err();
    assert!(why.contains("recvcounts has another length"), "{why}");
}

#[test]
fn a_trace_that_does_not_end_is_refused() {
    let _alone = alone();
    let mut trace = of_calls(&[]);
    trace.sequences[0].clear();
    trace
        .ranks
        .iter_mut()
        .for_each(|rank| rank.gaps = Gaps::default());
    let why = replayed(trace, 1).unwrap_err();
    assert!(why.contains("without MPI_Finalize"), "{why}");
}

#[test]
fn computing_is_named_by_calls_and_can_be_replaced() {
    let _alone = alone();
    let trace = Arc::new(recipe(Pattern::Ring, 4));
    let found = Computing::of(Arc::clone(&trace)).unwrap();
    let (name, key, nanos) = found.calls(1).next().unwrap();
    assert_eq!((name, nanos), ("MPI_Sendrecv", 1000));
    let peer = (key.comm, key.peer, key.constructs);
    assert_eq!(peer, (Some(0x101), Some(1), false));
    assert_eq!(found.trace(&[]), *trace);
    let before = replayed((*trace).clone(), 1).unwrap().picos;
    let steps = vec![vec![2, 4, 6]; 4];
    let marked = found.trace(&steps);
    assert!(marked.has_steps() && !trace.has_steps());
    // Marks take no time, and more computing takes that much.
    assert_eq!(replayed(marked, 1).unwrap().picos, before);
    let slower = found.scaled(3000).trace(&[]);
    assert_eq!(replayed(slower, 1).unwrap().picos, before + 3 * 2_000_000);
}

#[test]
fn a_receive_from_any_source_meets_the_recorded_one_if_it_is_frozen() {
    let _alone = alone();
    const RECV: &str = "MPI_Recv buf:out count:count datatype:datatype source:source tag:tag_any \
                        comm:comm status:>status";
    const SEND: &str = "MPI_Send buf:in count:count datatype:datatype dest:dest tag:tag comm:comm";
    const MILLISECOND: u64 = 1_000_000;
    let mut builder = Builder::new("test".into());
    let end = builder.signature(Signature::parse("MPI_Finalize").unwrap());
    let end = builder.call(end, Vec::new());
    let before = |peer| [&numbers([4096, 4, BYTE])[..], &[peer], &numbers([0, WORLD])].concat();
    let mut rank = |line: &str, calls: &[(Value, u64)], last| {
        let signature = builder.signature(Signature::parse(line).unwrap());
        let (mut own, mut gaps) = (Vec::new(), Gaps::default());
        for (peer, nanos) in calls {
            let mut values = before(peer.clone());
            values.extend((line == RECV).then_some(Value::Absent));
            own.push(builder.call(signature, values));
            gaps.push(*nanos, 1);
        }
        own.push(end);
        gaps.push(last, 1);
        builder.rank(&own, gaps, Gaps::default());
    };
    // Rank 2 sends late: a rank that waits for it first computes late.
    rank(RECV, &[(Value::Met(2), 0), (Value::Met(1), MILLISECOND)], 0);
    rank(SEND, &[(Value::Relative(-1), 0)], 0);
    rank(SEND, &[(Value::Relative(-2), MILLISECOND)], 0);
    let trace = builder.finish();
    assert!(trace.has_wildcards() && !trace.frozen().has_wildcards());
    let frozen = replayed(trace.frozen(), 1).unwrap().picos;
    let free = replayed(trace, 1).unwrap().picos;
    let apart = frozen.abs_diff(free) as f64 / (MILLISECOND * 1000) as f64;
    assert!(
        frozen > free && (0.8..1.1).contains(&apart),
        "{frozen} {free}"
    );
}
