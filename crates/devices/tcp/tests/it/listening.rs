//! The time for which a device listens.

use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use device::*;
use tcp::TcpDevice;

use crate::strangers::open;

type End = (TcpDevice, Qp, Cq);

/// True if somebody who knows the port of a device gets a connection.
fn listens(end: &End) -> bool {
    let address = end.0.address(end.1).unwrap();
    is_open((address.qp >> 16) as u16)
}

fn is_open(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Two ends. The first one calls the second.
fn ends() -> [End; 2] {
    let mut ends = [open(1), open(1)];
    ends.sort_by_key(|(device, qp, _)| device.address(*qp).unwrap().qp);
    ends
}

fn connect(ends: &mut [End; 2]) {
    for at in 0..2 {
        let peer = ends[1 - at].0.address(ends[1 - at].1).unwrap();
        let (device, qp, _) = &mut ends[at];
        device.connect(*qp, Some(peer)).unwrap();
    }
}

/// Polls both ends until a message of the first has arrived at the second.
fn exchange(ends: &mut [End; 2]) {
    let (device, qp, _) = &mut ends[1];
    let own = ReceiveQueue::Own(*qp);
    // SAFETY: the receive has no memory.
    unsafe { device.post_receive(own, 7, &[]) }.unwrap();
    let (device, qp, _) = &mut ends[0];
    let work = Work {
        id: 5,
        operation: Operation::Send { immediate: None },
        local: &[],
        inline: false,
        signaled: true,
        to: None,
    };
    // SAFETY: the request has no memory.
    unsafe { device.post(*qp, &work) }.unwrap();
    let limit = Instant::now() + Duration::from_secs(120);
    let mut left = [true, true];
    while left != [false, false] {
        assert!(Instant::now() < limit, "nothing has come of it");
        for ((device, _, cq), left) in ends.iter_mut().zip(&mut left) {
            let mut done = [testdevice::ends::EMPTY];
            if device.poll(*cq, &mut done).unwrap() == 1 {
                assert_eq!(done[0].status, Status::Success);
                *left = false;
            }
        }
    }
}

#[test]
fn a_device_listens_until_its_peer_has_come_and_again_after_a_reset() {
    let mut ends = ends();
    for _ in 0..3 {
        assert!(ends.iter().all(listens), "either peer may call");
        connect(&mut ends);
        assert!(!listens(&ends[0]), "this end calls");
        assert!(listens(&ends[1]), "the peer has not come");
        exchange(&mut ends);
        assert!(!ends.iter().any(listens), "the connection is made");
        for (device, qp, _) in &mut ends {
            device.modify(*qp, Ending::Error).unwrap();
        }
        assert!(
            !ends.iter().any(listens),
            "a queue pair in ERROR answers nobody"
        );
        for (device, qp, _) in &mut ends {
            device.modify(*qp, Ending::Reset).unwrap();
        }
    }
}

#[test]
fn a_device_listens_as_long_as_any_of_its_queue_pairs_may_be_called() {
    let mut ends = ends();
    let cq = ends[1].2;
    let wanted = QpWanted {
        transport: Transport::Rc,
        send_cq: cq,
        receive_cq: cq,
        srq: None,
        sends: 8,
        receives: 8,
        inline: 8,
    };
    let other = ends[1].0.create_qp(&wanted).unwrap();
    connect(&mut ends);
    exchange(&mut ends);
    assert!(listens(&ends[1]), "another queue pair has no connection");
    ends[1].0.destroy_qp(other).unwrap();
    assert!(!listens(&ends[1]));
    let port = (ends[0].0.address(ends[0].1).unwrap().qp >> 16) as u16;
    let (device, qp, _) = &mut ends[0];
    device.destroy_qp(*qp).unwrap();
    assert!(!is_open(port));
}

#[test]
fn a_call_to_a_peer_that_does_not_listen_yet_is_repeated() {
    let mut ends = ends();
    let addresses = [0, 1].map(|at| ends[at].0.address(ends[at].1).unwrap());
    ends[1].0.modify(ends[1].1, Ending::Error).unwrap();
    assert!(!listens(&ends[1]));
    ends[0].0.connect(ends[0].1, Some(addresses[1])).unwrap();
    for (device, ..) in &mut ends {
        device.sync_memory();
    }
    ends[1].0.modify(ends[1].1, Ending::Reset).unwrap();
    ends[1].0.connect(ends[1].1, Some(addresses[0])).unwrap();
    exchange(&mut ends);
}
