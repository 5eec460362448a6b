//! Under all faults, a reliable connection delivers each message once and in order, or reports a
//! failure; and one seed always gives the same run.

use crate::common::*;
use device::*;
use model::{Faults, PortFault, PortFaultKind, PortFaults};
use sim::Random;

const MILLI: u64 = 1_000_000_000;

/// Exchanges writes, sends, reads and atomics of all sizes, mixed, in both directions at once.
/// Returns the time at which each rank was done.
// Over 80 lines: one scenario, whose parts share most of its variables.
fn storm(faults: Faults, seed: u64, count: u64) -> Vec<u64> {
    play(
        &system("2xqdr"),
        &[0, 1],
        faults,
        seed,
        move |mut node, rank| {
            const HALF: usize = 32 << 10;
            // The offset of the buffer that receives a message of the peer.
            let slot = |number: u64| 2 * HALF + 12_000 + number as usize % 32 * 9001;
            let wish = Wish {
                bytes: slot(31) + 9001,
                depth: 64,
                rail: (seed % 2) as usize,
                ..Wish::default()
            };
            let mut end = connect(&mut node, 1 - rank as usize, &wish);
            // The peer writes to the first part of the memory; this rank sends and writes from the
            // second; reads and receives go to the third. The contents of a message follow from its
            // number.
            let byte = |rank: u32, id: u64, at: usize| {
                (id * 31 + at as u64 * 7 + u64::from(rank) * 101) as u8
            };
            let size = |rank: u32, id: u64| {
                let mut random = Random::new(seed ^ id << 8 ^ u64::from(rank));
                let most = [16, 300, 3000, 9000][random.below(4) as usize];
                1 + random.below(most) as usize
            };
            for id in 0..32 {
                end.receive(&mut node, 1000 + id, &[end.slice(slot(id), 9001)])
                    .unwrap();
            }
            let (mut posted, mut done, mut received) = (0, 0, 0);
            let (me, them) = (rank, 1 - rank);
            let mut adds = 0;
            while done < count || received < count.div_ceil(3) {
                // One request of each kind is in flight at a time, so that its effect can be
                // checked.
                if posted == done && posted < count {
                    let len = size(me, posted);
                    let content: Vec<u8> = (0..len).map(|at| byte(me, posted, at)).collect();
                    end.fill(HALF, &content);
                    let local = [end.slice(HALF, len)];
                    match posted % 3 {
                        0 => {
                            let send = Operation::Send {
                                immediate: Some(posted as u32),
                            };
                            end.post(&mut node, posted, send, &local, false, true)
                                .unwrap();
                        }
                        1 => {
                            let to = end.remote(8);
                            let write = Operation::Write {
                                to,
                                immediate: None,
                            };
                            // An unsignaled write, another that overwrites it, and a read of
                            // the result.
                            end.post(
                                &mut node,
                                posted,
                                write,
                                &[end.slice(HALF, 1)],
                                false,
                                false,
                            )
                            .unwrap();
                            end.post(&mut node, posted, write, &local, false, false)
                                .unwrap();
                            let back = Operation::Read {
                                from: end.remote(8),
                            };
                            end.post(
                                &mut node,
                                posted,
                                back,
                                &[end.slice(2 * HALF, len)],
                                false,
                                true,
                            )
                            .unwrap();
                        }
                        _ => {
                            let add = Operation::FetchAndAdd {
                                at: end.remote(0),
                                add: 1,
                            };
                            end.post(
                                &mut node,
                                posted,
                                add,
                                &[end.slice(2 * HALF, 8)],
                                false,
                                true,
                            )
                            .unwrap();
                        }
                    }
                    posted += 1;
                }
                let found = end.poll(&mut node);
                if found.is_empty() {
                    node.wait(u64::MAX).unwrap();
                }
                for one in found {
                    assert_eq!(one.status, Status::Success, "seed {seed}");
                    node.sync_memory();
                    match one.of {
                        Completed::Receive => {
                            let id = 3 * received;
                            assert_eq!(
                                one.immediate,
                                Some(id as u32),
                                "seed {seed}: lost, doubled or overtaken"
                            );
                            let len = size(them, id);
                            assert_eq!(one.bytes as usize, len);
                            assert!(
                                (0..len)
                                    .all(|at| end.byte(slot(received) + at) == byte(them, id, at)),
                                "seed {seed}"
                            );
                            received += 1;
                            end.receive(&mut node, 0, &[end.slice(slot(received - 1), 9001)])
                                .unwrap();
                        }
                        Completed::Read => {
                            assert_eq!(one.id, done);
                            let len = size(me, done);
                            assert!(
                                (0..len).all(|at| end.byte(2 * HALF + at) == byte(me, done, at)),
                                "seed {seed}"
                            );
                            done += 1;
                        }
                        Completed::Atomic => {
                            let old = u64::from_ne_bytes(
                                end.memory[2 * HALF..2 * HALF + 8].try_into().unwrap(),
                            );
                            assert_eq!(old, adds, "seed {seed}: an atomic was lost or done twice");
                            adds += 1;
                            done += 1;
                        }
                        _ => {
                            assert_eq!(one.id, done);
                            done += 1;
                        }
                    }
                }
            }
            let end = node.turn().now();
            node.oob_send(1 - rank as usize, b"done").unwrap();
            receive_oob(&mut node);
            end
        },
    )
}

#[test]
fn nothing_is_lost_doubled_or_overtaken() {
    let plans = [
        Faults::default(),
        Faults {
            loss: 20_000,
            ..Faults::default()
        },
        Faults {
            loss: 100_000,
            retries: 50,
            ..Faults::default()
        },
        Faults {
            late: 300_000,
            latest: 5_000_000,
            ..Faults::default()
        },
        Faults {
            scatter: Some(3_000_000),
            ..Faults::default()
        },
        Faults {
            loss: 10_000,
            late: 100_000,
            latest: 50_000_000,
            scatter: Some(100_000_000),
            ..Faults::default()
        },
        Faults {
            slow: Some((1, 1000)),
            ..Faults::default()
        },
    ];
    for faults in plans {
        for seed in 0..15 {
            storm(faults, seed, 60);
        }
    }
}

#[test]
fn the_same_seed_goes_wrong_in_the_same_way() {
    let faults = Faults {
        loss: 30_000,
        late: 200_000,
        latest: 9_000_000,
        ..Faults::default()
    };
    assert_eq!(storm(faults, 5, 60), storm(faults, 5, 60));
    assert_ne!(storm(faults, 5, 60), storm(faults, 7, 60));
}

#[test]
fn losses_take_time() {
    let calm = storm(Faults::default(), 1, 60);
    let rough = storm(
        Faults {
            loss: 50_000,
            ..Faults::default()
        },
        1,
        60,
    );
    let slow = storm(
        Faults {
            slow: Some((0, 300)),
            ..Faults::default()
        },
        1,
        60,
    );
    // A loss at the end of a message costs a timeout of 67 ms.
    assert!(rough[0] > calm[0] + 67 * MILLI, "{calm:?} {rough:?}");
    assert!(slow[0] > calm[0], "{calm:?} {slow:?}");
}

#[test]
fn a_link_comes_back_or_is_given_up() {
    let outage = |until| Faults {
        ports: PortFaults::of(&[PortFault {
            host: 1,
            rail: 0,
            from: 2 * MILLI,
            until: until * MILLI,
            kind: PortFaultKind::Down,
        }])
        .unwrap(),
        ..Faults::default()
    };
    let statuses = |faults| {
        play(&system("2xqdr"), &[0, 1], faults, 1, |mut node, rank| {
            let mut ends = [0, 1].map(|rail| {
                connect(
                    &mut node,
                    1 - rank as usize,
                    &Wish {
                        rail,
                        ..Wish::default()
                    },
                )
            });
            for _ in 0..3 {
                settle_down(&mut node);
            }
            let mut statuses = Vec::new();
            if rank == 0 {
                for end in &mut ends {
                    end.fill(0, &[1]);
                    end.write_signaled(&mut node, 0, 8, true, true);
                    statuses.push(end.completion(&mut node).status);
                }
            } else {
                // The other rail always works.
                ends[1].await_byte(&mut node, 0, 1);
            }
            node.oob_send(1 - rank as usize, b"done").unwrap();
            receive_oob(&mut node);
            statuses
        })[0]
            .clone()
    };
    assert_eq!(statuses(outage(300)), [Status::Success; 2]);
    assert_eq!(
        statuses(outage(900)),
        [Status::RetryExceeded, Status::Success]
    );
}

#[test]
fn a_queue_pair_that_breaks_says_so_for_each_request() {
    let faults = Faults {
        breaks: 60_000,
        ..Faults::default()
    };
    let seen = play(&system("qdr"), &[0, 1], faults, 3, |mut node, rank| {
        let end = connect(&mut node, 1 - rank as usize, &Wish::default());
        let mut statuses = Vec::new();
        if rank == 0 {
            for _ in 0..50 {
                end.write_signaled(&mut node, 0, 8, true, true);
            }
            for _ in 0..50 {
                statuses.push(end.completion(&mut node).status);
            }
        }
        node.oob_send(1 - rank as usize, b"done").unwrap();
        receive_oob(&mut node);
        statuses
    });
    let good = seen[0]
        .iter()
        .take_while(|&&status| status == Status::Success)
        .count();
    assert!((1..49).contains(&good), "{good}");
    assert_eq!(seen[0][good], Status::LocalQpOperation);
    assert!(
        seen[0][good + 1..]
            .iter()
            .all(|&status| status == Status::Flushed)
    );
}

#[test]
fn scattered_bytes_come_in_any_order_before_the_completion() {
    let faults = Faults {
        scatter: Some(2_000_000),
        ..Faults::default()
    };
    let answers = play(&system("qdr"), &[0, 1], faults, 1, |mut node, rank| {
        let mut end = connect(&mut node, 1 - rank as usize, &Wish::default());
        assert_eq!(node.rail(0).attributes().placement, Placement::Completion);
        if rank == 0 {
            end.fill(0, &[1; 2000]);
            let write = Operation::Write {
                to: end.remote(0),
                immediate: Some(1),
            };
            settle_down(&mut node);
            end.post(&mut node, 1, write, &[end.slice(0, 2000)], false, false)
                .unwrap();
            settle_down(&mut node);
            return false;
        }
        end.receive(&mut node, 1, &[]).unwrap();
        let mut last_came_first = false;
        loop {
            node.sync_memory();
            let there = (0..2000).filter(|&at| end.byte(at) == 1).count();
            last_came_first |= end.byte(1999) == 1 && there < 2000;
            if end.poll(&mut node).len() == 1 {
                node.sync_memory();
                assert!((0..2000).all(|at| end.byte(at) == 1));
                return last_came_first;
            }
            node.wait(50).unwrap();
        }
    });
    assert!(answers[1], "the last byte says nothing");
}
