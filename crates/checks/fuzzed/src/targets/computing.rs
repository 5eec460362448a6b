//! Fuzz target: the parser of compute records, and their replay.
//!
//! The promises: a record that is read is written so that it is read again as the same; a replay of
//! any calls says where they differ from those of the record.

use std::fs::File;
use std::io::Write;

use model::compute_trace::{CallKind, ComputeTrace, Replay, rates};

/// The most ranks that are replayed.
const MOST_RANKS: usize = 4;

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(trace) = ComputeTrace::parse(&text) else {
        return;
    };
    let again = ComputeTrace::parse(&trace.text());
    assert_eq!(again.as_ref(), Ok(&trace));
    assert_eq!(trace.check(&trace.program, trace.ranks()), Ok(()));
    let packed = packed(&trace);
    rates(&packed, trace.ranks()).expect("times of work inside MPI");
    for rank in 0..trace.ranks().min(MOST_RANKS) {
        let mut replay = Replay::open(&packed, rank).expect("a part for each rank");
        let calls = ["MPI_Send", "MPI_Test", "MPI_Wtime", "MPI_Test"];
        let kinds = [CallKind::Operation, CallKind::Poll, CallKind::Clock, CallKind::Poll];
        for (call, kind) in calls.into_iter().zip(kinds) {
            let played = replay.enter(call, kind);
            assert!(played.is_ok() || played.is_err_and(|why| why.contains(call)));
        }
    }
}

/// The record in the file that ranks read.
fn packed(trace: &ComputeTrace) -> File {
    let mut file = tempfile::tempfile().expect("room for a file");
    file.write_all(&trace.pack()).expect("room for a record");
    file
}
