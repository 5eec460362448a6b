//! Tests of queue pairs: states, failures, destruction.

use super::*;

/// Requests to a failed peer fail.
pub fn a_peer_that_has_failed_is_given_up(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 1 {
            node.rail(0).modify(end.qp, Ending::Error).unwrap();
            synchronise(node, 0);
            return;
        }
        synchronise(node, 1);
        end.write(node, 0, 8, true);
        end.write_signaled(node, 0, 8, true, true);
        let expected = [(0, Status::RetryExceeded), (0, Status::Flushed)];
        assert_eq!(statuses(node, end, 2), expected);
        comes_to(node, end, State::Error);
    });
}

/// Requests to a queue pair in ERROR are flushed.
pub fn what_is_posted_to_a_queue_pair_in_error_is_flushed(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        if rank == 1 {
            return;
        }
        end.receive(node, 1, &[end.slice(0, 8)]).unwrap();
        end.receive(node, 2, &[]).unwrap();
        node.rail(0).modify(end.qp, Ending::Error).unwrap();
        assert_eq!(node.rail(0).state(end.qp).unwrap(), State::Error);
        let mut done = statuses(node, end, 2);
        end.post(node, 3, write_to(end, 0), &[end.slice(0, 8)], true, false)
            .unwrap();
        done.extend(statuses(node, end, 1));
        assert_eq!(done, [1, 2, 3].map(|id| (id, Status::Flushed)));
    });
}

/// A queue pair can be connected again after a reset.
pub fn a_queue_pair_comes_back_from_reset(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        let address = node.rail(0).address(end.qp).unwrap();
        end.receive(node, 1, &[]).unwrap();
        node.rail(0).modify(end.qp, Ending::Error).unwrap();
        node.rail(0).modify(end.qp, Ending::Reset).unwrap();
        assert_eq!(node.rail(0).state(end.qp).unwrap(), State::Reset);
        assert_eq!(node.rail(0).address(end.qp).unwrap(), address);
        let refused = end.post(node, 0, write_to(end, 0), &[end.slice(0, 8)], true, true);
        assert!(matches!(refused, Err(Error::Invalid(_))));
        // No end connects before the other one has been reset.
        synchronise(node, 1 - rank);
        let peer = end.peer;
        node.rail(0).connect(end.qp, Some(peer)).unwrap();
        synchronise(node, 1 - rank);
        // Completions of requests flushed before the reset may still arrive; discarded ones never
        // do.
        end.poll(node);
        if rank == 0 {
            end.fill(0, &[6]);
            end.write_signaled(node, 0, 8, true, true);
            assert_eq!(end.completion(node).status, Status::Success);
        }
        synchronise(node, 1 - rank);
        if rank == 1 {
            node.sync_memory();
            assert_eq!(end.byte(0), 6);
        }
    });
}

/// A destroyed queue pair has no completions.
pub fn a_queue_pair_that_is_gone_says_nothing(maker: &dyn Maker) {
    two(maker, Wish::default(), |node, end, rank| {
        synchronise(node, 1 - rank);
        if rank == 0 {
            for _ in 0..8 {
                end.write_signaled(node, 0, 8, true, true);
            }
        }
        node.rail(0).destroy_qp(end.qp).unwrap();
        // Earlier completions may still arrive.
        while !end.poll(node).is_empty() {}
        let wish = Wish::default();
        let new = connect_any(node, &wish, 1 - rank);
        synchronise(node, 1 - rank);
        if rank == 0 {
            new.post(node, 9, write_to(&new, 0), &[new.slice(0, 8)], true, true)
                .unwrap();
            let done = new.completion(node);
            assert_eq!(
                (done.id, done.status, done.qp),
                (9, Status::Success, new.qp)
            );
        }
        assert_eq!(end.poll(node).len(), 0);
        synchronise(node, 1 - rank);
        node.rail(0).destroy_qp(new.qp).unwrap();
        node.rail(0).deregister(new.own).unwrap();
    });
}

/// An unreliable connection carries writes and sends.
pub fn an_unreliable_connection_carries_writes_and_sends(maker: &dyn Maker) {
    if !maker.has_datagrams() {
        return is_refused(maker, Transport::Uc);
    }
    let wish = Wish {
        transport: Transport::Uc,
        bytes: 10_000,
        ..Wish::default()
    };
    two(maker, wish, |node, end, rank| {
        if rank == 1 {
            end.see(node, 9_999, 3);
            end.receive(node, 2, &[end.slice(0, 100)]).unwrap();
            synchronise(node, 0);
            let done = end.completion(node);
            assert_eq!((done.bytes, done.immediate), (7, Some(5)));
            return;
        }
        end.fill(9_999, &[3]);
        // No receive is posted for this message: it is lost, and the loss is not reported.
        end.post(node, 1, SEND, &[end.slice(0, 5)], true, true)
            .unwrap();
        end.write_signaled(node, 0, 10_000, false, true);
        assert_eq!(
            statuses(node, end, 2),
            [(1, Status::Success), (0, Status::Success)]
        );
        synchronise(node, 1);
        let send = Operation::Send { immediate: Some(5) };
        end.post(node, 2, send, &[end.slice(0, 7)], true, true)
            .unwrap();
        let read = Operation::Read {
            from: end.remote(0),
        };
        let refused = end.post(node, 1, read, &[end.slice(0, 7)], false, true);
        assert!(matches!(refused, Err(Error::Invalid(_))));
        assert_eq!(end.completion(node).id, 2);
    });
}
