//! What the InfiniBand specification says of verbs holds on the modelled HCA.

mod common;

use common::*;
use device::model::{Faults, ModelNode};
use device::*;

/// Two ranks on QDR, connected; each runs its body.
fn pair<R: 'static>(
    wish: Wish,
    faults: Faults,
    body: impl Fn(&mut ModelNode, &mut End, u32) -> R + 'static,
) -> Vec<R> {
    play(&system("qdr"), &[0, 1], faults, 1, move |mut node, rank| {
        let mut end = connect(&mut node, 1 - rank as usize, &wish);
        let answer = body(&mut node, &mut end, rank);
        // Nobody leaves before the other is done.
        node.tell(1 - rank as usize, b"done").unwrap();
        hear(&mut node);
        answer
    })
}

const SEND: Operation = Operation::Send { immediate: None };

fn statuses(completions: &[Completion]) -> Vec<(u64, Status)> {
    let pairs = completions.iter().map(|one| (one.id, one.status));
    pairs.collect()
}

#[test]
fn only_signaled_requests_complete_and_in_order() {
    pair(Wish::default(), Faults::default(), |node, end, rank| {
        if rank == 1 {
            return;
        }
        let write = Operation::Write {
            to: end.remote(0),
            immediate: None,
        };
        for id in 0..12 {
            let local = [end.slice(0, 8)];
            end.post(node, id, write, &local, id % 2 == 0, id % 4 == 3)
                .unwrap();
        }
        settle_down(node);
        let done = end.poll(node);
        assert_eq!(
            statuses(&done),
            [
                (3, Status::Success),
                (7, Status::Success),
                (11, Status::Success)
            ]
        );
        assert!(
            done.iter()
                .all(|one| one.of == Completed::Write && one.qp == end.qp)
        );
    });
}

#[test]
fn a_full_queue_takes_more_only_when_completions_have_been_taken() {
    let wish = Wish {
        depth: 4,
        ..Wish::default()
    };
    pair(wish, Faults::default(), |node, end, rank| {
        if rank == 1 {
            return;
        }
        let write = Operation::Write {
            to: end.remote(0),
            immediate: None,
        };
        let post = |node: &mut ModelNode, id, signaled| {
            end.post(node, id, write, &[end.slice(0, 8)], true, signaled)
        };
        for id in 0..4 {
            post(node, id, id == 2).unwrap();
        }
        settle_down(node);
        assert!(matches!(post(node, 4, false), Err(Error::Full)));
        assert_eq!(end.completion(node).id, 2);
        for id in 5..8 {
            post(node, id, false).unwrap();
        }
        assert!(matches!(post(node, 8, false), Err(Error::Full)));
    });
}

#[test]
fn bytes_land_where_they_should() {
    pair(
        Wish {
            bytes: 20_000,
            ..Wish::default()
        },
        Faults::default(),
        |node, end, rank| {
            for at in 0..end.memory.len() {
                end.fill(at, &[if rank == 0 { at as u8 } else { 255 }]);
            }
            if rank == 0 {
                let write = Operation::Write {
                    to: end.remote(3),
                    immediate: None,
                };
                let local = [end.slice(10, 5), end.slice(100, 0), end.slice(1000, 9000)];
                end.post(node, 1, write, &local, false, true).unwrap();
                end.completion(node);
                // Another device's read of the same.
                let read = Operation::Read {
                    from: end.remote(3),
                };
                let local = [end.slice(12_000, 3000), end.slice(16_000, 3000)];
                end.post(node, 2, read, &local, false, true).unwrap();
                let done = end.completion(node);
                assert_eq!((done.of, done.bytes), (Completed::Read, 6000));
                node.look();
                let expected = |at: usize| {
                    if at < 5 {
                        10 + at as u8
                    } else {
                        (1000 + at - 5) as u8
                    }
                };
                for at in 0..3000 {
                    assert_eq!(end.byte(12_000 + at), expected(at));
                    assert_eq!(end.byte(16_000 + at), expected(3000 + at));
                }
            } else {
                end.await_byte(node, 3 + 5 + 8999, (1000 + 8999) as u8);
                let expected = |at: usize| match at {
                    3..8 => (at + 7) as u8,
                    8..9008 => (at - 8 + 1000) as u8,
                    _ => 255,
                };
                assert!((0..20_000).all(|at| end.byte(at) == expected(at)));
            }
        },
    );
}

#[test]
fn a_peer_may_do_what_it_was_given_and_no_more() {
    let cases: [(Access, usize, usize, bool); 5] = [
        (Access::ALL, 4000, 96, true),
        (Access::ALL, 4000, 97, false),
        (Access::ALL, 4096, 1, false),
        (
            Access {
                remote_write: false,
                ..Access::ALL
            },
            0,
            8,
            false,
        ),
        (
            Access {
                remote_read: false,
                ..Access::ALL
            },
            0,
            8,
            true,
        ),
    ];
    for (access, at, len, allowed) in cases {
        let wish = Wish {
            access,
            ..Wish::default()
        };
        pair(wish, Faults::default(), move |node, end, rank| {
            if rank == 1 {
                settle_down(node);
                let expected = if allowed { State::Rts } else { State::Error };
                assert_eq!(node.rail(0).state(end.qp).unwrap(), expected);
                return;
            }
            let write = Operation::Write {
                to: end.remote(at),
                immediate: None,
            };
            end.post(node, 1, write, &[end.slice(0, len)], true, false)
                .unwrap();
            end.post(node, 2, write, &[end.slice(0, 8)], false, true)
                .unwrap();
            settle_down(node);
            let done = statuses(&end.poll(node));
            let later = if at + 8 <= 4096 && allowed {
                Status::Success
            } else {
                Status::Flushed
            };
            match allowed {
                true => assert_eq!(done, [(2, later)], "{at} {len}"),
                false => {
                    assert_eq!(done, [(1, Status::RemoteAccess), (2, later)]);
                    assert_eq!(node.rail(0).state(end.qp).unwrap(), State::Error);
                }
            }
        });
    }
}

#[test]
fn what_is_deregistered_is_left_alone() {
    pair(Wish::default(), Faults::default(), |node, end, rank| {
        if rank == 1 {
            let own = end.own;
            node.rail(0).deregister(own).unwrap();
            assert!(node.rail(0).deregister(own).is_err(), "once is enough");
            node.tell(0, b"gone").unwrap();
            settle_down(node);
            assert_eq!(end.byte(0), 0);
            return;
        }
        hear(node);
        end.fill(0, &[1]);
        end.write_signaled(node, 0, 8, true, true);
        assert_eq!(end.completion(node).status, Status::RemoteAccess);
        // Our own key, wrong: it fails here, and what was posted before has gone its way.
        let address = node.rail(0).address(end.qp).unwrap();
        node.rail(0).modify(end.qp, Ending::Reset).unwrap();
        assert_eq!(node.rail(0).address(end.qp).unwrap(), address);
    });
}

#[test]
fn a_wrong_local_key_fails_here() {
    pair(Wish::default(), Faults::default(), |node, end, rank| {
        if rank == 1 {
            end.await_byte(node, 0, 5);
            assert_eq!(node.rail(0).state(end.qp).unwrap(), State::Rts);
            return;
        }
        end.fill(0, &[5]);
        end.write(node, 0, 3000, false);
        let write = Operation::Write {
            to: end.remote(0),
            immediate: None,
        };
        let wrong = Slice {
            lkey: end.own.lkey + 256,
            ..end.slice(0, 8)
        };
        end.post(node, 7, write, &[wrong], false, false).unwrap();
        end.post(node, 8, write, &[end.slice(0, 8)], true, false)
            .unwrap();
        settle_down(node);
        let expected = [(7, Status::LocalProtection), (8, Status::Flushed)];
        assert_eq!(statuses(&end.poll(node)), expected);
        end.post(node, 9, write, &[end.slice(0, 8)], true, false)
            .unwrap();
        settle_down(node);
        assert_eq!(statuses(&end.poll(node)), [(9, Status::Flushed)]);
    });
}

#[test]
fn sends_find_receives_in_order_and_wait_for_them() {
    pair(Wish::default(), Faults::default(), |node, end, rank| {
        if rank == 0 {
            for id in 0..3u8 {
                end.fill(0, &[id + 1; 100]);
                let immediate = (id == 1).then_some(77);
                let send = Operation::Send { immediate };
                end.post(node, id.into(), send, &[end.slice(0, 100)], true, true)
                    .unwrap();
            }
            for id in 0..3 {
                let done = end.completion(node);
                assert_eq!(
                    (done.id, done.status, done.of),
                    (id, Status::Success, Completed::Send)
                );
            }
            return;
        }
        for id in 0..3 {
            // Late: the sender is told to come again.
            settle_down(node);
            let into = [
                end.slice(1000 + 200 * id, 30),
                end.slice(3000 + 200 * id, 90),
            ];
            end.receive(node, id as u64, &into).unwrap();
        }
        for id in 0..3 {
            let done = end.completion(node);
            assert_eq!(
                (done.id, done.bytes, done.of),
                (id as u64, 100, Completed::Receive)
            );
            assert_eq!(done.immediate, (id == 1).then_some(77));
            node.look();
            assert_eq!(end.byte(1000 + 200 * id + 29), id as u8 + 1);
            assert_eq!(end.byte(3000 + 200 * id + 69), id as u8 + 1);
            assert_eq!(end.byte(3000 + 200 * id + 70), 0);
        }
    });
}

#[test]
fn a_write_with_immediate_uses_up_a_receive() {
    pair(Wish::default(), Faults::default(), |node, end, rank| {
        if rank == 0 {
            end.fill(0, &[4; 64]);
            let write = Operation::Write {
                to: end.remote(0),
                immediate: Some(0xabcd),
            };
            end.post(node, 0, write, &[end.slice(0, 64)], true, false)
                .unwrap();
            return;
        }
        end.receive(node, 9, &[]).unwrap();
        let done = end.completion(node);
        assert_eq!((done.id, done.immediate, done.bytes), (9, Some(0xabcd), 64));
        assert_eq!(done.of, Completed::ReceiveWrite);
        node.look();
        assert_eq!(end.byte(63), 4);
    });
}

#[test]
fn a_receiver_that_is_never_ready_and_one_that_is_too_small() {
    let faults = Faults {
        rnr_retries: 3,
        ..Faults::default()
    };
    pair(Wish::default(), faults, |node, end, rank| {
        if rank == 0 {
            let before = node.turn().now();
            end.post(node, 1, SEND, &[end.slice(0, 8)], true, true)
                .unwrap();
            assert_eq!(end.completion(node).status, Status::RnrRetryExceeded);
            let took = node.turn().now() - before;
            assert!((3 * 640_000_000..4 * 640_000_000).contains(&took), "{took}");
        }
    });
    pair(Wish::default(), Faults::default(), |node, end, rank| {
        if rank == 1 {
            end.receive(node, 1, &[end.slice(0, 8)]).unwrap();
            end.receive(node, 2, &[end.slice(0, 8)]).unwrap();
            settle_down(node);
            settle_down(node);
            let expected = [(1, Status::LocalLength), (2, Status::Flushed)];
            assert_eq!(statuses(&end.poll(node)), expected);
            return;
        }
        settle_down(node);
        end.post(node, 5, SEND, &[end.slice(0, 9)], true, false)
            .unwrap();
        assert_eq!(end.completion(node).status, Status::RemoteInvalidRequest);
    });
}

#[test]
fn a_peer_that_is_not_there_is_given_up() {
    pair(Wish::default(), Faults::default(), |node, end, rank| {
        if rank == 1 {
            node.rail(0).modify(end.qp, Ending::Error).unwrap();
            return settle_down(node);
        }
        settle_down(node);
        let before = node.turn().now();
        end.write(node, 0, 8, true);
        end.write_signaled(node, 0, 8, true, true);
        let (first, second) = (end.completion(node), end.completion(node));
        assert_eq!(
            (first.status, second.status),
            (Status::RetryExceeded, Status::Flushed)
        );
        // Seven times more than the first, each after the timeout.
        let took = (node.turn().now() - before) as f64 / 1e12;
        assert!((took - 8.0 * 0.0671).abs() < 0.01, "{took}");
    });
}

#[test]
fn atomics_change_memory_once_and_bring_the_old_value() {
    pair(Wish::default(), Faults::default(), |node, end, rank| {
        if rank == 1 {
            end.fill(8, &100u64.to_ne_bytes());
            node.tell(0, b"set").unwrap();
            hear(node);
            node.look();
            assert_eq!(end.memory[8..16], 112u64.to_ne_bytes());
            return;
        }
        hear(node);
        let at = end.remote(8);
        let post = |node: &mut ModelNode, operation| {
            end.post(node, 1, operation, &[end.slice(0, 8)], false, true)
                .unwrap();
            let done = end.completion(node);
            assert_eq!((done.status, done.of), (Status::Success, Completed::Atomic));
            node.look();
            u64::from_ne_bytes(end.memory[..8].try_into().unwrap())
        };
        assert_eq!(post(node, Operation::FetchAndAdd { at, add: 11 }), 100);
        let swap = |compare, swap| Operation::CompareAndSwap { at, compare, swap };
        assert_eq!(post(node, swap(5, 6)), 111);
        assert_eq!(post(node, swap(111, 112)), 111);
        node.tell(1, b"done").unwrap();
        let odd = Operation::FetchAndAdd {
            at: end.remote(9),
            add: 1,
        };
        end.post(node, 1, odd, &[end.slice(0, 8)], false, true)
            .unwrap();
        assert_eq!(end.completion(node).status, Status::RemoteInvalidRequest);
    });
}

#[test]
fn no_more_reads_are_on_their_way_than_the_hca_allows() {
    let time = |reads| {
        let mut system = system("qdr");
        system.hca.reads = reads;
        let times = play(&system, &[0, 1], Faults::default(), 1, |mut node, rank| {
            let end = connect(&mut node, 1 - rank as usize, &Wish::default());
            if rank == 1 {
                hear(&mut node);
                return 0;
            }
            let before = node.turn().now();
            let read = Operation::Read {
                from: end.remote(0),
            };
            for id in 0..64 {
                end.post(&mut node, id, read, &[end.slice(0, 64)], false, true)
                    .unwrap();
            }
            for id in 0..64 {
                assert_eq!(end.completion(&mut node).id, id);
            }
            let took = node.turn().now() - before;
            node.tell(1, &[]).unwrap();
            took
        });
        times[0]
    };
    let (one, four, sixteen) = (time(1), time(4), time(16));
    assert!(
        one > 3 * four && four > 2 * sixteen,
        "{one} {four} {sixteen}"
    );
}

#[test]
fn datagrams_are_lost_when_nobody_has_posted() {
    let wish = Wish {
        transport: Transport::Ud,
        ..Wish::default()
    };
    pair(wish, Faults::default(), |node, end, rank| {
        if rank == 1 {
            end.receive(node, 1, &[end.slice(0, 140)]).unwrap();
            end.receive(node, 2, &[end.slice(200, 140)]).unwrap();
            for id in 1..3 {
                let done = end.completion(node);
                assert_eq!(
                    (done.id, done.bytes, done.status),
                    (id, 140, Status::Success)
                );
            }
            node.look();
            assert_eq!(
                (end.byte(40), end.byte(139), end.byte(239), end.byte(240)),
                (1, 1, 0, 2)
            );
            settle_down(node);
            return;
        }
        for id in 1..=3u8 {
            end.fill(0, &[id; 100]);
            let local = [end.slice(0, 100)];
            let work = Work {
                id: id.into(),
                operation: SEND,
                local: &local,
                inline: true,
                signaled: true,
                to: Some(end.peer),
            };
            // SAFETY: the payload is inline.
            unsafe { node.rail(0).post(end.qp, &work) }.unwrap();
            // It is complete when it is gone, whoever hears it.
            assert_eq!(end.completion(node).status, Status::Success);
        }
    });
}

#[test]
fn an_unreliable_connection_carries_writes_and_sends_and_says_nothing_of_losses() {
    let wish = Wish {
        transport: Transport::Uc,
        bytes: 10_000,
        ..Wish::default()
    };
    pair(wish, Faults::default(), |node, end, rank| {
        if rank == 1 {
            end.await_byte(node, 9_999, 3);
            end.receive(node, 2, &[end.slice(0, 100)]).unwrap();
            node.tell(0, b"posted").unwrap();
            assert_eq!(end.completion(node).bytes, 7);
            return;
        }
        end.fill(9_999, &[3]);
        // Nobody has posted a receive for it.
        end.post(node, 1, SEND, &[end.slice(0, 5)], true, true)
            .unwrap();
        end.write_signaled(node, 0, 10_000, false, true);
        assert_eq!(end.completion(node).status, Status::Success);
        assert_eq!(end.completion(node).status, Status::Success);
        hear(node);
        end.post(node, 1, SEND, &[end.slice(0, 7)], true, true)
            .unwrap();
        let read = Operation::Read {
            from: end.remote(0),
        };
        let refused = end.post(node, 1, read, &[end.slice(0, 7)], false, true);
        assert!(matches!(refused, Err(Error::Invalid(_))));
        settle_down(node);
    });
}

#[test]
fn a_shared_receive_queue_serves_whoever_comes() {
    play(
        &system("qdr"),
        &[0, 1, 2],
        Faults::default(),
        1,
        |mut node, rank| {
            if rank > 0 {
                let end = connect(&mut node, 0, &Wish::default());
                settle_down(&mut node);
                for id in 0..2 {
                    end.post(
                        &mut node,
                        id,
                        SEND,
                        &[end.slice(0, 10 * rank as usize)],
                        true,
                        true,
                    )
                    .unwrap();
                    assert_eq!(end.completion(&mut node).status, Status::Success);
                }
                return;
            }
            let srq = node.rail(0).create_srq(16).unwrap();
            let mut memory = [0u8; 64];
            // SAFETY: it stays to the end of the rank.
            let region =
                unsafe { node.rail(0).register(memory.as_mut_ptr(), 64, Access::ALL) }.unwrap();
            for id in 0..4 {
                let slice = Slice {
                    address: region.address,
                    len: 64,
                    lkey: region.lkey,
                };
                // SAFETY: as above.
                unsafe {
                    node.rail(0)
                        .post_receive(ReceiveQueue::Shared(srq), id, &[slice])
                }
                .unwrap();
            }
            let wish = Wish {
                srq: Some(srq),
                ..Wish::default()
            };
            // Rank 1 tells first.
            let ends = [
                connect_any(&mut node, &wish, 1),
                connect_any(&mut node, &wish, 2),
            ];
            let mut got = Vec::new();
            for end in ends.iter().chain(&ends) {
                got.push((end.completion(&mut node).id, end.qp));
            }
            let mut ids: Vec<u64> = got.iter().map(|&(id, _)| id).collect();
            ids.sort();
            assert_eq!(ids, [0, 1, 2, 3]);
        },
    );
}

#[test]
fn a_completion_queue_that_is_overrun_breaks_what_uses_it() {
    let faults = Faults {
        completions: 3,
        ..Faults::default()
    };
    pair(Wish::default(), faults, |node, end, rank| {
        if rank == 1 {
            return;
        }
        for _ in 0..4 {
            end.write_signaled(node, 0, 8, true, true);
        }
        settle_down(node);
        let error = node.rail(0).poll(end.cq, &mut [EMPTY; 8]).unwrap_err();
        assert!(error.to_string().contains("overrun"), "{error}");
        assert_eq!(node.rail(0).state(end.qp).unwrap(), State::Error);
    });
}

#[test]
fn a_queue_pair_comes_back_from_reset() {
    pair(Wish::default(), Faults::default(), |node, end, rank| {
        node.rail(0).modify(end.qp, Ending::Error).unwrap();
        node.rail(0).modify(end.qp, Ending::Reset).unwrap();
        assert_eq!(node.rail(0).state(end.qp).unwrap(), State::Reset);
        let write = Operation::Write {
            to: end.remote(0),
            immediate: None,
        };
        let refused = end.post(node, 0, write, &[end.slice(0, 8)], true, true);
        assert!(matches!(refused, Err(Error::Invalid(_))));
        let peer = end.peer;
        node.rail(0).connect(end.qp, Some(peer)).unwrap();
        settle_down(node);
        if rank == 0 {
            end.fill(0, &[6]);
            end.write_signaled(node, 0, 8, true, true);
            assert_eq!(end.completion(node).status, Status::Success);
        } else {
            end.await_byte(node, 0, 6);
        }
    });
}

#[test]
fn all_who_wait_for_nothing_hear_of_the_deadlock() {
    let answers = play(
        &system("qdr"),
        &[0, 1],
        Faults::default(),
        1,
        |mut node, rank| {
            let _end = connect(&mut node, 1 - rank as usize, &Wish::default());
            node.wait(u64::MAX).is_err()
        },
    );
    assert_eq!(answers, [true, true]);
}
