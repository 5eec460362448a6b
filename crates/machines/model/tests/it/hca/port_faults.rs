//! Faults of ports: the effect of each kind, the events of ports, and the states of queue pairs.

use crate::common::*;
use device::*;
use model::{Faults, ModelNode, PortFault, PortFaultKind, PortFaults};

const MICRO: u64 = 1_000_000;
const MILLI: u64 = 1_000 * MICRO;

/// A plan with short timers, so that a dead path is detected within 400 us.
fn plan(faults: &[PortFault]) -> Faults {
    Faults {
        timeout: 100 * MICRO,
        retries: 3,
        ports: PortFaults::of(faults).unwrap(),
        ..Faults::default()
    }
}

fn fault(host: u32, rail: u32, from: u64, until: u64, kind: PortFaultKind) -> PortFault {
    PortFault {
        host,
        rail,
        from,
        until,
        kind,
    }
}

/// Waits until the time `until`.
fn sleep_until(node: &mut ModelNode, until: u64) {
    while node.turn().now() < until {
        let left = until - node.turn().now();
        node.wait(left.div_ceil(1000)).unwrap();
    }
}

/// Rank 0 writes a byte to rank 1 at each of these times, over both rails. Returns the status of
/// each write by rail, and the bytes in rank 1's memory at the end.
fn writes(faults: Faults, times: &[u64]) -> (Vec<[Status; 2]>, Vec<[u8; 2]>) {
    let times = times.to_vec();
    let count = times.len();
    let seen = play(
        &system("2xqdr"),
        &[0, 1],
        faults,
        1,
        move |mut node, rank| {
            let peer = 1 - rank as usize;
            let mut ends = [0, 1].map(|rail| {
                let wish = Wish {
                    rail,
                    ..Wish::default()
                };
                connect(&mut node, peer, &wish)
            });
            let mut statuses = Vec::new();
            if rank == 0 {
                for (at, time) in times.iter().enumerate() {
                    sleep_until(&mut node, *time);
                    ends.iter_mut().for_each(|end| end.fill(at, &[1]));
                    for end in &ends {
                        end.write_signaled(&mut node, at, 1, true, true);
                    }
                    let done = ends.each_ref().map(|end| end.completion(&mut node).status);
                    statuses.push(done);
                }
            }
            synchronise(&mut node, peer);
            node.sync_memory();
            let found = (0..count).map(|at| ends.each_ref().map(|end| end.byte(at)));
            (statuses, found.collect::<Vec<_>>())
        },
    );
    (seen[0].0.clone(), seen[1].1.clone())
}

const GOOD: Status = Status::Success;
const DEAD: Status = Status::RetryExceeded;

#[test]
fn a_link_that_is_down_carries_nothing_from_one_moment_to_another() {
    for kind in [PortFaultKind::Down, PortFaultKind::Silent] {
        // A fault of the port at either end has the same effect.
        for host in [0, 1] {
            let faults = plan(&[fault(host, 1, 10 * MILLI, 20 * MILLI, kind)]);
            let (statuses, found) = writes(faults, &[9 * MILLI, 12 * MILLI, 21 * MILLI]);
            // A queue pair in the state ERROR does not recover by itself.
            assert_eq!(statuses[0], [GOOD, GOOD], "{kind:?}");
            assert_eq!(statuses[1], [GOOD, DEAD], "{kind:?}");
            assert_eq!(statuses[2], [GOOD, Status::Flushed], "{kind:?}");
            assert_eq!(found, [[1, 1], [1, 0], [1, 0]], "{kind:?}");
        }
    }
    // An outage that ends before the last retry only costs time.
    let short = plan(&[fault(
        0,
        1,
        10 * MILLI,
        10 * MILLI + 150 * MICRO,
        PortFaultKind::Down,
    )]);
    let (statuses, found) = writes(short, &[9 * MILLI, 10 * MILLI + 20 * MICRO]);
    assert_eq!(statuses, [[GOOD, GOOD]; 2]);
    assert_eq!(found, [[1, 1]; 2]);
}

#[test]
fn lost_acknowledgements_let_messages_arrive() {
    let kind = PortFaultKind::LostAcknowledgements;
    // The port of host 1 sends the acknowledgements; those of host 0 do not matter here.
    let (statuses, found) = writes(
        plan(&[fault(1, 0, 10 * MILLI, 20 * MILLI, kind)]),
        &[12 * MILLI],
    );
    assert_eq!(statuses, [[DEAD, GOOD]]);
    assert_eq!(found, [[1, 1]]);
    let (statuses, found) = writes(
        plan(&[fault(0, 0, 10 * MILLI, 20 * MILLI, kind)]),
        &[12 * MILLI],
    );
    assert_eq!((statuses, found), (vec![[GOOD, GOOD]], vec![[1, 1]]));
}

#[test]
fn a_flapping_link_is_down_for_half_of_each_period() {
    let kind = PortFaultKind::Flapping(2 * MILLI);
    let faults = plan(&[fault(1, 1, 10 * MILLI, 20 * MILLI, kind)]);
    // The link is up in the second half of the first period, and down in the first half of the
    // second.
    let (statuses, _) = writes(
        faults,
        &[11 * MILLI + 200 * MICRO, 12 * MILLI + 200 * MICRO],
    );
    assert_eq!(statuses, [[GOOD, GOOD], [GOOD, DEAD]]);
}

/// The time that four long writes of rank 0 take over rail 1, in picoseconds.
fn long_writes(faults: Faults) -> u64 {
    play(&system("2xqdr"), &[0, 1], faults, 1, |mut node, rank| {
        const LEN: usize = 1 << 20;
        let wish = Wish {
            rail: 1,
            bytes: LEN,
            ..Wish::default()
        };
        let peer = 1 - rank as usize;
        let end = connect(&mut node, peer, &wish);
        sleep_until(&mut node, 10 * MILLI);
        let before = node.turn().now();
        if rank == 0 {
            let to = end.remote(0);
            let write = Operation::Write {
                to,
                immediate: None,
            };
            for id in 0..4 {
                end.post(&mut node, id, write, &[end.slice(0, LEN)], false, true)
                    .unwrap();
            }
            for _ in 0..4 {
                assert_eq!(end.completion(&mut node).status, GOOD);
            }
        }
        let time = node.turn().now() - before;
        synchronise(&mut node, peer);
        time
    })
    .swap_remove(0)
}

#[test]
fn a_slow_link_carries_its_share_in_both_directions() {
    // The link carries 4 GB/s, the slot 3.4 GB/s; a tenth of the link is 0.4 GB/s.
    let link = 4.0 * 1024.0 * 1024.0 / 4e9 * 1e12 * (2048.0 + 28.0) / 2048.0;
    for (host, rail, from, slow) in [
        (0, 1, 0, true),
        (1, 1, 0, true),
        (0, 0, 0, false),
        (1, 1, 900 * MILLI, false),
    ] {
        let until = from + 900 * MILLI;
        let one = fault(host, rail, from, until, PortFaultKind::Rate(100));
        let time = long_writes(plan(&[one])) as f64;
        let wanted = if slow {
            10.0 * link
        } else {
            4.0 * 1024.0 * 1024.0 / 3.39e9 * 1e12
        };
        let share = time / wanted;
        assert!(
            (0.98..1.03).contains(&share),
            "host {host}, rail {rail}: {share}"
        );
    }
}

/// The port events of each rank with their times (in microseconds), while both ranks wait.
fn events(name: &str, faults: Faults) -> Vec<Vec<(u64, usize, PortChange)>> {
    play(&system(name), &[0, 1], faults, 1, |mut node, _| {
        let mut seen = Vec::new();
        while node.turn().now() < 30 * MILLI {
            let left = 30 * MILLI - node.turn().now();
            node.wait(left.div_ceil(1000)).unwrap();
            for event in node.port_events() {
                seen.push((node.turn().now() / MICRO, event.rail, event.change));
            }
        }
        seen
    })
}

#[test]
fn ranks_of_a_host_get_the_events_of_its_ports_at_their_times() {
    use PortChange::{Down, Up};
    let faults = plan(&[
        fault(1, 0, 2 * MILLI, 5 * MILLI, PortFaultKind::Down),
        // The faults overlap: the port is up again only when both have ended.
        fault(1, 0, 4 * MILLI, 6 * MILLI, PortFaultKind::Down),
        fault(
            0,
            1,
            7 * MILLI,
            10 * MILLI,
            PortFaultKind::Flapping(2 * MILLI),
        ),
        fault(0, 0, 11 * MILLI, 12 * MILLI, PortFaultKind::Silent),
        fault(0, 0, 13 * MILLI, 14 * MILLI, PortFaultKind::Rate(1)),
        fault(1, 1, 20 * MILLI, u64::MAX, PortFaultKind::Down),
    ]);
    let seen = events("2xqdr", faults);
    let flaps = [
        (7_000, 1, Down),
        (8_000, 1, Up),
        (9_000, 1, Down),
        (10_000, 1, Up),
    ];
    assert_eq!(seen[0], flaps);
    let downs = [(2_000, 0, Down), (6_000, 0, Up), (20_000, 1, Down)];
    assert_eq!(seen[1], downs);
}

#[test]
fn a_rank_that_takes_no_events_for_long_finds_the_last_ones() {
    use PortChange::{Down, Up};
    let kind = PortFaultKind::Flapping(10 * MICRO);
    let faults = plan(&[
        fault(0, 0, MILLI, 9 * MILLI + 5 * MICRO, kind),
        fault(0, 1, 3 * MILLI, u64::MAX, PortFaultKind::Down),
    ]);
    let seen = play(&system("2xqdr"), &[0], faults, 1, |mut node, _| {
        sleep_until(&mut node, 20 * MILLI);
        let events = node.port_events();
        (events, node.port_events().len())
    });
    let of = |rail, change| PortEvent { rail, change };
    let last = vec![of(1, Down), of(0, Down), of(0, Up)];
    assert_eq!(seen[0], (last, 0));
}

#[test]
fn one_rail_gets_no_event_but_a_wait_ends_when_its_paths_change() {
    let run = |faults| {
        play(&system("qdr"), &[0, 1], faults, 1, |mut node, _| {
            let mut times = Vec::new();
            while times.last().is_none_or(|at| *at < MILLI) {
                let left = MILLI - node.turn().now();
                node.wait(left / 1000).unwrap();
                times.push(node.turn().now());
            }
            (node.port_events().len(), times)
        })
    };
    for kind in [PortFaultKind::Down, PortFaultKind::Silent] {
        let dark = plan(&[fault(0, 0, 5 * MICRO, 9 * MICRO, kind)]);
        let seen = (0, vec![5 * MICRO, 9 * MICRO, MILLI]);
        assert_eq!(run(dark), [seen.clone(), seen]);
    }
    let none = (0, vec![MILLI]);
    assert_eq!(run(Faults::default()), [none.clone(), none]);
}

#[test]
fn messages_out_of_band_wait_for_a_path_and_ranks_know_when_there_is_none() {
    let dark = |rail, from, until| fault(1, rail, from, until, PortFaultKind::Silent);
    let faults = plan(&[
        dark(0, MILLI, 5 * MILLI),
        dark(1, 2 * MILLI, 7 * MILLI),
        fault(0, 0, 20 * MILLI, u64::MAX, PortFaultKind::Down),
        dark(1, 21 * MILLI, u64::MAX),
    ]);
    let heard = play(&system("2xqdr"), &[0, 1], faults, 1, |mut node, rank| {
        let peer = 1 - rank as usize;
        assert!(node.knows_cuts());
        let mut heard = Vec::new();
        // Rank 0 sends at these times, and rank 1 receives.
        for at in [1500 * MICRO, 3 * MILLI, 4 * MILLI, 6 * MILLI, 22 * MILLI] {
            sleep_until(&mut node, at);
            let cut = node.signs(peer).cut;
            if rank == 0 {
                node.oob_send(1, &[at as u8]).unwrap();
                heard.push(cut.unwrap_or(0) * 1000);
            }
        }
        sleep_until(&mut node, 30 * MILLI);
        while rank == 1 && node.oob_recv().unwrap().is_some() {
            heard.push(1);
        }
        assert_eq!(
            node.signs(peer).last.is_some(),
            node.signs(peer).cut.is_none()
        );
        heard
    });
    // The second path ends at 2 ms, and the first is back at 5 ms.
    let cuts = vec![0, 2 * MILLI, 2 * MILLI, 0, 21 * MILLI];
    assert_eq!(heard, [cuts, vec![1; 4]], "the last one never arrives");
}

#[test]
fn port_events_are_no_progress() {
    let faults = plan(&[fault(0, 0, MILLI, u64::MAX, PortFaultKind::Flapping(MILLI))]);
    // Both ranks wait for ever, so the flapping ends with the deadlock, and not with the test's
    // limit.
    let ends = play(&system("2xqdr"), &[0, 1], faults, 1, |mut node, _| {
        let mut waits = 0;
        while node.wait(u64::MAX).is_ok() {
            waits += 1;
        }
        waits
    });
    assert!(ends.iter().all(|waits| *waits < 3), "{ends:?}");
}

#[test]
fn probes_with_back_off_are_no_progress() {
    // Rank 0 probes the dead rail for ever; rank 1 waits for a message that nobody sends. The
    // probes are no progress, so the job is in a deadlock although they follow each other.
    let down = plan(&[fault(1, 1, 0, u64::MAX, PortFaultKind::Silent)]);
    let ends = play(&system("2xqdr"), &[0, 1], down, 1, |mut node, rank| {
        let wish = Wish {
            rail: 1,
            ..Wish::default()
        };
        let end = connect(&mut node, 1 - rank as usize, &wish);
        if rank == 1 {
            return (node.wait(u64::MAX).is_err(), node.turn().now());
        }
        node.rail(1).set_probing(end.qp, true).unwrap();
        let mut pause = 1_000;
        loop {
            end.write_signaled(&mut node, 0, 8, true, true);
            let mut answer = Ok(());
            while answer.is_ok() && end.poll(&mut node).is_empty() {
                answer = node.wait(u64::MAX);
            }
            let answer = answer.and_then(|()| node.wait_idle(pause));
            if answer.is_err() {
                return (true, node.turn().now());
            }
            pause *= 2;
            node.rail(1).modify(end.qp, Ending::Error).unwrap();
            node.rail(1).modify(end.qp, Ending::Reset).unwrap();
            node.rail(1).connect(end.qp, Some(end.peer)).unwrap();
        }
    });
    assert!(ends[0].0 && ends[1].0);
    // The deadlock is found within the first probe: 400 us after the connection.
    assert!(ends[0].1 < 3 * MILLI, "{ends:?}");
}

#[test]
fn probes_go_on_while_another_rank_works() {
    // While rank 1 computes until 20 ms, rank 0 finds that the path works again.
    let down = plan(&[fault(1, 1, 0, 5 * MILLI, PortFaultKind::Silent)]);
    let ends = play(&system("2xqdr"), &[0, 1], down, 1, |mut node, rank| {
        let wish = Wish {
            rail: 1,
            ..Wish::default()
        };
        let peer = 1 - rank as usize;
        let mut end = connect(&mut node, peer, &wish);
        if rank == 1 {
            sleep_until(&mut node, 20 * MILLI);
            synchronise(&mut node, peer);
            return (0, node.turn().now());
        }
        end.fill(0, &[1]);
        node.rail(1).set_probing(end.qp, true).unwrap();
        let mut tries = 1;
        loop {
            end.write_signaled(&mut node, 0, 8, true, true);
            if end.completion(&mut node).status == GOOD {
                break;
            }
            tries += 1;
            node.wait_idle(100_000).unwrap();
            node.rail(1).modify(end.qp, Ending::Reset).unwrap();
            node.rail(1).connect(end.qp, Some(end.peer)).unwrap();
        }
        let back = node.turn().now();
        node.rail(1).set_probing(end.qp, false).unwrap();
        synchronise(&mut node, peer);
        (tries, back)
    });
    let (tries, back) = ends[0];
    assert!(tries > 2, "{tries}");
    assert!((5 * MILLI..7 * MILLI).contains(&back), "{back}");
}

/// A queue pair with a shared receive queue, connected with an equal one of the peer.
fn shared(node: &mut ModelNode, peer: usize) -> (End, Srq) {
    let srq = node.rail(0).create_srq(16).unwrap();
    let wish = Wish {
        srq: Some(srq),
        ..Wish::default()
    };
    (connect(node, peer, &wish), srq)
}

#[test]
fn after_error_nothing_is_taken_from_a_shared_queue_and_nothing_is_written() {
    let left = play(&system("qdr"), &[0, 1], plan(&[]), 1, |mut node, rank| {
        let peer = 1 - rank as usize;
        let (end, srq) = shared(&mut node, peer);
        if rank == 0 {
            // A stream of writes and sends goes on while the peer takes its queue pair to ERROR.
            for id in 0..40u64 {
                let to = end.remote(0);
                let send = Operation::Send { immediate: None };
                let write = Operation::Write {
                    to,
                    immediate: None,
                };
                let what = if id % 2 == 0 { write } else { send };
                end.post(&mut node, id, what, &[end.slice(0, 2048)], false, false)
                    .unwrap();
            }
            // The last request fails: its receiver is gone.
            assert_eq!(end.completion(&mut node).status, DEAD);
            synchronise(&mut node, peer);
            return 0;
        }
        for id in 0..16 {
            // SAFETY: the memory stays with the end.
            unsafe {
                let queue = ReceiveQueue::Shared(srq);
                node.rail(0)
                    .post_receive(queue, id, &[end.slice(2048, 2048)])
                    .unwrap();
            }
        }
        let mut taken = 0;
        while taken < 3 {
            let found = end.poll(&mut node).len();
            taken += found;
            if found == 0 {
                node.wait(u64::MAX).unwrap();
            }
        }
        node.rail(0).modify(end.qp, Ending::Error).unwrap();
        while !node.rail(0).is_drained(end.qp).unwrap() {
            node.wait(u64::MAX).unwrap();
        }
        taken += end.poll(&mut node).len();
        node.sync_memory();
        // Nothing changes from now on, whatever still arrives.
        let content = end.memory.to_vec();
        synchronise(&mut node, peer);
        node.sync_memory();
        assert_eq!(end.memory.to_vec(), content);
        assert!(end.poll(&mut node).is_empty());
        // A second queue pair would find all receives that are left.
        16 - taken
    });
    assert!((1..=13).contains(&left[1]), "{left:?}");
}

#[test]
fn a_reset_connection_drops_packets_of_its_earlier_life_and_works_anew() {
    // Packets are up to 3 ms late: those of the first epoch arrive in the middle of the second.
    for seed in 0..20 {
        let faults = Faults {
            late: 500_000,
            latest: 3 * MILLI,
            ..plan(&[])
        };
        let faults = Faults {
            timeout: 10 * MILLI,
            ..faults
        };
        play(
            &system("qdr"),
            &[0, 1],
            faults,
            seed,
            move |mut node, rank| {
                let peer = 1 - rank as usize;
                let mut end = connect(&mut node, peer, &Wish::default());
                for life in 1..6u8 {
                    if rank == 0 {
                        // Two epochs post more than the send queue holds: each begins with an empty
                        // queue.
                        end.fill(0, &[life; 64]);
                        for _ in 0..100 {
                            end.write_signaled(&mut node, 0, 64, true, true);
                        }
                        end.write(&mut node, 64 * usize::from(life), 1, true);
                    }
                    // Some requests are in flight, and some completions are not polled.
                    sleep_until_next(&mut node, 200 * MICRO);
                    node.rail(0).modify(end.qp, Ending::Error).unwrap();
                    while !node.rail(0).is_drained(end.qp).unwrap() {
                        node.wait(u64::MAX).unwrap();
                    }
                    // Both ends are in the state ERROR before either connects again.
                    synchronise(&mut node, peer);
                    end.fill(0, &[0; 64]);
                    node.rail(0).modify(end.qp, Ending::Reset).unwrap();
                    node.rail(0).connect(end.qp, Some(end.peer)).unwrap();
                    synchronise(&mut node, peer);
                    // Packets that are left of the last epoch have no effect.
                    sleep_until_next(&mut node, 5 * MILLI);
                    while !end.poll(&mut node).is_empty() {}
                    node.sync_memory();
                    assert!(
                        rank == 0 || (0..64).all(|at| end.byte(at) == 0),
                        "seed {seed}, life {life}"
                    );
                    if rank == 0 {
                        end.fill(1000, &[life]);
                        end.write_signaled(&mut node, 1000, 1, true, true);
                        assert_eq!(end.completion(&mut node).status, GOOD, "seed {seed}");
                    }
                    synchronise(&mut node, peer);
                    node.sync_memory();
                    assert!(rank == 0 || end.byte(1000) == life, "seed {seed}");
                }
            },
        );
    }
}

#[test]
fn the_timer_of_an_earlier_life_does_not_stand_for_that_of_the_next() {
    let dead = plan(&[fault(1, 0, 10 * MILLI, 15 * MILLI, PortFaultKind::Silent)]);
    play(&system("qdr"), &[0, 1], dead, 1, |mut node, rank| {
        let peer = 1 - rank as usize;
        let end = connect(&mut node, peer, &Wish::default());
        if rank == 0 {
            sleep_until(&mut node, 11 * MILLI);
            end.write_signaled(&mut node, 0, 8, true, true);
            // The packet is lost, and its timer runs.
            sleep_until_next(&mut node, 50 * MICRO);
            node.rail(0).modify(end.qp, Ending::Error).unwrap();
            assert_eq!(end.completion(&mut node).status, Status::Flushed);
            node.rail(0).modify(end.qp, Ending::Reset).unwrap();
            node.rail(0).connect(end.qp, Some(end.peer)).unwrap();
            let before = node.turn().now();
            end.write_signaled(&mut node, 0, 8, true, true);
            assert_eq!(end.completion(&mut node).status, DEAD);
            // It takes four times the timeout, all in this epoch.
            let time = node.turn().now() - before;
            assert!((400 * MICRO..420 * MICRO).contains(&time), "{time}");
        }
        synchronise(&mut node, peer);
    });
}

fn sleep_until_next(node: &mut ModelNode, time: u64) {
    let until = node.turn().now() + time;
    sleep_until(node, until);
}

#[test]
fn a_receive_posted_in_error_is_flushed() {
    play(&system("qdr"), &[0, 1], plan(&[]), 1, |mut node, rank| {
        let end = connect(&mut node, 1 - rank as usize, &Wish::default());
        node.rail(0).modify(end.qp, Ending::Error).unwrap();
        end.receive(&mut node, 7, &[end.slice(0, 8)]).unwrap();
        let one = end.completion(&mut node);
        assert_eq!((one.id, one.status), (7, Status::Flushed));
        assert!(node.rail(0).is_drained(end.qp).unwrap());
    });
}
