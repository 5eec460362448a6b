//! Ranks that are processes see the same times as coroutines, to the picosecond, without access to
//! each other's memory.

use std::os::fd::OwnedFd;

use crate::common::*;
use device::*;
use fabric::System;
use model::{Faults, MachineModel, ModelNode};
use sim::Time;
use sim::memory::Memory;
use sim::process::{Participant, join};

/// Does writes, reads, sends and an atomic, and checks their results; returns the time at the end.
fn dialogue(node: &mut ModelNode, rank: u32) -> Time {
    let wish = Wish {
        bytes: 60_000,
        ..Wish::default()
    };
    let mut end = connect(node, 1 - rank as usize, &wish);
    end.receive(node, 50, &[end.slice(50_000, 5000)]).unwrap();
    for round in 1..=20u8 {
        let (mine, len) = (rank as usize * 20_000, 1 + usize::from(round) * 900);
        let (theirs, last) = (20_000 - mine, len - 1);
        if rank == 1 {
            end.await_byte(node, theirs + last, round);
            assert!((0..len).all(|at| end.byte(theirs + at) == round));
        }
        end.fill(mine, &[round; 20_000]);
        end.write_signaled(node, mine, len, false, true);
        assert_eq!(end.completion(node).status, Status::Success);
        if rank == 0 {
            end.await_byte(node, theirs + last, round);
        }
    }
    let read = Operation::Read {
        from: end.remote(20_000 * (1 - rank as usize) + 10_000),
    };
    end.post(node, 1, read, &[end.slice(40_000, 10_000)], false, true)
        .unwrap();
    assert_eq!(end.completion(node).of, Completed::Read);
    node.sync_memory();
    assert!((0..10_000).all(|at| end.byte(40_000 + at) == 20));
    let add = Operation::FetchAndAdd {
        at: end.remote(55_000),
        add: 1,
    };
    end.post(node, 2, add, &[end.slice(55_008, 8)], false, true)
        .unwrap();
    assert_eq!(end.completion(node).of, Completed::Atomic);
    end.fill(56_000, &[8; 3000]);
    let send = Operation::Send { immediate: Some(5) };
    end.post(node, 3, send, &[end.slice(56_000, 3000)], false, false)
        .unwrap();
    let got = end.completion(node);
    assert_eq!((got.id, got.immediate, got.bytes), (50, Some(5), 3000));
    node.sync_memory();
    assert_eq!((end.byte(50_000), end.byte(52_999)), (8, 8));
    assert_eq!(end.byte(55_000), 1);
    let time = node.turn().now();
    // The peer's pending requests go first.
    node.oob_send(1 - rank as usize, b"done").unwrap();
    receive_oob(node);
    time
}

fn enter(file: &OwnedFd, system: &System, rank: u32) -> ModelNode {
    let place = Participant {
        rank,
        ranks: 2,
        seed: 1,
        stuck: |_| {},
    };
    let turn = join(file, place, |memory| {
        MachineModel::new(memory, system, &[0, 1], Faults::default())
    });
    ModelNode::new(turn.unwrap())
}

#[test]
fn processes_see_what_coroutines_see() {
    let system = system("qdr");
    let expected = play(&system, &[0, 1], Faults::default(), 1, |mut node, rank| {
        dialogue(&mut node, rank)
    });
    let file: OwnedFd = memory_file::of_length("test", Memory::BYTES).unwrap();
    // SAFETY: the child runs the dialogue only, and exits without the parent's destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let time = std::panic::catch_unwind(|| {
            let mut node = enter(&file, &system, 1);
            dialogue(&mut node, 1)
        });
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(i32::from(time.ok() != Some(expected[1]))) };
    }
    let mut node = enter(&file, &system, 0);
    assert_eq!(dialogue(&mut node, 0), expected[0]);
    drop(node);
    let mut status = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
}
