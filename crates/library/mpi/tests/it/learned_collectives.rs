//! Contests between real ranks: while members try every `Way` and change to another, results are
//! right, nonblocking calls fit in, and a duplicate begins with what has won.

use std::sync::Arc;

use crate::common::{out, pattern, room, run_shared};
use crate::intercommunicators::halves;
use mpi::coll::{Blocks, Work};
use mpi::comm::WORLD;
use mpi::{PROC_NULL, ROOT, Rank};

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

/// An exchange of all with all of the remote group: blocks of these bytes, or of half of them from the
/// second group.
fn exchange(rank: &Rank, inter: u32, call: usize, len: usize) {
    let core = rank.objects().comms().get(inter).unwrap().core.clone();
    let (me, ours, remote) = (core.rank, core.members.len(), core.peers().len());
    let is_first = rank.rank() < 2;
    let lens = match is_first {
        true => [len, len / 2],
        false => [len / 2, len],
    };
    let block = |first: bool, from: usize, to: usize, len: usize| {
        pattern(len, usize::from(first) * 31 + from * 7 + to + call)
    };
    let give = (0..remote).flat_map(|to| block(is_first, me, to, lens[0]));
    let give: Vec<u8> = give.collect();
    let mut take = vec![0; lens[1] * remote];
    let work = Work::Alltoall {
        send: Some(Blocks::even(out(&give), remote)),
        receive: Blocks::even(room(&mut take), remote),
    };
    rank.collective(NAME, &work, inter).unwrap();
    for (from, block_of) in take.chunks_exact(lens[1]).enumerate() {
        let expected = block(!is_first, from, me, lens[1]);
        assert!(block_of == expected, "call {call}, block {from}");
    }
    let own = pattern(lens[0], rank.rank() + call);
    let work = Work::Allgather {
        send: Some(out(&own)),
        receive: Blocks::even(room(&mut take), remote),
    };
    rank.collective(NAME, &work, inter).unwrap();
    let first = if is_first { ours } else { 0 };
    for (from, block) in take.chunks_exact(lens[1]).enumerate() {
        assert!(
            block == pattern(lens[1], first + from + call),
            "call {call}"
        );
    }
}

/// A broadcast from each group in turn.
fn bcast_between(rank: &Rank, inter: u32, call: usize) {
    for root in [0, 2] {
        let expected = pattern(BLOCK, call + root);
        let is_root = rank.rank() == root;
        let mut message = match is_root {
            true => expected.clone(),
            false => vec![0; BLOCK],
        };
        let buffer = room(&mut message);
        let is_given = (rank.rank() < 2) == (root < 2);
        let root = match (is_root, is_given) {
            (true, _) => ROOT,
            (false, true) => PROC_NULL,
            (false, false) => 0,
        };
        rank.collective(NAME, &Work::Bcast { buffer, root }, inter)
            .unwrap();
        assert!(is_given || message == expected, "call {call}");
    }
}

#[test]
fn results_are_right_while_two_groups_learn() {
    for size in [3, 4] {
        run_shared(size, &[], |rank| {
            let (_, inter) = halves(rank, 2);
            for call in 0..CALLS {
                exchange(rank, inter, call, BLOCK);
                bcast_between(rank, inter, call);
            }
        });
    }
}

/// Every algorithm of an exchange between two groups, also with blocks longer than a round.
#[test]
fn two_groups_exchange_by_each_algorithm() {
    for way in ["shared", "direct", "linear", "pairwise"] {
        let all = format!("alltoall={way},allgather={way}");
        let algorithms = match way {
            "pairwise" => "alltoall=pairwise,allgather=ring",
            _ => &all,
        };
        run_shared(4, &[("FISHPLATE_COLLECTIVES", algorithms)], |rank| {
            let (_, inter) = halves(rank, 2);
            for call in 0..6 {
                exchange(rank, inter, call, BLOCK);
                exchange(rank, inter, call, 300 << 10);
            }
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
