//! Tests of the strict machine's cables, and of rails of different kinds.

use std::time::{Duration, Instant};

use device::{
    Completed, Device, Ending, LinkLayer, Node, Operation, Placement, PortChange, PortEvent, Qp,
    QpWanted, ReceiveQueue, Remote, State, Status, Transport, Work, with_immediates,
};
use testdevice::ends::{End, Wish, connect_any, synchronise, wait_for};
use testdevice::strict::{Cables, Cut, RailSetup, Setup, machine};

/// Connects two ranks over each of `rails` rails, and runs a body in both.
fn two(setup: &Setup, body: impl Fn(&mut dyn Node, &mut [End], usize, &Cables) + Sync) {
    let (nodes, cables) = machine(2, setup);
    let (body, cables) = (&body, &cables);
    std::thread::scope(|scope| {
        for (rank, node) in nodes.into_iter().enumerate() {
            scope.spawn(move || {
                let mut node = with_immediates(node);
                let mut ends = Vec::new();
                for rail in 0..setup.rails {
                    let wish = Wish {
                        rail,
                        ..Wish::default()
                    };
                    ends.push(connect_any(&mut *node, &wish, 1 - rank));
                    synchronise(&mut *node, 1 - rank);
                }
                body(&mut *node, &mut ends, rank, cables);
                synchronise(&mut *node, 1 - rank);
                drop(node);
                drop(ends);
            });
        }
    });
}

fn statuses(node: &mut dyn Node, end: &End, count: usize) -> Vec<Status> {
    let one = |_| end.completion(node).status;
    (0..count).map(one).collect()
}

fn rails() -> Setup {
    Setup {
        rails: 2,
        ..Setup::default()
    }
}

#[test]
fn a_cut_cable_fails_its_requests_and_no_others() {
    for cut_at in [0, 1] {
        two(&rails(), |node, ends, rank, cables| {
            if rank == 1 {
                synchronise(node, 0);
                node.sync_memory();
                assert_eq!((ends[0].byte(0), ends[1].byte(0)), (0, 7));
                return;
            }
            cables.cut(cut_at, 0, Cut::Silent);
            for end in &mut ends[..] {
                end.fill(0, &[7]);
                end.write_signaled(node, 0, 8, true, true);
                end.write_signaled(node, 0, 8, true, true);
            }
            assert_eq!(statuses(node, &ends[1], 2), [Status::Success; 2]);
            let expected = [Status::RetryExceeded, Status::Flushed];
            assert_eq!(statuses(node, &ends[0], 2), expected);
            assert_eq!(cables.carried(0, 0).0, 0);
            assert_eq!(cables.carried(0, 1), (2, 16));
            assert!(node.port_events().is_empty());
            synchronise(node, 1);
        });
    }
}

#[test]
fn a_cut_may_come_after_some_requests() {
    two(&rails(), |node, ends, rank, cables| {
        if rank == 1 {
            return;
        }
        cables.cut_after(0, 0, 3, Cut::Down);
        for _ in 0..5 {
            ends[0].write_signaled(node, 0, 8, true, true);
        }
        let [ok, lost] = [Status::Success, Status::RetryExceeded];
        let expected = [ok, ok, ok, lost, Status::Flushed];
        assert_eq!(statuses(node, &ends[0], 5), expected);
        let down = PortEvent {
            rail: 0,
            change: PortChange::Down,
        };
        assert_eq!(node.port_events(), [down]);
    });
}

#[test]
fn a_request_survives_a_cable_that_is_mended_in_time() {
    let setup = Setup {
        timeout_ns: 60_000_000_000,
        ..rails()
    };
    two(&setup, |node, ends, rank, cables| {
        if rank == 1 {
            return;
        }
        for how in [Cut::Silent, Cut::Down, Cut::Acknowledgements] {
            cables.cut(0, 1, how);
            ends[1].write_signaled(node, 0, 8, true, true);
            assert!(ends[1].poll(node).is_empty());
            cables.mend(0, 1);
            assert_eq!(statuses(node, &ends[1], 1), [Status::Success], "{how:?}");
        }
    });
}

#[test]
fn without_acknowledgements_requests_take_effect_and_fail() {
    two(&rails(), |node, ends, rank, cables| {
        if rank == 1 {
            synchronise(node, 0);
            node.sync_memory();
            assert_eq!((ends[0].byte(0), ends[0].byte(8)), (5, 5));
            return;
        }
        cables.cut(1, 0, Cut::Acknowledgements);
        ends[0].fill(0, &[5; 16]);
        for at in [0, 8] {
            ends[0].write_signaled(node, at, 8, true, true);
        }
        let expected = [Status::RetryExceeded, Status::Flushed];
        assert_eq!(statuses(node, &ends[0], 2), expected);
        synchronise(node, 1);
    });
}

#[test]
fn an_atomic_without_its_answer_is_executed_once() {
    let setup = Setup {
        timeout_ns: 60_000_000_000,
        ..rails()
    };
    two(&setup, |node, ends, rank, cables| {
        if rank == 1 {
            synchronise(node, 0);
            node.sync_memory();
            assert_eq!(ends[0].byte(0), 3);
            return;
        }
        cables.cut(0, 0, Cut::Acknowledgements);
        let add = Operation::FetchAndAdd {
            at: ends[0].remote(0),
            add: 3,
        };
        ends[0].fill(64, &[9; 8]);
        ends[0]
            .post(node, 1, add, &[ends[0].slice(64, 8)], false, true)
            .unwrap();
        for _ in 0..10 {
            assert!(ends[0].poll(node).is_empty());
        }
        assert_eq!(ends[0].byte(64), 9);
        cables.mend(0, 0);
        assert_eq!(ends[0].completion(node).status, Status::Success);
        assert_eq!(ends[0].byte(64), 0);
        synchronise(node, 1);
    });
}

#[test]
fn a_port_that_goes_down_reports_it_and_wakes_its_rank() {
    let (mut nodes, cables) = machine(2, &rails());
    let node = &mut nodes[0];
    let events = node.events().unwrap().unwrap();
    node.arm().unwrap();
    assert!(!is_readable(&events));
    cables.cut(0, 1, Cut::Down);
    assert!(is_readable(&events));
    cables.mend(0, 1);
    cables.report(0, 0, PortChange::Address);
    let seen = node.port_events();
    let event = |rail, change| PortEvent { rail, change };
    let expected = [
        event(1, PortChange::Down),
        event(1, PortChange::Up),
        event(0, PortChange::Address),
    ];
    assert_eq!(seen, expected);
    assert!(node.port_events().is_empty());
    assert!(nodes[1].port_events().is_empty());
}

fn is_readable(file: &std::os::fd::OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut files = [PollFd::new(file, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut files, Some(&now)).unwrap() == 1
}

#[test]
fn a_slow_port_takes_its_time_for_each_request() {
    two(&rails(), |node, ends, rank, cables| {
        if rank == 1 {
            return;
        }
        cables.slow(0, 0, 3_000_000);
        let begin = Instant::now();
        for _ in 0..4 {
            ends[0].write_signaled(node, 0, 8, true, true);
        }
        ends[1].write_signaled(node, 0, 8, true, true);
        assert_eq!(statuses(node, &ends[1], 1), [Status::Success]);
        assert_eq!(statuses(node, &ends[0], 4), [Status::Success; 4]);
        assert!(begin.elapsed() >= Duration::from_millis(12));
    });
}

/// Makes a queue pair of rank 0 that takes its receives from a shared queue, and posts `count` of
/// them.
fn sharing(node: &mut dyn Node, count: u64) -> (device::Cq, Qp) {
    let device = node.rail(0);
    let cq = device.create_cq(64).unwrap();
    let srq = device.create_srq(32).unwrap();
    let wanted = QpWanted {
        transport: Transport::Rc,
        send_cq: cq,
        receive_cq: cq,
        srq: Some(srq),
        sends: 8,
        receives: 0,
        inline: 0,
    };
    let qp = device.create_qp(&wanted).unwrap();
    for id in 0..count {
        // SAFETY: no memory.
        unsafe { device.post_receive(ReceiveQueue::Shared(srq), id, &[]) }.unwrap();
    }
    (cq, qp)
}

#[test]
fn a_queue_pair_with_a_shared_queue_is_drained_before_its_reset() {
    let mut late = 0;
    for seed in 1..20 {
        let setup = Setup {
            delays: true,
            seed,
            ..Setup::default()
        };
        let (mut nodes, _) = machine(1, &setup);
        let node = &mut *nodes[0];
        let (cq, qp) = sharing(node, 4);
        let own = node.rail(0).address(qp).unwrap();
        node.rail(0).connect(qp, Some(own)).unwrap();
        let early = node.rail(0).modify(qp, Ending::Reset).unwrap_err();
        assert!(early.to_string().contains("Last WQE Reached"), "{early}");
        node.rail(0).modify(qp, Ending::Error).unwrap();
        let early = node.rail(0).modify(qp, Ending::Reset).unwrap_err();
        assert!(early.to_string().contains("Last WQE Reached"), "{early}");
        late += u32::from(!node.rail(0).is_drained(qp).unwrap());
        wait_for(node, |node| {
            node.rail(0).is_drained(qp).unwrap().then_some(())
        });
        node.rail(0).modify(qp, Ending::Reset).unwrap();
        // The receive that was consumed has been completed, and its completion survives the reset.
        let mut some = [device::Completion {
            id: 0,
            qp,
            status: Status::Success,
            of: Completed::Send,
            bytes: 0,
            immediate: None,
        }; 8];
        let count = node.rail(0).poll(cq, &mut some).unwrap();
        let flushed = |one: &device::Completion| one.status == Status::Flushed;
        assert!(some[..count].iter().all(flushed));
        node.rail(0).connect(qp, Some(own)).unwrap();
        assert_eq!(node.rail(0).state(qp).unwrap(), State::Rts);
    }
    assert!(late > 2, "Last WQE Reached was late {late} times");
}

#[test]
fn a_reset_forgets_the_completions_before_it() {
    two(&rails(), |node, ends, rank, _| {
        if rank == 1 {
            return;
        }
        let end = &mut ends[0];
        end.write_signaled(node, 0, 8, true, true);
        node.rail(0).modify(end.qp, Ending::Error).unwrap();
        node.rail(0).modify(end.qp, Ending::Reset).unwrap();
        assert!(end.poll(node).is_empty());
    });
}

#[test]
fn rails_of_different_kinds_lie_side_by_side() {
    let mut setup = rails();
    setup.of_rails = vec![
        RailSetup {
            placement: Placement::Completion,
            immediates: false,
            resets: false,
            link_layer: LinkLayer::Ethernet,
            subnet: 5,
            ..setup.of_rail(0)
        },
        setup.of_rail(1),
    ];
    two(&setup, |node, ends, rank, _| {
        let kinds = [0, 1].map(|rail| {
            let attributes = node.rail(rail).attributes();
            (attributes.subnet, attributes.inline, attributes.immediates)
        });
        // Rail 0 emulates immediates, which needs eight bytes inline; rail 1 has immediates of its
        // own.
        assert_eq!(kinds, [(5, 56, true), (0, 64, true)]);
        for (rail, end) in ends.iter_mut().enumerate() {
            let immediate = Some(7 + rail as u32);
            if rank == 1 {
                end.receive(node, 3, &[]).unwrap();
                synchronise(node, 0);
                let done = end.completion(node);
                assert_eq!(
                    (done.of, done.immediate),
                    (Completed::ReceiveWrite, immediate)
                );
                continue;
            }
            synchronise(node, 1);
            let write = Operation::Write {
                to: end.remote(0),
                immediate,
            };
            end.post(node, 4, write, &[end.slice(0, 8)], false, true)
                .unwrap();
            assert_eq!(end.completion(node).status, Status::Success);
        }
        let reset = node.rail(0).modify(ends[0].qp, Ending::Reset);
        assert!(reset.is_err());
    });
}

#[test]
fn a_region_is_valid_in_its_protection_domain_only() {
    let mut setup = Setup {
        rails: 3,
        ..Setup::default()
    };
    let shared = RailSetup {
        domain: 0,
        ..setup.of_rail(1)
    };
    setup.of_rails = vec![setup.of_rail(0), shared];
    two(&setup, |node, ends, rank, _| {
        if rank == 1 {
            return;
        }
        // Memory and keys of rail 0, over the queue pair of each rail.
        let (local, remote) = (ends[0].slice(0, 8), ends[0].remote(0));
        for (rail, expected) in [(1, Status::Success), (2, Status::LocalProtection)] {
            let write = Operation::Write {
                to: remote,
                immediate: None,
            };
            ends[rail]
                .post(node, 1, write, &[local], false, true)
                .unwrap();
            assert_eq!(ends[rail].completion(node).status, expected);
        }
    });
}

#[test]
fn ports_of_different_networks_do_not_reach_each_other() {
    let mut setup = rails();
    let far = RailSetup {
        subnet: 9,
        ..setup.of_rail(1)
    };
    setup.of_rails = vec![setup.of_rail(0), far];
    setup.rails_of = vec![2, 1];
    let (mut nodes, _) = machine(2, &setup);
    assert_eq!((nodes[0].rails(), nodes[1].rails()), (2, 1));
    let (cq, qp) = sharing(&mut *nodes[1], 0);
    let address = nodes[1].rail(0).address(qp).unwrap();
    let device: &mut dyn Device = nodes[0].rail(1);
    let own_cq = device.create_cq(8).unwrap();
    let wanted = QpWanted {
        transport: Transport::Rc,
        send_cq: own_cq,
        receive_cq: own_cq,
        srq: None,
        sends: 8,
        receives: 1,
        inline: 0,
    };
    let own = device.create_qp(&wanted).unwrap();
    device.connect(own, Some(address)).unwrap();
    let there = device.address(own).unwrap();
    nodes[1].rail(0).connect(qp, Some(there)).unwrap();
    let work = Work {
        id: 1,
        operation: Operation::Write {
            to: Remote {
                address: 0,
                rkey: 0,
            },
            immediate: None,
        },
        local: &[],
        inline: false,
        signaled: true,
        to: None,
    };
    let mut done = [device::Completion {
        id: 0,
        qp: own,
        status: Status::Success,
        of: Completed::Send,
        bytes: 0,
        immediate: None,
    }];
    // SAFETY: no memory.
    unsafe { nodes[0].rail(1).post(own, &work) }.unwrap();
    assert_eq!(nodes[0].rail(1).poll(own_cq, &mut done).unwrap(), 1);
    assert_eq!(done[0].status, Status::RetryExceeded);
    assert_eq!(nodes[1].rail(0).poll(cq, &mut done).unwrap(), 0);
}
