//! Ranks on a modelled machine, simulated as coroutines of this process, so that the simulation's
//! processor time and memory can be measured.
//!
//!     cargo run --release -p mpi --example simulated ping-pong MESSAGES [digest|record]
//!     cargo run --release -p mpi --example simulated allreduce RANKS TIMES [digest|record]
//!     cargo run --release -p mpi --example simulated halo3d RANKS STEPS [digest|record]
//!
//! `digest` keeps a digest of all events, `record` the events of all processors, buses and links.
//! More ranks than the network connects hosts share hosts, as few as possible on each.
//!
//! Two lines are printed. The first has what the modelled machine did, with a fingerprint of the
//! virtual times at which the ranks ended: it changes only with the model. The second has what
//! that cost here: processor time until the last rank had started, until the last rank had done
//! its first allreduce or step, which makes connections, and until the end; packets with data a
//! second of all this; and the largest resident memory a rank.

use std::cell::Cell;
use std::fs::read_to_string;
use std::rc::Rc;
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

const USAGE: &str =
    "simulated ping-pong MESSAGES | allreduce RANKS TIMES | halo3d RANKS STEPS [digest|record]";

/// The length of a face that neighbours of `halo3d` exchange, in bytes.
const FACE: usize = 1024;

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
            run(2, keep, move |rank, _| ping_pong(rank, messages));
        }
        ["allreduce", ranks, times] => {
            let times = number(times);
            run(number(ranks), keep, move |rank, stages| {
                for _ in 0..times {
                    allreduce(rank);
                    stages.connected(rank);
                }
            });
        }
        ["halo3d", ranks, steps] => {
            let steps = number(steps);
            run(number(ranks), keep, move |rank, stages| {
                halo3d(rank, steps, stages)
            });
        }
        _ => panic!("usage: {USAGE}"),
    }
}

/// Processor time at the ends of the stages of a run.
#[derive(Default)]
struct Stages {
    started: Cell<f64>,
    connected: Cell<f64>,
    /// The number of records that have counted for the end of the second stage.
    ranks: Cell<usize>,
}

impl Stages {
    /// Records that a rank has done an allreduce or a step. As many records count as there are
    /// ranks, which stay close together because they all take part in the allreduce.
    fn connected(&self, rank: &Rank) {
        if self.ranks.get() < rank.size() {
            self.ranks.set(self.ranks.get() + 1);
            self.connected.set(processor_seconds());
        }
    }
}

/// Runs a program on all ranks, and prints its virtual times and what it cost.
fn run(ranks: usize, keep: Keep, program: impl Fn(&Arc<Rank>, &Stages) + 'static) {
    let of_hosts = |per_host| MachineConfig::new(&system("edr"), ranks, per_host, 1);
    let scene = (1..9).find_map(|per_host| of_hosts(per_host).ok());
    let scene = scene.unwrap_or_else(|| {
        eprintln!("simulated: {ranks} ranks are too many for the network");
        std::process::exit(2)
    });
    let stages = Rc::new(Stages::default());
    let passed = stages.clone();
    let began = processor_seconds();
    let run = play(scene, Vec::new(), keep, move |rank| {
        passed.started.set(processor_seconds());
        program(rank, &passed)
    });
    let took = processor_seconds() - began;
    let last = run.times.iter().max().copied().unwrap_or(0);
    println!(
        "{last} ns of virtual time, fingerprint {:016x}, {} events, {} packets with data",
        fingerprint(&run.times),
        run.events,
        run.packets
    );
    println!(
        "{ranks} ranks: started {:.2} s, connected {:.2} s, ended {took:.2} s, {:.0} packets a second, {} KiB a rank",
        stages.started.get() - began,
        (stages.connected.get() - began).max(0.0),
        run.packets as f64 / took,
        peak_kib() / ranks as u64
    );
}

/// A number that differs for almost all other lists of times (FNV-1a).
fn fingerprint(times: &[u64]) -> u64 {
    let bytes = times.iter().flat_map(|time| time.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The processor time of this thread, on which all ranks run.
fn processor_seconds() -> f64 {
    let words = read_to_string("/proc/thread-self/schedstat").expect("Linux counts time");
    let nanos = words.split(' ').next().expect("it has three numbers");
    nanos.parse::<f64>().expect("they are decimal") / 1e9
}

/// The largest resident memory of this process so far, in KiB.
fn peak_kib() -> u64 {
    let words = read_to_string("/proc/self/status").expect("Linux tells the memory");
    let line = words.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.map_or(0, |number| number.parse().expect("it is decimal"))
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

/// Exchanges a face with each of six neighbours in a periodic grid, and then adds up a number, in
/// each step.
fn halo3d(rank: &Arc<Rank>, steps: usize, stages: &Stages) {
    let neighbours = neighbours(rank.rank(), grid(rank.size()));
    let mut faces = [[0u8; FACE]; 12];
    let buffers = faces.each_mut();
    // SAFETY: each face is the buffer of one request at a time, and outlives all of them.
    let buffers = buffers.map(|face| unsafe { Buffer::dense(face.as_mut_ptr(), FACE) });
    for _ in 0..steps {
        let mut requests = Vec::with_capacity(12);
        for (at, &peer) in neighbours.iter().enumerate() {
            // The message from the left has left as one to the right.
            let tag = (at ^ 1) as i32;
            let buffer = buffers[at].clone();
            requests.push(rank.lock().receive(buffer, peer, tag, WORLD).unwrap());
        }
        for (at, &peer) in neighbours.iter().enumerate() {
            let (buffer, tag) = (&buffers[6 + at], at as i32);
            let id = rank.lock().send(Mode::Standard, buffer, peer, tag, WORLD);
            requests.push(id.unwrap());
        }
        for id in requests {
            rank.wait("MPI_Waitall", id).unwrap();
        }
        allreduce(rank);
        stages.connected(rank);
    }
}

/// The most cubic grid of this many ranks.
fn grid(ranks: usize) -> [usize; 3] {
    let divides = |of: usize| move |part: &usize| of.is_multiple_of(*part);
    let longest = |a: usize, b: usize| ranks / a / b;
    let pairs = (1..=ranks)
        .take_while(|a| a * a * a <= ranks)
        .filter(divides(ranks));
    let grids = pairs.flat_map(|a| {
        let rest = ranks / a;
        let second = (a..=rest).take_while(move |b| b * b <= rest);
        second
            .filter(divides(rest))
            .map(move |b| [a, b, longest(a, b)])
    });
    grids.min_by_key(|grid| grid[2]).unwrap_or([1, 1, ranks])
}

/// The ranks before and after a rank, in each dimension of a periodic grid.
fn neighbours(rank: usize, grid: [usize; 3]) -> [i32; 6] {
    let strides = [grid[1] * grid[2], grid[2], 1];
    std::array::from_fn(|side| {
        let (dimension, forward) = (side / 2, side % 2 == 1);
        let (extent, stride) = (grid[dimension], strides[dimension]);
        let own = rank / stride % extent;
        let other = (own + if forward { 1 } else { extent - 1 }) % extent;
        (rank + other * stride - own * stride) as i32
    })
}
