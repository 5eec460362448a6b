//! Tests of receives and the messages that consume them, datagrams, shared queues, out-of-band
//! messages, waiting.

use super::*;

/// A message may be empty.
pub fn no_bytes_are_a_message_too(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 1 {
            end.receive(node, 5, &[]).unwrap();
            end.receive(node, 6, &[end.slice(0, 8)]).unwrap();
            synchronise(node, 0);
            for (id, of) in [(5, Completed::ReceiveWrite), (6, Completed::Receive)] {
                let done = end.completion(node);
                assert_eq!((done.id, done.of, done.bytes), (id, of, 0));
            }
            return;
        }
        synchronise(node, 1);
        let write = Operation::Write {
            to: end.remote(0),
            immediate: Some(0),
        };
        let read = Operation::Read {
            from: end.remote(0),
        };
        end.post(node, 1, write, &[], false, true).unwrap();
        end.post(node, 2, SEND, &[end.slice(0, 0)], true, true)
            .unwrap();
        end.post(node, 3, read, &[], false, true).unwrap();
        end.post(node, 4, write_to(end, 0), &[], true, true)
            .unwrap();
        let expected = [1, 2, 3, 4].map(|id| (id, Status::Success));
        assert_eq!(statuses(node, end, 4), expected);
    });
}

/// Sends consume receives in order, and wait for them.
pub fn sends_find_receives_in_order_and_wait_for_them(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 0 {
            for id in 0..3u8 {
                end.fill(0, &[id + 1; 60]);
                let send = Operation::Send {
                    immediate: (id == 1).then_some(0x1234_5677),
                };
                end.post(node, id.into(), send, &[end.slice(0, 60)], true, true)
                    .unwrap();
            }
            // The receives are posted only now: the first send may have got an RNR NAK meanwhile.
            node.oob_send(1, b"sent").unwrap();
            for id in 0..3 {
                let done = end.completion(node);
                assert_eq!((done.id, done.status), (id, Status::Success));
                assert_eq!(done.of, Completed::Send);
            }
            return;
        }
        assert_eq!(receive_oob(node), b"sent");
        for id in 0..3 {
            let into = [
                end.slice(1000 + 200 * id, 20),
                end.slice(3000 + 200 * id, 90),
            ];
            end.receive(node, id as u64, &into).unwrap();
        }
        for id in 0..3 {
            let done = end.completion(node);
            assert_eq!((done.id, done.bytes), (id as u64, 60));
            assert_eq!(
                (done.of, done.status, done.qp),
                (Completed::Receive, Status::Success, end.qp)
            );
            assert_eq!(done.immediate, (id == 1).then_some(0x1234_5677));
            node.sync_memory();
            assert_eq!(end.byte(1000 + 200 * id + 19), id as u8 + 1);
            assert_eq!(end.byte(3000 + 200 * id + 39), id as u8 + 1);
            assert_eq!(end.byte(3000 + 200 * id + 40), 0);
        }
    });
}

/// A receive that is too small fails at both ends.
pub fn a_receive_that_is_too_small_fails_at_both_ends(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 1 {
            end.receive(node, 1, &[end.slice(0, 8)]).unwrap();
            end.receive(node, 2, &[end.slice(0, 8)]).unwrap();
            synchronise(node, 0);
            let done = statuses(node, end, 2);
            // Soft-RoCE reports another status, here and below.
            let said = [Status::LocalLength, Status::LocalQpOperation];
            assert!(done[0].0 == 1 && said.contains(&done[0].1), "{done:?}");
            assert_eq!(done[1], (2, Status::Flushed));
            return;
        }
        synchronise(node, 1);
        end.post(node, 5, SEND, &[end.slice(0, 9)], true, false)
            .unwrap();
        let done = end.completion(node);
        let said = [Status::RemoteInvalidRequest, Status::RemoteOperation];
        assert!(done.id == 5 && said.contains(&done.status), "{done:?}");
    });
}

/// A write with immediate consumes a receive.
pub fn a_write_with_immediate_uses_up_a_receive(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 0 {
            synchronise(node, 1);
            end.fill(0, &[4; 64]);
            let write = Operation::Write {
                to: end.remote(0),
                immediate: Some(0xabcd),
            };
            end.post(node, 3, write, &[end.slice(0, 64)], true, true)
                .unwrap();
            let done = end.completion(node);
            assert_eq!((done.id, done.of), (3, Completed::Write));
            return;
        }
        end.receive(node, 9, &[]).unwrap();
        synchronise(node, 0);
        let done = end.completion(node);
        assert_eq!((done.id, done.immediate, done.bytes), (9, Some(0xabcd), 64));
        assert_eq!(
            (done.of, done.status),
            (Completed::ReceiveWrite, Status::Success)
        );
        node.sync_memory();
        assert_eq!(end.byte(63), 4);
    });
}

/// Many messages keep their order.
pub fn many_messages_keep_their_order(maker: &dyn Maker) {
    const MESSAGES: u32 = 1000;
    let wish = Wish {
        depth: 32,
        ..Wish::default()
    };
    two(maker, wish, |node, end, rank| {
        let send = |node: &mut dyn Node, number| {
            let send = Operation::Send {
                immediate: Some(number),
            };
            end.post(
                node,
                number.into(),
                send,
                &[end.slice(0, 16)],
                true,
                number % 8 == 7,
            )
        };
        if rank == 0 {
            synchronise(node, 1);
            let mut posted = 0;
            let mut done = 0;
            while done < MESSAGES {
                // The receiver has posted 32 receives, and posts one more for each message.
                while posted < MESSAGES && posted < done + 24 {
                    send(node, posted).unwrap();
                    posted += 1;
                }
                let one = end.completion(node);
                assert_eq!((one.id, one.status), (u64::from(done) + 7, Status::Success));
                done += 8;
            }
            return;
        }
        for id in 0..32 {
            end.receive(node, id, &[end.slice(100, 16)]).unwrap();
        }
        synchronise(node, 0);
        for number in 0..MESSAGES {
            let one = end.completion(node);
            assert_eq!((one.immediate, one.id), (Some(number), u64::from(number)));
            end.receive(node, u64::from(number) + 32, &[end.slice(100, 16)])
                .unwrap();
        }
    });
}

/// Datagrams deliver their payload without the header of the datagram.
pub fn datagrams_bring_their_payload_and_nothing_else(maker: &dyn Maker) {
    if !maker.has_datagrams() {
        return is_refused(maker, Transport::Ud);
    }
    let wish = Wish {
        transport: Transport::Ud,
        ..Wish::default()
    };
    two(maker, wish, |node, end, rank| {
        if rank == 1 {
            end.receive(node, 1, &[end.slice(0, 30), end.slice(100, 30)])
                .unwrap();
            end.receive(node, 2, &[end.slice(200, 60)]).unwrap();
            synchronise(node, 0);
            for id in 1..3 {
                let done = end.completion(node);
                assert_eq!(
                    (done.id, done.bytes, done.status),
                    (id, 60, Status::Success)
                );
                assert_eq!(done.immediate, (id == 2).then_some(22));
            }
            node.sync_memory();
            let seen = [0, 29, 100, 129, 200, 259, 260].map(|at| end.byte(at));
            assert_eq!(seen, [1, 1, 1, 1, 2, 2, 0]);
            return;
        }
        synchronise(node, 1);
        // No receive is posted for the third datagram: it is lost, and the loss is not reported.
        for id in 1..=3u8 {
            end.fill(0, &[id; 60]);
            let local = [end.slice(0, 60)];
            let work = Work {
                id: id.into(),
                operation: Operation::Send {
                    immediate: (id == 2).then_some(22),
                },
                local: &local,
                inline: true,
                signaled: true,
                to: Some(end.peer),
            };
            // SAFETY: the payload is inline.
            unsafe { node.rail(0).post(end.qp, &work) }.unwrap();
            let done = end.completion(node);
            assert_eq!((done.id, done.status), (id.into(), Status::Success));
        }
    });
}

/// A shared receive queue serves every queue pair.
pub fn a_shared_receive_queue_serves_every_queue_pair(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        let srq = node.rail(0).create_srq(16).unwrap();
        for id in 0..6 {
            let slice = [end.slice(100 * id as usize, 100)];
            // SAFETY: the memory stays with the end.
            unsafe {
                node.rail(0)
                    .post_receive(ReceiveQueue::Shared(srq), 50 + id, &slice)
            }
            .unwrap();
        }
        let wish = Wish {
            srq: Some(srq),
            ..Wish::default()
        };
        let ends = [
            connect_any(node, &wish, 1 - rank),
            connect_any(node, &wish, 1 - rank),
        ];
        synchronise(node, 1 - rank);
        if rank == 0 {
            for round in 0..3 {
                for (number, end) in ends.iter().enumerate() {
                    let len = 10 * (number + 1) + round;
                    end.post(node, 0, SEND, &[end.slice(0, len)], true, true)
                        .unwrap();
                    assert_eq!(end.completion(node).status, Status::Success);
                }
            }
        } else {
            let mut ids = Vec::new();
            for round in 0..3 {
                for (number, end) in ends.iter().enumerate() {
                    let done = end.completion(node);
                    assert_eq!(done.qp, end.qp);
                    assert_eq!(done.bytes as usize, 10 * (number + 1) + round);
                    ids.push(done.id);
                }
            }
            ids.sort();
            assert_eq!(ids, [50, 51, 52, 53, 54, 55]);
        }
        synchronise(node, 1 - rank);
        for one in ends {
            node.rail(0).destroy_qp(one.qp).unwrap();
            node.rail(0).deregister(one.own).unwrap();
        }
    });
}

/// Out-of-band messages arrive in order and whole.
pub fn words_arrive_in_order_and_whole(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, _, rank| {
        let word = |from: usize, number: usize| -> Vec<u8> {
            let len = [0, 1, 991, 992, 993, 5000][number % 6];
            let bytes = (0..len).map(|at| (at + number + from) as u8);
            [number as u8].into_iter().chain(bytes).collect()
        };
        for number in 0..30 {
            node.oob_send(1 - rank, &word(rank, number)).unwrap();
        }
        for number in 0..30 {
            assert_eq!(receive_oob(node), word(1 - rank, number), "{number}");
        }
        assert!(node.oob_send(2, b"nobody").is_err());
    });
}

/// A waiting rank is woken.
pub fn whoever_waits_is_woken(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        // Messages back and forth: each rank waits for the other, and polls only after a wake-up.
        end.receive(node, 0, &[]).unwrap();
        synchronise(node, 1 - rank);
        for round in 0..20u32 {
            if round % 2 == rank as u32 {
                let send = Operation::Send {
                    immediate: Some(round),
                };
                end.post(node, 7, send, &[], true, false).unwrap();
                continue;
            }
            let done = end.completion(node);
            assert_eq!(
                (done.id, done.immediate),
                (u64::from(round / 2), Some(round))
            );
            end.receive(node, u64::from(round / 2) + 1, &[]).unwrap();
        }
    });
}

/// Everything that arrives after arming raises an event.
pub fn what_comes_after_arming_raises_an_event(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        let Some(events) = node.events().unwrap() else {
            // Virtual time has no events.
            return assert!(node.is_virtual());
        };
        end.receive(node, 0, &[]).unwrap();
        synchronise(node, 1 - rank);
        // Sleeps until `look` finds something; only an event ends a sleep.
        let sleep_until = |node: &mut dyn Node, look: &dyn Fn(&mut dyn Node) -> bool| {
            loop {
                node.arm().unwrap();
                if look(node) {
                    return;
                }
                let mut fd = libc::pollfd {
                    fd: std::os::fd::AsRawFd::as_raw_fd(&events),
                    events: libc::POLLIN,
                    revents: 0,
                };
                // SAFETY: one entry.
                let ready = unsafe { libc::poll(&mut fd, 1, 30_000) };
                assert_eq!(ready, 1, "no event");
            }
        };
        for round in 0..20u64 {
            if round % 2 == rank as u64 {
                end.post(node, 7, SEND, &[], true, false).unwrap();
                node.oob_send(1 - rank, &[round as u8]).unwrap();
                continue;
            }
            sleep_until(node, &|node| match end.poll(node).pop() {
                Some(one) => {
                    assert_eq!((one.id, one.of), (round / 2, Completed::Receive));
                    true
                }
                None => false,
            });
            end.receive(node, round / 2 + 1, &[]).unwrap();
            sleep_until(node, &|node| match node.oob_recv().unwrap() {
                Some((from, word)) => {
                    assert_eq!((from, word), (1 - rank, vec![round as u8]));
                    true
                }
                None => false,
            });
        }
    });
}
