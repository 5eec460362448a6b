//! Measures how fast ranks on a modelled machine are simulated, as coroutines of this process.
//!
//!     cargo run --release -p mpi --example simulated [RANKS] [digest|record]
//!
//! `digest` keeps a digest of all events, `record` the events of all processors, buses and links.

use std::time::Instant;

use datatype::{Buffer, Elements, Op, Predefined};
use model::config::MachineConfig;
use mpi::Mode;
use mpi::coll::{Reduction, Work};
use mpi::comm::WORLD;
use mpi::op::Operation;

#[path = "../tests/it/common/modelled.rs"]
mod modelled;

use modelled::{Keep, play, system};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |option: &str| words.iter().any(|word| word == option);
    let keep = match (has("record"), has("digest")) {
        (true, _) => Keep::Record,
        (false, true) => Keep::Digest,
        (false, false) => Keep::Nothing,
    };
    let ranks = words.iter().find_map(|word| word.parse().ok());
    ping_pong(keep);
    allreduce(ranks.unwrap_or(1024), keep);
}

fn ping_pong(keep: Keep) {
    const ROUNDS: usize = 500_000;
    let scene = MachineConfig::new(&system("qdr"), 2, 1, 1).unwrap();
    let start = Instant::now();
    let run = play(scene, Vec::new(), keep, |rank| {
        let peer = 1 - rank.rank() as i32;
        let mut bytes = [0u8; 8];
        // SAFETY: the bytes stay until each call is complete, and nobody else uses them.
        let buffer = unsafe { Buffer::dense(bytes.as_mut_ptr(), bytes.len()) };
        for turn in 0..2 * ROUNDS {
            if turn % 2 == rank.rank() {
                rank.send("MPI_Send", Mode::Standard, buffer.clone(), peer, 0, WORLD)
                    .unwrap();
            } else {
                rank.receive("MPI_Recv", buffer.clone(), peer, 0, WORLD)
                    .unwrap();
            }
        }
    });
    let rate = 2.0 * ROUNDS as f64 / start.elapsed().as_secs_f64();
    let one_way = run.times[0] as f64 / (2.0 * ROUNDS as f64);
    println!(
        "8 B ping-pong: {:.0} thousand messages a second, {one_way:.0} ns of virtual time each, {} events",
        rate / 1e3,
        run.events
    );
}

fn allreduce(ranks: usize, keep: Keep) {
    let scene = MachineConfig::new(&system("azure-hbv3"), ranks, 16, 1).unwrap();
    let start = Instant::now();
    let run = play(scene, Vec::new(), keep, |rank| {
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
    });
    let last = run.times.iter().max().copied().unwrap_or(0);
    println!(
        "8 B allreduce on {ranks} ranks: {:.2} s of wall-clock time, {:.0} us of virtual time with its connections, {} events, {} MiB",
        start.elapsed().as_secs_f64(),
        last as f64 / 1e3,
        run.events,
        most_memory() >> 10
    );
}

/// Peak memory of this process, in KiB.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
