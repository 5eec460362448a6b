//! The promises of a transport, kept over TCP between ranks of this process.

use std::net::Ipv4Addr;

use device::HostDevice;
use host::{Board, HostNode};
use secret::Secret;
use tcp::{Port, TcpDevice};

use super::*;
use crate::suite;

/// The transports of `ranks` ranks with this number of rails each.
fn all(ranks: usize, rails: usize, config: Config) -> Vec<Rdma> {
    let board = Board::new(ranks);
    let secret = Secret::from_bytes([3; 32]);
    let port = Port::loopback(Ipv4Addr::LOCALHOST.into());
    let attach = |rank| {
        let open = |_| TcpDevice::open(&port, &secret).unwrap();
        let devices = (0..rails).map(open);
        let devices = devices.map(|one| Box::new(one) as Box<dyn HostDevice>);
        let node = HostNode::new(devices.collect(), rank, ranks, board.of(rank));
        Rdma::attach(Box::new(node.unwrap()), rank, ranks, config).unwrap()
    };
    (0..ranks).map(attach).collect()
}

#[test]
fn it_keeps_the_promises_of_a_channel() {
    for (design, ring_bytes, gather, rings) in [
        (Design::ZeroCopy, 256 << 10, true, 64),
        (Design::ZeroCopy, 16 << 10, true, 2),
        (Design::Basic, 16 << 10, false, 64),
        (Design::Piggyback, 16 << 10, true, 64),
        (Design::Pipeline, 256 << 10, true, 0),
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

#[test]
fn long_messages_go_without_a_copy() {
    let mut both = all(2, 1, Config::default()).into_iter();
    let (mut a, mut b) = (both.next().unwrap(), both.next().unwrap());
    super::tests::put(&mut a, &mut b, [1, 0, 0]);
    suite::zero_copy_promises(a, b);
}
