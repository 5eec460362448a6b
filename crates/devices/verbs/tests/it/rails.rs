//! Tests with two rails between two ranks. FISHPLATE_TEST_RAILS names the devices of both ranks,
//! such as `rxe0,rxe1 rxe2,rxe3`; FISHPLATE_TEST_RAIL is a command that takes `cut`, `down` or `up`
//! for the cable of the first rail.

use std::time::{Duration, Instant};

use device::*;
use testdevice::ends::*;

use crate::devices::rail;
use crate::makers::{secret, verbs_nodes};

/// The nodes of both ranks, with two rails each.
fn nodes() -> Vec<host_node::HostNode> {
    let names = std::env::var("FISHPLATE_TEST_RAILS").expect("FISHPLATE_TEST_RAILS names devices");
    let ranks = names
        .split(' ')
        .map(|names| verbs::open(names, &secret()).unwrap());
    verbs_nodes(ranks.collect())
}

/// Runs `body` as both ranks.
fn two(body: impl Fn(&mut dyn Node, usize) + Sync) {
    let body = &body;
    std::thread::scope(|scope| {
        for (rank, mut node) in nodes().into_iter().enumerate() {
            scope.spawn(move || {
                body(&mut node, rank);
                synchronise(&mut node, 1 - rank);
            });
        }
    });
}

fn wish(rail: usize) -> Wish {
    Wish {
        rail,
        ..Wish::default()
    }
}

/// Waits until a request of `end` has failed, and returns its status.
fn first_failure(node: &mut dyn Node, end: &End) -> Status {
    let write = Operation::Write {
        to: end.remote(0),
        immediate: None,
    };
    wait_for(node, |node| {
        let mut done = end.poll(node).into_iter().map(|one| one.status);
        let failed = done.find(|status| *status != Status::Success);
        if failed.is_none() {
            match end.post(node, 1, write, &[end.slice(0, 64)], false, true) {
                Ok(()) | Err(Error::Full) => {}
                Err(error) => panic!("{error}"),
            }
        }
        failed
    })
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn the_attributes_tell_rails_apart_and_peers_alike() {
    let mut nodes = nodes();
    let seen: Vec<_> = nodes
        .iter_mut()
        .map(|node| [0, 1].map(|rail| node.rail(rail).attributes().clone()))
        .collect();
    println!("{seen:#?}");
    for [first, second] in &seen {
        assert_ne!(first.subnet, second.subnet);
        assert_ne!((first.card, first.domain), (second.card, second.domain));
        assert_eq!(first.link_layer, LinkLayer::Ethernet);
        assert!(first.bandwidth > 1_000_000 && first.latency_ns > 0);
    }
    for rail in [0, 1] {
        assert_eq!(seen[0][rail].subnet, seen[1][rail].subnet);
    }
}

#[test]
#[ignore = "needs RDMA devices and a cable to break: `make test-verbs` runs it, in a machine that has them"]
fn messages_out_of_band_survive_the_loss_of_a_rail() {
    for how in ["cut", "down"] {
        two(|node, rank| {
            synchronise(node, 1 - rank);
            if rank == 0 {
                rail(how);
            }
            for number in 0..50u32 {
                node.oob_send(1 - rank, &number.to_le_bytes()).unwrap();
            }
            for number in 0..50u32 {
                assert_eq!(receive_oob(node), number.to_le_bytes(), "{how}");
            }
            if rank == 0 {
                rail("up");
            }
        });
    }
}

#[test]
#[ignore = "needs RDMA devices and a cable to break: `make test-verbs` runs it, in a machine that has them"]
fn a_rail_fails_alone_and_is_connected_again() {
    for how in ["cut", "down"] {
        two(|node, rank| {
            let ends = [0, 1].map(|rail| {
                let end = connect_any(node, &wish(rail), 1 - rank);
                synchronise(node, 1 - rank);
                end
            });
            if rank == 0 {
                rail(how);
                assert_eq!(first_failure(node, &ends[0]), Status::RetryExceeded);
                ends[1].write_signaled(node, 0, 8, true, true);
                assert_eq!(ends[1].completion(node).status, Status::Success);
                let events = node.port_events();
                let down = PortEvent {
                    rail: 0,
                    change: PortChange::Down,
                };
                assert_eq!(events.contains(&down), how == "down", "{events:?}");
                rail("up");
            }
            synchronise(node, 1 - rank);
            // A second epoch of this queue pair, with the same memory.
            let end = &ends[0];
            let device = node.rail(0);
            device.modify(end.qp, Ending::Error).unwrap();
            device.modify(end.qp, Ending::Reset).unwrap();
            device.connect(end.qp, Some(end.peer)).unwrap();
            synchronise(node, 1 - rank);
            assert!(end.poll(node).is_empty(), "completions of the earlier life");
            if rank == 0 {
                end.write_signaled(node, 0, 8, true, true);
                assert_eq!(end.completion(node).status, Status::Success);
                if how == "down" {
                    let up = |one: &PortEvent| (one.rail, one.change) == (0, PortChange::Up);
                    assert!(node.port_events().iter().any(up));
                }
            }
            synchronise(node, 1 - rank);
            for end in &ends {
                node.rail(end.rail).destroy_qp(end.qp).unwrap();
                node.rail(end.rail).deregister(end.own).unwrap();
            }
        });
    }
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn a_queue_pair_with_a_shared_queue_is_drained_within_its_limit() {
    two(|node, rank| {
        let device = node.rail(0);
        let srq = device.create_srq(16).unwrap();
        for id in 0..16 {
            // SAFETY: the receive has no memory.
            unsafe { device.post_receive(ReceiveQueue::Shared(srq), id, &[]) }.unwrap();
        }
        let shared = Wish {
            srq: Some(srq),
            ..wish(0)
        };
        let end = connect_any(node, &shared, 1 - rank);
        synchronise(node, 1 - rank);
        let send = Operation::Send { immediate: None };
        end.post(node, 1, send, &[], true, true).unwrap();
        let done = [end.completion(node), end.completion(node)];
        assert!(done.iter().all(|one| one.status == Status::Success));
        synchronise(node, 1 - rank);
        assert!(!node.rail(0).is_drained(end.qp).unwrap());
        node.rail(0).modify(end.qp, Ending::Error).unwrap();
        let begin = Instant::now();
        while !node.rail(0).is_drained(end.qp).unwrap() {
            assert!(begin.elapsed() < Duration::from_secs(5));
            std::thread::sleep(Duration::from_millis(1));
        }
        println!("drained after {:?}", begin.elapsed());
        node.rail(0).modify(end.qp, Ending::Reset).unwrap();
        synchronise(node, 1 - rank);
        node.rail(0).connect(end.qp, Some(end.peer)).unwrap();
        synchronise(node, 1 - rank);
        end.post(node, 2, send, &[], true, true).unwrap();
        let done = [end.completion(node), end.completion(node)];
        assert!(
            done.iter().all(|one| one.status == Status::Success),
            "{done:?}"
        );
        synchronise(node, 1 - rank);
        node.rail(0).destroy_qp(end.qp).unwrap();
        node.rail(0).deregister(end.own).unwrap();
    });
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn a_port_that_goes_down_wakes_a_sleeper() {
    let mut nodes = nodes();
    let node = &mut nodes[0];
    let events = node.events().unwrap().unwrap();
    let _ = node.port_events();
    // `arm` consumes earlier events.
    node.arm().unwrap();
    rail("down");
    let mut entry = libc::pollfd {
        fd: std::os::fd::AsRawFd::as_raw_fd(&events),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry.
    assert_eq!(unsafe { libc::poll(&mut entry, 1, 10_000) }, 1);
    let seen = node.port_events();
    let down = |one: &PortEvent| (one.rail, one.change) == (0, PortChange::Down);
    assert!(seen.iter().any(down), "{seen:?}");
    rail("up");
}
