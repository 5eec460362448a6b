//! Two ranks on the loopback interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use device::{HostDevice, Node};
use host_node::{Board, HostNode};
use secret::Secret;
use tcp::{Port, TcpDevice};
use testdevice::ends::Wish;
use testdevice::suite::makers::{Body, Maker, threads};

/// Two ranks of this process over TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tcp {
    /// At an IPv4 address.
    V4,
    /// At an IPv6 address.
    V6,
}

/// The nodes of `ranks` ranks with a device at each of these addresses.
pub(crate) fn nodes(ranks: usize, at: &[IpAddr]) -> Vec<HostNode> {
    let board = Board::new(ranks);
    let secret = Secret::from_bytes([7; 32]);
    let node = |rank| {
        let open = |ip: &IpAddr| TcpDevice::open(&Port::loopback(*ip), &secret).unwrap();
        let devices = at.iter().map(open);
        let devices = devices.map(|one| Box::new(one) as Box<dyn HostDevice>);
        HostNode::new(devices.collect(), rank, ranks, &secret, board.of(rank)).unwrap()
    };
    (0..ranks).map(node).collect()
}

impl Maker for Tcp {
    fn run(&self, wish: Wish, body: Body) {
        let at = match self {
            Tcp::V4 => Ipv4Addr::LOCALHOST.into(),
            Tcp::V6 => Ipv6Addr::LOCALHOST.into(),
        };
        let nodes = nodes(2, &[at]).into_iter();
        let nodes = nodes.map(|node| Box::new(node) as Box<dyn Node>);
        threads(nodes.collect(), &wish, &body);
    }

    fn has_datagrams(&self) -> bool {
        false
    }
}
