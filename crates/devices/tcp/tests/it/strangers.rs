//! Connections of processes that do not belong to the job.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use device::*;
use secret::Secret;
use tcp::{Port, TcpDevice};

pub(crate) fn open(secret: u8) -> (TcpDevice, Qp, Cq) {
    let port = Port::loopback(Ipv4Addr::LOCALHOST.into());
    let mut device = TcpDevice::open(&port, &Secret::from_bytes([secret; 32])).unwrap();
    let cq = device.create_cq(16).unwrap();
    let wanted = QpWanted {
        transport: Transport::Rc,
        send_cq: cq,
        receive_cq: cq,
        srq: None,
        sends: 8,
        receives: 8,
        inline: 8,
    };
    let qp = device.create_qp(&wanted).unwrap();
    (device, qp, cq)
}

/// Polls both devices until a condition holds.
fn until(ends: &mut [(TcpDevice, Qp, Cq)], mut holds: impl FnMut(&TcpDevice) -> bool) {
    let limit = Instant::now() + Duration::from_secs(120);
    while !holds(&ends[0].0) {
        assert!(Instant::now() < limit, "nothing has come of it");
        ends.iter_mut()
            .for_each(|(device, ..)| device.sync_memory());
        std::thread::yield_now();
    }
}

fn call(ends: &[(TcpDevice, Qp, Cq)]) -> TcpStream {
    let address = ends[0].0.address(ends[0].1).unwrap();
    TcpStream::connect((Ipv4Addr::LOCALHOST, (address.qp >> 16) as u16)).unwrap()
}

/// True if the device has ended a connection without an answer.
fn is_dropped(stream: &mut TcpStream) -> bool {
    // Unread bytes at the other end make it a reset.
    matches!(stream.read(&mut [0; 200]), Ok(0) | Err(_))
}

#[test]
fn a_stranger_with_garbage_is_dropped_counted_and_the_first_one_is_named() {
    let mut ends = [open(1)];
    let mut streams = [call(&ends), call(&ends), call(&ends)];
    for stream in &mut streams {
        stream.write_all(&[7; 300]).unwrap();
    }
    until(&mut ends, |device| device.dropped_strangers() == 3);
    assert!(streams.iter_mut().all(is_dropped));
    let warnings = ends[0].0.take_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let named = streams[0].local_addr().unwrap().to_string();
    assert!(warnings[0].contains(&named), "{warnings:?} of {named}");
}

#[test]
fn of_silent_strangers_only_a_bounded_number_stays_and_not_for_long() {
    let mut ends = [open(1)];
    let mut streams: Vec<TcpStream> = (0..100).map(|_| call(&ends)).collect();
    // The oldest go at once, the others after their time.
    until(&mut ends, |device| device.dropped_strangers() >= 36);
    assert!(is_dropped(&mut streams[0]));
    until(&mut ends, |device| device.dropped_strangers() == 100);
}

/// A silent caller may be a rank that got no processor time, and is not called a stranger then.
#[test]
fn of_a_silent_caller_the_job_is_named_where_it_has_that_address() {
    for is_peer in [true, false] {
        let mut ends = [open(1), open(1)];
        let qp_of = |end: &(TcpDevice, Qp, Cq)| end.0.address(end.1).unwrap().qp;
        if qp_of(&ends[0]) < qp_of(&ends[1]) {
            // The end with the higher number listens.
            ends.swap(0, 1);
        }
        let address = ends[1].0.address(ends[1].1).unwrap();
        let (device, qp, _) = &mut ends[0];
        if is_peer {
            device.connect(*qp, Some(address)).unwrap();
        }
        let silent = call(&ends);
        until(&mut ends, |device| device.dropped_strangers() == 1);
        let warnings = ends[0].0.take_warnings();
        assert!(warnings[0].contains("silent for 2 s"), "{warnings:?}");
        let is_named = warnings[0].contains("ranks of this job have that address too");
        assert_eq!(is_named, is_peer, "{warnings:?}");
        drop(silent);
    }
}

#[test]
fn a_stranger_that_waits_to_be_taken_is_counted_when_the_listener_closes() {
    let mut ends = [open(1)];
    let mut streams: Vec<TcpStream> = (0..40).map(|_| call(&ends)).collect();
    let (device, qp, _) = &mut ends[0];
    device.destroy_qp(*qp).unwrap();
    assert_eq!(HostDevice::strangers(device), 40);
    drop(ends);
    assert!(streams.iter_mut().all(is_dropped));
}

#[test]
fn a_peer_with_another_secret_gets_no_connection() {
    let mut ends = [open(1), open(2)];
    let addresses = [0, 1].map(|at| ends[at].0.address(ends[at].1).unwrap());
    for at in 0..2 {
        let (device, qp, _) = &mut ends[at];
        device.connect(*qp, Some(addresses[1 - at])).unwrap();
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
    }
    let listener = usize::from(addresses[0].qp < addresses[1].qp);
    let limit = Instant::now() + Duration::from_secs(120);
    let caller = 1 - listener;
    loop {
        ends.iter_mut()
            .for_each(|(device, ..)| device.sync_memory());
        let mut done = [testdevice::ends::EMPTY];
        let (device, _, cq) = &mut ends[caller];
        if device.poll(*cq, &mut done).unwrap() == 1 {
            assert_eq!((done[0].id, done[0].status), (5, Status::RetryExceeded));
            break;
        }
        assert!(Instant::now() < limit, "the caller still tries");
    }
    assert!(ends[listener].0.dropped_strangers() > 0);
}
