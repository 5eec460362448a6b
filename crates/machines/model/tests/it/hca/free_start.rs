//! A machine on which the start of a program is free.

use crate::common::*;
use device::{Access, Accounting, Effort, Node, ProgramCall};
use model::{CALL, Faults, MachineModel};

/// A call that makes or frees an object, or one that does not.
fn call(constructs: bool) -> ProgramCall {
    ProgramCall {
        name: "MPI_Win_create",
        constructs,
        ..ProgramCall::default()
    }
}

/// The time from a write of 100,000 bytes until the peer sees the last byte. Both ranks are in a
/// call.
fn write_in_call(name: &str, constructs: bool, is_free: bool) -> u64 {
    const LEN: usize = 100_000;
    let change = move |machine: MachineModel| match is_free {
        true => machine.with_free_start(),
        false => machine,
    };
    let body = move |mut node: model::ModelNode, rank: u32| {
        let wish = Wish {
            bytes: LEN,
            ..Wish::default()
        };
        let mut end = connect(&mut node, 1 - rank as usize, &wish);
        Accounting::enter(&mut node, call(constructs));
        if rank == 1 {
            return end.await_byte(&mut node, LEN - 1, 9);
        }
        end.fill(LEN - 1, &[9]);
        let before = node.turn().now();
        end.write(&mut node, 0, LEN, false);
        settle_down(&mut node);
        before
    };
    let times = play_on(&system(name), &[0, 1], Faults::default(), 1, change, body);
    times[1] - times[0]
}

#[test]
fn messages_of_a_call_that_constructs_are_free_and_no_others() {
    for name in ["qdr", "2xqdr", "edr", "mpich2-2003", "25gbe-roce"] {
        let usual = write_in_call(name, false, false);
        assert_eq!(write_in_call(name, true, false), usual, "{name}");
        assert_eq!(write_in_call(name, false, true), usual, "{name}");
        let free = write_in_call(name, true, true);
        // A post and the poll that finds the write are short calls; the other rank is in the middle
        // of one.
        assert!(
            free <= 4 * CALL && free * 50 < usual,
            "{name}: {free} of {usual}"
        );
    }
}

#[test]
fn work_in_a_call_that_constructs_is_a_short_call() {
    let times = play_on(
        &system("qdr"),
        &[0, 1],
        Faults::default(),
        1,
        MachineModel::with_free_start,
        |mut node, _| {
            let mut charged = |effort| {
                let before = node.turn().now();
                node.charge(effort);
                node.turn().now() - before
            };
            let outside = charged(Effort::Send);
            Accounting::enter(&mut node, call(true));
            let before = node.turn().now();
            node.charge(Effort::Send);
            let inside = node.turn().now() - before;
            Accounting::leave(&mut node);
            let before = node.turn().now();
            node.charge(Effort::Send);
            (outside, inside, node.turn().now() - before)
        },
    );
    for (outside, inside, after) in times {
        assert!(outside > CALL && inside == CALL && after == outside);
    }
}

#[test]
fn registrations_and_messages_out_of_band_are_free_in_every_call() {
    let heard = |is_free: bool| {
        let change = move |machine: MachineModel| match is_free {
            true => machine.with_free_start(),
            false => machine,
        };
        let body = |mut node: model::ModelNode, rank: u32| {
            let mut memory = vec![0u8; 1 << 20];
            let before = node.turn().now();
            let own = node.rail(0);
            // SAFETY: no peer learns the key of this region, so nobody accesses the memory.
            let region =
                unsafe { own.register(memory.as_mut_ptr(), memory.len(), Access::default()) };
            let registered = node.turn().now() - before;
            node.rail(0).deregister(region.unwrap()).unwrap();
            let before = node.turn().now();
            if rank == 0 {
                node.oob_send(1, &[7]).unwrap();
                return (registered, 0);
            }
            while node.oob_recv().unwrap().is_none() {
                node.wait(u64::MAX).unwrap();
            }
            (registered, node.turn().now() - before)
        };
        play_on(&system("qdr"), &[0, 1], Faults::default(), 1, change, body)
    };
    let [usual, free] = [false, true].map(heard);
    assert!(
        usual[0].0 > 10 * CALL && usual[1].1 > 100 * CALL,
        "{usual:?}"
    );
    assert!(free[0].0 == 0 && free[1].1 <= 4 * CALL, "{free:?}");
}
