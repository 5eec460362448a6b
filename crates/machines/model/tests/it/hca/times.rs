//! The modelled HCA takes the times that the cost formulas give.

use super::systems;
use crate::common::*;
use device::{Node, Operation};
use fabric::explain::{explain, total};
use fabric::limits::{limits, one_way};
use fabric::{Bytes, Costs, System};
use model::{CALL, Faults};

/// The time from one rank's post until the other rank notices the last byte, in picoseconds.
fn one_write(system: &System, hosts: [u32; 2], rail: usize, len: usize) -> u64 {
    let times = play(
        system,
        &hosts,
        Faults::default(),
        1,
        move |mut node, rank| {
            let bytes = len.max(64);
            let wish = Wish {
                rail,
                bytes,
                ..Wish::default()
            };
            let mut end = connect(&mut node, 1 - rank as usize, &wish);
            if rank == 1 {
                return end.await_byte(&mut node, len - 1, 9);
            }
            // The change to the rail is not part of the measured message.
            let inline = len <= node.rail(rail).attributes().inline;
            end.write(&mut node, 0, 1, false);
            settle_down(&mut node);
            end.fill(len - 1, &[9]);
            let before = node.turn().now();
            end.write(&mut node, 0, len, inline);
            settle_down(&mut node);
            before
        },
    );
    times[1] - times[0]
}

#[test]
fn one_message_takes_what_the_table_says() {
    for name in systems() {
        let system = system(&name);
        for rail in 0..system.rails.count() {
            let costs = Costs::of(&system, rail);
            for len in [8, 64, 200, 1000, 2048, 5000, 100_000] {
                let hops = system.most_hops();
                let table = explain(&costs, Bytes(len), fabric::Operation::Write, hops);
                let hosts = [0, system.nodes - 1];
                let measured = one_write(&system, hosts, rail as usize, len as usize);
                assert_eq!(
                    measured,
                    total(&table).picos(),
                    "{name}, rail {rail}, {len} bytes: {table:#?}"
                );
            }
        }
    }
}

#[test]
fn within_a_host_a_processor_copies_and_another_sees_it() {
    for name in systems() {
        let system = system(&name);
        let costs = Costs::of(&system, 0);
        for rail in 0..system.rails_of(1).len() {
            for len in [8, 64, 1000, 5000] {
                let bytes = Bytes(len);
                let copy = costs.copy(bytes).max(costs.memory_of_copy(bytes));
                let expected = CALL + (copy + costs.handover() + costs.poll()).picos();
                let measured = one_write(&system, [1, 1], rail, len as usize);
                let short = costs.copy(bytes).picos() + expected - copy.picos();
                let expected = if len <= 1024 { short } else { expected };
                assert_eq!(measured, expected, "{name}, rail {rail}, {len} bytes");
            }
        }
    }
}

/// The payload of `count` signaled writes in a row, in bytes per second.
fn rate(system: &System, len: usize, count: u64) -> f64 {
    let times = play(
        system,
        &[0, 1],
        Faults::default(),
        1,
        move |mut node, rank| {
            let wish = Wish {
                bytes: len,
                ..Wish::default()
            };
            let end = connect(&mut node, 1 - rank as usize, &wish);
            if rank == 1 {
                // The sender must be done before either rank ends.
                receive_oob(&mut node);
                return 0;
            }
            let before = node.turn().now();
            let operation = Operation::Write {
                to: end.remote(0),
                immediate: None,
            };
            for id in 0..count {
                end.post(&mut node, id, operation, &[end.slice(0, len)], false, true)
                    .unwrap();
            }
            for id in 0..count {
                assert_eq!(end.completion(&mut node).id, id);
            }
            let time = node.turn().now() - before;
            node.oob_send(1, &[]).unwrap();
            time
        },
    );
    (len as u64 * count) as f64 / times[0] as f64 * 1e12
}

#[test]
fn long_streams_reach_what_the_narrowest_resource_carries() {
    for name in systems() {
        let system = system(&name);
        let limit = one_way(&limits(&Costs::of(&system, 0), Bytes(1 << 20)))
            .unwrap()
            .one_way;
        let most = limit.as_mb_per_sec() * 1e6;
        for (len, count) in [(131_072, 120), (4 << 20, 4)] {
            let got = rate(&system, len, count);
            assert!(
                got < 1.001 * most && got > 0.97 * most,
                "{name}, {len} bytes: {got:.4e} of {most:.4e} B/s"
            );
        }
    }
}

#[test]
fn the_rate_of_a_queue_pair_bounds_it_where_the_link_is_faster() {
    let system = system("100gbe-tcp");
    let link = fabric::GbPerSec::of(2048, Costs::of(&system, 0).wire(2048 + 28));
    let paced = rate(&system, 1 << 20, 8) * 8.0 / 1e9;
    assert!((41.0..=42.0).contains(&paced), "{paced} Gb/s");
    assert!(link.unwrap().as_gb_per_sec() > 90.0);
}

#[test]
fn small_writes_of_a_queue_pair_follow_each_other_as_its_hca_takes_them() {
    for (name, one_by_one) in [("mpich2-2003", true), ("sdr", false), ("qdr", false)] {
        let system = system(name);
        assert_eq!(system.hca.one_by_one, one_by_one);
        let costs = Costs::of(&system, 0);
        let processor = costs.post() + costs.poll();
        let turn = costs.turn(Bytes(8), false).max(processor).as_nanos();
        // The difference removes the costs of the first and the last write.
        let time = |count| 8e9 * count as f64 / rate(&system, 8, count);
        let each = (time(100) - time(50)) / 50.0;
        assert!((each / turn - 1.0).abs() < 0.01, "{name}: {each} {turn}");
    }
}

/// The time of a send until the receiver's completion, or of a read until its last byte is seen.
fn one_other(system: &System, operation: fabric::Operation, len: usize) -> u64 {
    let furthest = system.nodes - 1;
    let times = play(
        system,
        &[0, furthest],
        Faults::default(),
        1,
        move |mut node, rank| {
            let wish = Wish {
                bytes: len.max(64),
                ..Wish::default()
            };
            let mut end = connect(&mut node, 1 - rank as usize, &wish);
            let inline = len <= node.rail(0).attributes().inline;
            match (operation, rank) {
                (fabric::Operation::Send, 0) => {
                    settle_down(&mut node);
                    let before = node.turn().now();
                    let send = Operation::Send { immediate: None };
                    end.post(&mut node, 7, send, &[end.slice(0, len)], inline, false)
                        .unwrap();
                    settle_down(&mut node);
                    before
                }
                (fabric::Operation::Send, _) => {
                    end.receive(&mut node, 3, &[end.slice(0, len)]).unwrap();
                    let got = end.completion(&mut node);
                    assert_eq!((got.id, got.bytes as usize), (3, len));
                    node.turn().now()
                }
                (_, 0) => {
                    settle_down(&mut node);
                    let before = node.turn().now();
                    let read = Operation::Read {
                        from: end.remote(0),
                    };
                    end.post(&mut node, 7, read, &[end.slice(0, len)], false, false)
                        .unwrap();
                    end.await_byte(&mut node, len - 1, 9) - before
                }
                _ => {
                    end.fill(len - 1, &[9]);
                    settle_down(&mut node);
                    settle_down(&mut node);
                    0
                }
            }
        },
    );
    times[0].abs_diff(times[1])
}

#[test]
fn sends_and_reads_take_what_the_table_says() {
    for name in systems() {
        let system = system(&name);
        let costs = Costs::of(&system, 0);
        for operation in [fabric::Operation::Send, fabric::Operation::Read] {
            for len in [8, 1000, 5000, 100_000] {
                let table = explain(&costs, Bytes(len), operation, system.most_hops());
                let measured = one_other(&system, operation, len as usize);
                let expected = total(&table).picos();
                assert_eq!(
                    measured, expected,
                    "{name}, {operation:?} of {len} bytes: {table:#?}"
                );
            }
        }
    }
}

#[test]
fn memory_costs_once_for_as_many_registrations_as_are_in_use_at_once() {
    let system = system("mpich2-2003");
    let len = 3 * 4096;
    let one = Costs::of(&system, 0).register(Bytes(len as u64)).picos();
    assert_eq!(one, 8_520_000 + 3 * 1_000_000);
    let times = play(&system, &[0], Faults::default(), 1, move |mut node, _| {
        let mut memory = vec![0u8; len];
        let mut in_use = |count: usize| {
            let before = node.turn().now();
            // SAFETY: the memory stays until it is deregistered, and nobody writes to it.
            let register = |_| unsafe {
                let device = node.rail(0);
                device.register(memory.as_mut_ptr(), len, device::Access::ALL)
            };
            let regions: Vec<_> = (0..count).map(register).collect();
            let time = node.turn().now() - before;
            for region in regions {
                node.rail(0).deregister(region.unwrap()).unwrap();
            }
            time
        };
        [in_use(1), in_use(1), in_use(3), in_use(2)]
    });
    assert_eq!(times[0], [one, 0, 2 * one, 0]);
}
