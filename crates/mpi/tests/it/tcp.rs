//! Random programs over TCP between ranks of this process, with one rail and with two. `SEED=n` runs
//! the program of seed n only, `SEEDS=n` those of the first n seeds.

use std::net::Ipv4Addr;

use device::{HostDevice, Node};
use host::{Board, HostNode};
use secret::Secret;
use tcp::{Port, TcpDevice};

use crate::common::{random_program, run_nodes};

fn nodes(ranks: usize, rails: usize) -> Vec<Box<dyn Node + Send>> {
    let board = Board::new(ranks);
    let secret = Secret::draw().unwrap();
    let port = Port::loopback(Ipv4Addr::LOCALHOST.into());
    let node = |rank| {
        let open = |_| TcpDevice::open(&port, &secret).unwrap();
        let devices = (0..rails).map(open);
        let devices = devices.map(|one| Box::new(one) as Box<dyn HostDevice>);
        let node = HostNode::new(devices.collect(), rank, ranks, &secret, board.of(rank));
        Box::new(node.unwrap()) as Box<dyn Node + Send>
    };
    (0..ranks).map(node).collect()
}

#[test]
fn random_programs_over_tcp_end_with_nothing_lost_doubled_or_overtaken() {
    for seed in random_program::seeds(12) {
        eprintln!("seed {seed}");
        let (ranks, rails) = (2 + (seed % 3) as usize, 1 + (seed / 3 % 2) as usize);
        let program = move |rank: &_| random_program::play(rank, seed);
        run_nodes(nodes(ranks, rails), &[], program);
    }
}
