//! Tests of send queues: completions and their order, refusals, access to memory.

use super::*;

/// Only signaled requests complete, in the order of posting.
pub fn only_signaled_requests_complete_and_in_order(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 1 {
            return;
        }
        for id in 0..12 {
            let local = [end.slice(0, 8)];
            let (inline, signaled) = (id % 2 == 0, id % 4 == 3);
            end.post(node, id, write_to(end, 0), &local, inline, signaled)
                .unwrap();
        }
        for id in [3, 7, 11] {
            let done = end.completion(node);
            assert_eq!((done.id, done.status), (id, Status::Success));
            assert_eq!((done.of, done.qp), (Completed::Write, end.qp));
        }
        assert_eq!(end.poll(node).len(), 0);
    });
}

/// A full send queue has room again only after completions have been taken.
pub fn a_full_queue_takes_more_only_when_completions_have_been_taken(maker: &dyn Maker) {
    let wish = Wish {
        depth: 4,
        ..Wish::default()
    };
    two(maker, wish, |node, end, rank| {
        if rank == 1 {
            return;
        }
        let post = |node: &mut dyn Node, id, signaled| {
            end.post(
                node,
                id,
                write_to(end, 0),
                &[end.slice(0, 8)],
                true,
                signaled,
            )
        };
        for id in 0..4 {
            post(node, id, id == 2).unwrap();
        }
        assert!(matches!(post(node, 4, false), Err(Error::Full)));
        assert_eq!(end.completion(node).id, 2);
        for id in 5..8 {
            post(node, id, id == 7).unwrap();
        }
        assert!(matches!(post(node, 8, false), Err(Error::Full)));
        assert_eq!(end.completion(node).id, 7);
        for id in 9..13 {
            post(node, id, id == 12).unwrap();
        }
        assert_eq!(end.completion(node).id, 12);
    });
}

/// Writes and reads move exactly the bytes that they name.
pub fn bytes_land_where_they_should(maker: &dyn Maker) {
    let wish = Wish {
        bytes: 20_000,
        ..Wish::default()
    };
    two(maker, wish, |node, end, rank| {
        for at in 0..end.memory.len() {
            end.fill(at, &[if rank == 0 { at as u8 } else { 255 }]);
        }
        synchronise(node, 1 - rank);
        if rank == 1 {
            synchronise(node, 0);
            node.sync_memory();
            let expected = |at: usize| match at {
                3..8 => (at + 7) as u8,
                8..9008 => (at - 8 + 1000) as u8,
                _ => 255,
            };
            assert!((0..20_000).all(|at| end.byte(at) == expected(at)));
            return;
        }
        let local = [end.slice(10, 5), end.slice(100, 0), end.slice(1000, 9000)];
        end.post(node, 1, write_to(end, 3), &local, false, true)
            .unwrap();
        assert_eq!(end.completion(node).status, Status::Success);
        // A read of the bytes that the write has written.
        let read = Operation::Read {
            from: end.remote(3),
        };
        let local = [end.slice(12_000, 3000), end.slice(16_000, 3000)];
        end.post(node, 2, read, &local, false, true).unwrap();
        let done = end.completion(node);
        assert_eq!((done.of, done.bytes), (Completed::Read, 6000));
        node.sync_memory();
        let expected = |at: usize| match at {
            0..5 => 10 + at as u8,
            _ => (1000 + at - 5) as u8,
        };
        for at in 0..3000 {
            assert_eq!(end.byte(12_000 + at), expected(at));
            assert_eq!(end.byte(16_000 + at), expected(3000 + at));
        }
        synchronise(node, 1);
    });
}

/// Long messages arrive whole.
pub fn long_messages_are_whole(maker: &dyn Maker) {
    const LEN: usize = (1 << 20) + 13;
    let wish = Wish {
        bytes: 2 * LEN,
        ..Wish::default()
    };
    two(maker, wish, |node, end, rank| {
        let pattern = |at: usize, salt: usize| (at * 31 + at / 4096 + salt) as u8;
        for at in 0..LEN {
            end.fill(at, &[pattern(at, rank)]);
        }
        synchronise(node, 1 - rank);
        // Rank 0 writes to rank 1; rank 1 reads from rank 0.
        let operation = match rank {
            0 => write_to(end, LEN),
            _ => Operation::Read {
                from: end.remote(0),
            },
        };
        let local = [end.slice(rank * LEN, LEN)];
        if rank == 0 {
            end.post(node, 1, operation, &local, false, true).unwrap();
            assert_eq!(end.completion(node).status, Status::Success);
        }
        synchronise(node, 1 - rank);
        if rank == 1 {
            let seen = |end: &End| (0..LEN).all(|at| end.byte(LEN + at) == pattern(at, 0));
            node.sync_memory();
            assert!(seen(end), "written");
            end.fill(LEN, &[0; 4096]);
            end.post(node, 2, operation, &local, false, true).unwrap();
            let done = end.completion(node);
            assert_eq!((done.status, done.bytes), (Status::Success, LEN as u32));
            node.sync_memory();
            assert!(seen(end), "read");
        }
    });
}

/// An inline payload has been read when the post returns.
pub fn inline_payload_has_been_read_when_it_is_posted(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 0 {
            for id in 0..32u8 {
                end.fill(0, &[id + 1; 32]);
                let local = [end.slice(0, 32)];
                let to = write_to(end, 64 * usize::from(id));
                end.post(node, id.into(), to, &local, true, id == 31)
                    .unwrap();
            }
            assert_eq!(end.completion(node).status, Status::Success);
        }
        synchronise(node, 1 - rank);
        if rank == 1 {
            node.sync_memory();
            for id in 0..32 {
                assert_eq!(end.byte(64 * id + 31), id as u8 + 1);
            }
        }
    });
}

/// A region allows exactly the accesses that it was registered with.
pub fn a_peer_may_do_what_it_was_given_and_no_more(maker: &dyn Maker) {
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
        two(maker, wish, move |node, end, rank| {
            if rank == 1 {
                return match allowed {
                    true => assert_eq!(node.rail(0).state(end.qp).unwrap(), State::Rts),
                    false => comes_to(node, end, State::Error),
                };
            }
            let local = [end.slice(0, len)];
            end.post(node, 1, write_to(end, at), &local, false, false)
                .unwrap();
            end.post(node, 2, write_to(end, 0), &[end.slice(0, 8)], false, true)
                .unwrap();
            if allowed {
                assert_eq!(statuses(node, end, 1), [(2, Status::Success)]);
            } else {
                let expected = [(1, Status::RemoteAccess), (2, Status::Flushed)];
                assert_eq!(statuses(node, end, 2), expected, "{at} {len}");
                comes_to(node, end, State::Error);
            }
        });
    }
}

/// A deregistered region is not accessed.
pub fn what_is_deregistered_is_left_alone(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 1 {
            let own = end.own;
            node.rail(0).deregister(own).unwrap();
            assert!(node.rail(0).deregister(own).is_err(), "once is enough");
            synchronise(node, 0);
            synchronise(node, 0);
            assert_eq!(end.byte(0), 0);
            return;
        }
        synchronise(node, 1);
        end.fill(0, &[1]);
        end.write_signaled(node, 0, 8, true, true);
        assert_eq!(end.completion(node).status, Status::RemoteAccess);
        synchronise(node, 1);
    });
}

/// A request with a wrong local key fails at the requester.
pub fn a_wrong_local_key_fails_here(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 1 {
            synchronise(node, 0);
            node.sync_memory();
            assert_eq!(end.byte(0), 5, "what was posted before has gone its way");
            assert_eq!(node.rail(0).state(end.qp).unwrap(), State::Rts);
            return;
        }
        end.fill(0, &[5]);
        end.write_signaled(node, 0, 3000, false, true);
        assert_eq!(end.completion(node).status, Status::Success);
        let wrong = Slice {
            lkey: end.own.lkey.wrapping_add(256),
            ..end.slice(0, 8)
        };
        end.post(node, 7, write_to(end, 0), &[wrong], false, false)
            .unwrap();
        end.post(node, 8, write_to(end, 0), &[end.slice(0, 8)], true, false)
            .unwrap();
        let done = statuses(node, end, 2);
        // Soft-RoCE has one status for all local errors here.
        let said = [Status::LocalProtection, Status::LocalQpOperation];
        assert!(done[0].0 == 7 && said.contains(&done[0].1), "{done:?}");
        assert_eq!(done[1], (8, Status::Flushed));
        synchronise(node, 1);
    });
}

/// Atomics change memory once and return the old value.
pub fn atomics_change_memory_once_and_bring_the_old_value(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 1 {
            end.fill(8, &100u64.to_ne_bytes());
            synchronise(node, 0);
            synchronise(node, 0);
            node.sync_memory();
            let expected = 112u64.to_ne_bytes();
            assert!((0..8).all(|at| end.byte(8 + at) == expected[at]));
            return;
        }
        synchronise(node, 1);
        let at = end.remote(8);
        let post = |node: &mut dyn Node, operation| {
            end.post(node, 1, operation, &[end.slice(0, 8)], false, true)
                .unwrap();
            let done = end.completion(node);
            assert_eq!((done.status, done.of), (Status::Success, Completed::Atomic));
            node.sync_memory();
            u64::from_ne_bytes(std::array::from_fn(|at| end.byte(at)))
        };
        assert_eq!(post(node, Operation::FetchAndAdd { at, add: 11 }), 100);
        let swap = |compare, swap| Operation::CompareAndSwap { at, compare, swap };
        assert_eq!(post(node, swap(5, 6)), 111);
        assert_eq!(post(node, swap(111, 112)), 111);
        synchronise(node, 1);
        let odd = Operation::FetchAndAdd {
            at: end.remote(9),
            add: 1,
        };
        // Some devices check the request before they send it.
        match end.post(node, 1, odd, &[end.slice(0, 8)], false, true) {
            Ok(()) => assert_eq!(end.completion(node).status, Status::RemoteInvalidRequest),
            Err(error) => assert!(matches!(error, Error::Invalid(_)), "{error}"),
        }
    });
}

/// Invalid calls are refused.
pub fn invalid_calls_are_refused(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 1 {
            return;
        }
        let peer = end.peer;
        let device = node.rail(0);
        assert!(device.connect(end.qp, Some(peer)).is_err(), "connected");
        assert!(device.create_cq(usize::MAX >> 1).is_err());
        assert!(device.state(Qp(99_999)).is_err());
        let wanted = QpWanted {
            transport: Transport::Rc,
            send_cq: end.cq,
            receive_cq: end.cq,
            srq: None,
            sends: 4,
            receives: 4,
            inline: device.attributes().inline,
        };
        let more = QpWanted {
            inline: wanted.inline + 1,
            ..wanted.clone()
        };
        assert!(device.create_qp(&more).is_err(), "inline");
        let qp = device.create_qp(&wanted).unwrap();
        assert_eq!(device.state(qp).unwrap(), State::Reset);
        assert!(device.connect(qp, None).is_err(), "a connection has a peer");
        let datagrams = QpWanted {
            transport: Transport::Ud,
            ..wanted.clone()
        };
        let has_datagrams = device.attributes().datagrams;
        let datagrams = has_datagrams.then(|| device.create_qp(&datagrams).unwrap());
        if let Some(datagrams) = datagrams {
            assert!(device.connect(datagrams, Some(peer)).is_err());
        }
        let srq = device.create_srq(4).unwrap();
        let shared = QpWanted {
            transport: Transport::Ud,
            srq: Some(srq),
            ..wanted.clone()
        };
        assert!(device.create_qp(&shared).is_err());
        let mut memory = [0u8; 8];
        let access = Access {
            remote_write: true,
            ..Access::default()
        };
        // SAFETY: the memory stays meanwhile.
        let refused = unsafe { device.register(memory.as_mut_ptr(), 8, access) };
        assert!(refused.is_err(), "remote write without local write");
        // SAFETY: as above.
        let refused = unsafe { device.register(memory.as_mut_ptr(), 0, Access::ALL) };
        assert!(refused.is_err(), "no memory");

        invalid_work_is_refused(node, end, qp, datagrams, wanted.inline);
        let device = node.rail(0);
        device.destroy_qp(qp).unwrap();
        if let Some(datagrams) = datagrams {
            device.destroy_qp(datagrams).unwrap();
        }
        assert!(device.destroy_qp(qp).is_err(), "once is enough");
    });
}

/// Invalid work requests are refused on an unconnected, a connected and a datagram queue pair.
fn invalid_work_is_refused(
    node: &mut dyn Node,
    end: &End,
    qp: Qp,
    datagrams: Option<Qp>,
    inline_limit: usize,
) {
    let refused = |node: &mut dyn Node, qp, operation, local: &[Slice], inline| {
        let work = Work {
            id: 0,
            operation,
            local,
            inline,
            signaled: true,
            to: None,
        };
        // SAFETY: the memory stays with the end.
        let answer = unsafe { node.rail(0).post(qp, &work) };
        assert!(
            matches!(answer, Err(Error::Invalid(_))),
            "{operation:?}: {answer:?}"
        );
    };
    refused(node, qp, SEND, &[], false);
    let add = Operation::FetchAndAdd {
        at: end.remote(0),
        add: 1,
    };
    refused(node, end.qp, add, &[end.slice(0, 4)], false);
    let read = Operation::Read {
        from: end.remote(0),
    };
    refused(node, end.qp, read, &[end.slice(0, 8)], true);
    refused(node, end.qp, SEND, &[end.slice(0, inline_limit + 1)], true);
    if let Some(datagrams) = datagrams {
        node.rail(0).connect(datagrams, None).unwrap();
        refused(node, datagrams, SEND, &[end.slice(0, 8)], false);
        refused(node, datagrams, write_to(end, 0), &[end.slice(0, 8)], false);
    }
}
