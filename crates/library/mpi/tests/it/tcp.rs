//! Random programs over TCP between ranks of this process, with one rail and with two. `SEED=n` runs
//! the program of seed n only, `SEEDS=n` those of the first n seeds.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use device::{HostDevice, Node};
use host_node::{Board, HostNode};
use secret::Secret;
use tcp::{Port, TcpDevice};

use crate::common::{out, random_program, room, run_nodes};
use crate::growth;
use mpi::comm::WORLD;
use mpi::request::RequestId;
use mpi::{MessageBuffer, Mode};

/// Nodes of ranks that know as many ranks at their start as `known` says for each.
fn nodes_that_know(known: &[usize], rails: usize) -> Vec<Box<dyn Node + Send>> {
    let board = Board::new(known.len());
    let secret = Secret::draw().unwrap();
    let port = Port::loopback(Ipv4Addr::LOCALHOST.into());
    let node = |(rank, known): (usize, &usize)| {
        let open = |_| TcpDevice::open(&port, &secret).unwrap();
        let devices = (0..rails).map(open);
        let devices = devices.map(|one| Box::new(one) as Box<dyn HostDevice>);
        let node = HostNode::new(devices.collect(), rank, *known, &secret, board.of(rank));
        Box::new(node.unwrap()) as Box<dyn Node + Send>
    };
    known.iter().enumerate().map(node).collect()
}

pub(crate) fn nodes(ranks: usize, rails: usize) -> Vec<Box<dyn Node + Send>> {
    nodes_that_know(&vec![ranks; ranks], rails)
}

#[test]
fn a_rank_that_starts_later_becomes_a_peer_over_tcp() {
    for rails in [1, 2] {
        let seed = rails as u64;
        let nodes = nodes_that_know(&growth::KNOWN, rails);
        growth::grow_over(nodes, &growth::APART, false, &[], seed);
        // Ranks that share memory open devices when they need some.
        let nodes = nodes_that_know(&[3; 3], rails);
        growth::grow_over(nodes, &growth::TWO_BESIDE, true, &[], seed);
    }
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

/// Over TCP several short sends in a row leave together, with the next progress. One that is
/// complete has left: its rank may then compute for as long as it likes.
#[test]
fn sends_that_are_complete_have_left() {
    let is_all_there = Arc::new(AtomicBool::new(false));
    let seen = is_all_there.clone();
    run_nodes(nodes(2, 1), &[], move |rank| {
        const COUNT: i32 = 8;
        // The connection is made while both ranks make calls.
        random_program::play(rank, 1);
        for round in 0..3 {
            if rank.rank() == 1 {
                for number in 0..COUNT {
                    let status = rank.receive("MPI_Recv", room(&mut [0; 8]), 0, number, WORLD);
                    assert_eq!(status.unwrap().bytes, 8);
                }
                seen.store(true, Ordering::SeqCst);
                rank.send("MPI_Send", Mode::Standard, out(&[]), 0, round, WORLD)
                    .unwrap();
                continue;
            }
            let message = [round as u8; 8];
            let mut requests = Vec::new();
            for number in 0..COUNT {
                let mut state = rank.lock();
                let buffer = out(&message).resolve(state.objects().types()).unwrap();
                let sent = state.send(Mode::Standard, &buffer, 1, number, WORLD);
                requests.push(sent.unwrap());
            }
            let is_open = |id: &&RequestId| {
                let status = rank.lock().requests().peek(**id).unwrap();
                status.is_none()
            };
            let open = requests.iter().filter(is_open).count();
            assert!(open >= COUNT as usize - 2, "{open} wait");
            for id in requests {
                rank.wait("MPI_Wait", id).unwrap();
            }
            let limit = Instant::now() + Duration::from_secs(60);
            while !seen.swap(false, Ordering::SeqCst) {
                assert!(Instant::now() < limit, "a complete send has not left");
                std::thread::yield_now();
            }
            rank.receive("MPI_Recv", room(&mut []), 1, round, WORLD)
                .unwrap();
        }
    });
}
