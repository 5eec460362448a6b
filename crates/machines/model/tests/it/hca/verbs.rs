//! The rules of the InfiniBand specification on the modelled HCA, with their times; the rules for
//! every device are in `testdevice::suite`.

use crate::common::*;
use device::*;
use model::{Faults, ModelNode};

/// Connects two ranks on the machine `qdr`; each runs `body`.
fn pair<R: 'static>(
    wish: Wish,
    faults: Faults,
    body: impl Fn(&mut ModelNode, &mut End, u32) -> R + 'static,
) -> Vec<R> {
    play(&system("qdr"), &[0, 1], faults, 1, move |mut node, rank| {
        let mut end = connect(&mut node, 1 - rank as usize, &wish);
        let answer = body(&mut node, &mut end, rank);
        // Neither rank ends before the other is done.
        node.oob_send(1 - rank as usize, b"done").unwrap();
        receive_oob(&mut node);
        answer
    })
}

const SEND: Operation = Operation::Send { immediate: None };

fn statuses(completions: &[Completion]) -> Vec<(u64, Status)> {
    let pairs = completions.iter().map(|one| (one.id, one.status));
    pairs.collect()
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
        // Seven retries after the first attempt, each after the timeout.
        let took = (node.turn().now() - before) as f64 / 1e12;
        assert!((took - 8.0 * 0.0671).abs() < 0.01, "{took}");
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
                receive_oob(&mut node);
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
            node.oob_send(1, &[]).unwrap();
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
