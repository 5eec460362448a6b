//! Ranks on a modelled machine, simulated as coroutines of this process, so that the simulation's
//! processor time and memory can be measured.
//!
//!     cargo run --release -p mpi --example simulated ping-pong MESSAGES [digest|record]
//!     cargo run --release -p mpi --example simulated allreduce RANKS TIMES [digest|record]
//!
//! `digest` keeps a digest of all events, `record` the events of all processors, buses and links.

use std::sync::Arc;

use datatype::{Buffer, Elements, Op, Predefined};
use model::config::MachineConfig;
use mpi::coll::{Reduction, Work};
use mpi::comm::WORLD;
use mpi::op::Operation;
use mpi::{Mode, Rank};

#[path = "../tests/it/common/modelled.rs"]
mod modelled;

use modelled::{Keep, play, system};

const USAGE: &str = "simulated ping-pong MESSAGES | allreduce RANKS TIMES [digest|record]";

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let keep = match words.pop_if(|last| last == "digest" || last == "record") {
        None => Keep::Nothing,
        Some(last) if last == "digest" => Keep::Digest,
        Some(_) => Keep::Record,
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("usage: {USAGE}"));
    match words[..] {
        ["ping-pong", messages] => {
            let messages = number(messages);
            run(2, keep, move |rank| ping_pong(rank, messages));
        }
        ["allreduce", ranks, times] => {
            let times = number(times);
            run(number(ranks), keep, move |rank| {
                (0..times).for_each(|_| allreduce(rank))
            });
        }
        _ => panic!("usage: {USAGE}"),
    }
}

/// Runs a program on all ranks, one on a host, and prints its virtual time and its events.
fn run(ranks: usize, keep: Keep, program: impl Fn(&Arc<Rank>) + 'static) {
    let scene = MachineConfig::new(&system("edr"), ranks, 1, 1).unwrap_or_else(|why| {
        eprintln!("simulated: {why}");
        std::process::exit(2)
    });
    let run = play(scene, Vec::new(), keep, program);
    let last = run.times.iter().max().copied().unwrap_or(0);
    println!("{last} ns of virtual time, {} events", run.events);
}

fn ping_pong(rank: &Rank, messages: usize) {
    let peer = 1 - rank.rank() as i32;
    let mut bytes = [0u8; 8];
    // SAFETY: the bytes stay until each call is complete, and nobody else uses them.
    let buffer = unsafe { Buffer::dense(bytes.as_mut_ptr(), bytes.len()) };
    for message in 0..messages {
        if message % 2 == rank.rank() {
            rank.send("MPI_Send", Mode::Standard, buffer.clone(), peer, 0, WORLD)
                .unwrap();
        } else {
            rank.receive("MPI_Recv", buffer.clone(), peer, 0, WORLD)
                .unwrap();
        }
    }
}

fn allreduce(rank: &Rank) {
    let mut sum = 1u64.to_ne_bytes();
    // SAFETY: as above.
    let elements = unsafe { Elements::new(sum.as_mut_ptr(), 1, &Predefined::UINT64_T.into()) };
    let reduction = Reduction {
        send: None,
        receive: Some(elements),
        op: Operation::Predefined(Op::Sum),
    };
    rank.collective("MPI_Allreduce", &Work::Allreduce(reduction), WORLD)
        .unwrap();
    assert_eq!(u64::from_ne_bytes(sum), rank.size() as u64);
}
