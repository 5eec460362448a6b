//! The promises of a transport, kept over TCP between ranks of this process.

use knobs::{RailPolicy, RdmaDesign};
use std::net::Ipv4Addr;

use device::HostDevice;
use host_node::{Board, HostNode};
use secret::Secret;
use tcp::{Port, TcpDevice};

use super::*;
use crate::{Put, Transport, suite};

/// The transports of `ranks` ranks with this number of rails each.
fn all(ranks: usize, rails: usize, config: Config) -> Vec<Rdma> {
    let board = Board::new(ranks);
    let secret = Secret::from_bytes([3; 32]);
    let port = Port::loopback(Ipv4Addr::LOCALHOST.into());
    let attach = |rank| {
        let open = |_| TcpDevice::open(&port, &secret).unwrap();
        let devices = (0..rails).map(open);
        let devices = devices.map(|one| Box::new(one) as Box<dyn HostDevice>);
        let node = HostNode::new(devices.collect(), rank, ranks, &secret, board.of(rank));
        Rdma::attach(Box::new(node.unwrap()), rank, ranks, config).unwrap()
    };
    (0..ranks).map(attach).collect()
}

#[test]
fn it_keeps_the_promises_of_a_channel() {
    for (design, ring_bytes, gather, rings) in [
        (RdmaDesign::ZeroCopy, 256 << 10, true, 64),
        (RdmaDesign::ZeroCopy, 16 << 10, true, 2),
        (RdmaDesign::Basic, 16 << 10, false, 64),
        (RdmaDesign::Piggyback, 16 << 10, true, 64),
        (RdmaDesign::Pipeline, 256 << 10, true, 0),
    ] {
        let config = Config {
            design,
            ring_bytes,
            gather,
            rings,
            ..Config::default()
        };
        println!("{config:?}");
        suite::promises(|ranks| all(ranks, 1, config));
    }
}

#[test]
fn it_keeps_them_over_two_rails() {
    for policy in [RailPolicy::Adaptive, RailPolicy::RoundRobin] {
        let mut config = Config::default();
        config.rails.policy = policy;
        println!("{config:?}");
        suite::promises(|ranks| all(ranks, 2, config));
    }
}

/// Memory for a peer with one rail is registered on that rail alone, so the two devices of rank 0
/// give equal keys to the rings of different peers.
#[test]
fn peers_with_fewer_rails_are_heard_beside_those_with_more() {
    let most = |rank: usize| if (1..=3).contains(&rank) { 1 } else { 2 };
    let board = Board::new(6);
    let secret = Secret::from_bytes([3; 32]);
    let port = Port::loopback(Ipv4Addr::LOCALHOST.into());
    let attach = |rank: usize| {
        let open = |_| Box::new(TcpDevice::open(&port, &secret).unwrap()) as Box<dyn HostDevice>;
        let devices = (0..most(rank)).map(open).collect();
        let node = HostNode::new(devices, rank, 6, &secret, board.of(rank)).unwrap();
        Rdma::attach(Box::new(node), rank, 6, Config::default()).unwrap()
    };
    let mut all: Vec<Rdma> = (0..6).map(attach).collect();
    let (hub, peers) = all.split_first_mut().unwrap();
    let begin = std::time::Instant::now();
    for round in 0..4 {
        for peer in &mut *peers {
            let (from, mut is_put, mut is_heard) = (peer.rank(), false, false);
            while !is_heard {
                if !is_put {
                    let put = peer.put(0, [round, 0, 0], 0, |_| ()).unwrap();
                    is_put = put != crate::Put::Full;
                }
                suite::take(peer, |_, _, _| ()).unwrap();
                let heard = |rank, head, _: &[u8]| {
                    is_heard |= (rank, head) == (from, [round, 0, 0]);
                };
                suite::take(hub, heard).unwrap();
                let is_stuck = begin.elapsed().as_secs() >= 20;
                assert!(!is_stuck, "rank {from} is not heard in round {round}");
            }
        }
    }
}

#[test]
fn long_messages_go_without_a_copy() {
    let mut both = all(2, 1, Config::default()).into_iter();
    let (mut a, mut b) = (both.next().unwrap(), both.next().unwrap());
    super::tests::put(&mut a, &mut b, [1, 0, 0]);
    suite::zero_copy_promises(a, b);
}

/// Polls `b` until it has received `wanted` packets.
fn take_packets(b: &mut Rdma, wanted: usize) {
    let begin = std::time::Instant::now();
    let mut had = 0;
    while had < wanted {
        had += suite::take(b, |_, _, _| ()).unwrap();
        let is_stuck = begin.elapsed().as_secs() >= 20;
        assert!(!is_stuck, "{had} of {wanted} packets have come");
    }
    b.uncork().unwrap();
}

#[test]
fn packets_in_a_row_leave_together_and_lone_ones_at_once() {
    let mut both = all(2, 1, Config::default()).into_iter();
    let (mut a, mut b) = (both.next().unwrap(), both.next().unwrap());
    super::tests::put(&mut a, &mut b, [1, 0, 0]);
    // The connection is made while both ends poll.
    while suite::take(&mut b, |_, _, _| ()).unwrap() == 0 {
        suite::take(&mut a, |_, _, _| ()).unwrap();
    }
    b.uncork().unwrap();
    suite::take(&mut a, |_, _, _| ()).unwrap();
    let put = |a: &mut Rdma| a.put(1, [2, 0, 0], 8, |body| body.fill(3)).unwrap();
    let answers: Vec<Put> = (0..10).map(|_| put(&mut a)).collect();
    assert_eq!(answers[..2], [Put::Accepted; 2]);
    assert_eq!(answers[2..], [Put::Corked; 8]);
    take_packets(&mut b, 2);
    let early: usize = (0..100)
        .map(|_| suite::take(&mut b, |_, _, _| ()).unwrap())
        .sum();
    assert_eq!(early, 0);
    a.uncork().unwrap();
    take_packets(&mut b, 8);
    // A poll uncorks too. Between a poll that found packets and `uncork`, all packets wait.
    assert_eq!(put(&mut a), Put::Corked);
    assert_eq!(b.put(0, [4, 0, 0], 0, |_| ()).unwrap(), Put::Accepted);
    while suite::take(&mut a, |_, _, _| ()).unwrap() == 0 {}
    take_packets(&mut b, 1);
    assert_eq!(put(&mut a), Put::Corked);
    a.uncork().unwrap();
    assert_eq!(put(&mut a), Put::Accepted);
    take_packets(&mut b, 2);
}
