//! Contests between real ranks: while members try every way and change to another, results are
//! right, nonblocking calls fit in, and a duplicate begins with what has won.

use std::sync::Arc;

use crate::common::{out, pattern, room, run_shared};
use mpi::Rank;
use mpi::coll::{Blocks, Work};
use mpi::comm::WORLD;

const NAME: &str = "MPI_Test";

/// More calls than come before and in the first contest.
const CALLS: usize = 400;

/// Bytes of a block for which members learn.
const BLOCK: usize = 12 << 10;

fn allgather(rank: &Rank, comm: u32, call: usize) {
    let (me, size) = (rank.rank(), rank.size());
    let ours = pattern(BLOCK, me + call);
    let mut all = vec![0; BLOCK * size];
    let work = Work::Allgather {
        send: Some(out(&ours)),
        receive: Blocks::even(room(&mut all), size),
    };
    rank.collective(NAME, &work, comm).unwrap();
    for (member, block) in all.chunks_exact(BLOCK).enumerate() {
        assert!(
            block == pattern(BLOCK, member + call),
            "call {call}, block {member}"
        );
    }
}

/// Begins a broadcast, which another collective operation overtakes.
fn overtaken_bcast(rank: &Arc<Rank>, comm: u32, call: usize) {
    let root = call % rank.size();
    let expected = pattern(BLOCK, call);
    let mut message = match rank.rank() == root {
        true => expected.clone(),
        false => vec![0; BLOCK],
    };
    let work = Work::Bcast {
        buffer: room(&mut message),
        root: root as i32,
    };
    let request = rank.start_collective(work, comm).unwrap();
    allgather(rank, comm, call);
    rank.wait("MPI_Wait", request).unwrap();
    assert!(message == expected, "call {call}");
}

fn bcast(rank: &Rank, comm: u32, call: usize) {
    let expected = pattern(BLOCK, call);
    let mut message = match rank.rank() {
        0 => expected.clone(),
        _ => vec![0; BLOCK],
    };
    let buffer = room(&mut message);
    rank.collective(NAME, &Work::Bcast { buffer, root: 0 }, comm)
        .unwrap();
    assert!(message == expected, "call {call}");
}

fn play(rank: &Arc<Rank>, comm: u32) {
    for call in 0..CALLS {
        allgather(rank, comm, call);
        bcast(rank, comm, call);
        if call % 16 == 0 {
            overtaken_bcast(rank, comm, call);
        }
    }
}

fn learns(rank: &Rank) -> bool {
    let explained = rank.explain_choices();
    explained.contains(r#""kind":"algorithm","is_learned":true"#)
}

#[test]
fn results_are_right_while_members_learn() {
    for size in [2, 3] {
        run_shared(size, &[], |rank| {
            play(rank, WORLD);
            assert!(learns(rank));
            let child = rank.comm_dup(NAME, WORLD, &[]).unwrap();
            play(rank, child);
            rank.comm_free(child).unwrap();
        });
    }
}

#[test]
fn settings_that_fix_the_paths_end_learning() {
    for setting in [
        ("FISHPLATE_COSTS", "fixed"),
        ("FISHPLATE_COLLECTIVES", "scan=chain"),
    ] {
        run_shared(2, &[setting], |rank| {
            play(rank, WORLD);
            assert!(!learns(rank));
        });
    }
}
