//! Messages between peers without rings on a modelled machine: they have credit for several
//! messages, however many peers a rank has.

use std::sync::{Arc, Mutex};

use crate::common::modelled::{Keep, play, system};
use crate::common::{out, pattern, room};
use model::config::MachineConfig;
use mpi::coll::Work;
use mpi::comm::WORLD;
use mpi::{Mode, Rank};

const RANKS: usize = 60;
const BYTES: usize = 512;
const MESSAGES: usize = 400;

/// Sends messages to one rank while those of another arrive.
fn exchange(rank: &Arc<Rank>, (from, to): (usize, usize), messages: usize) {
    let bytes = pattern(BYTES, rank.rank());
    let expected = pattern(BYTES, from);
    let mut bodies = vec![vec![0; BYTES]; messages];
    let mut requests = Vec::new();
    for body in &mut bodies {
        let id = rank.lock().receive(room(body), from as i32, 5, WORLD);
        requests.push(id.unwrap());
    }
    for _ in 0..messages {
        let id = rank
            .lock()
            .send(Mode::Standard, &out(&bytes), to as i32, 5, WORLD);
        requests.push(id.unwrap());
    }
    for id in requests {
        rank.wait("MPI_Wait", id).unwrap();
    }
    assert!(bodies.iter().all(|body| *body == expected));
}

/// Virtual nanoseconds of a message in a stream from each rank to the next one, behind one message
/// between every two ranks.
fn message(rings: &'static str) -> u64 {
    let scene = MachineConfig::new(&system("qdr"), RANKS, 1, 1).unwrap();
    let longest = Arc::new(Mutex::new(0));
    let seen = longest.clone();
    // Rings send several short messages as one.
    let settings = vec![
        ("FISHPLATE_RDMA_RINGS", rings),
        ("FISHPLATE_RDMA_GATHER", "off"),
    ];
    play(scene, settings, Keep::Nothing, move |rank| {
        let me = rank.rank();
        for shift in 1..RANKS {
            exchange(
                rank,
                ((me + RANKS - shift) % RANKS, (me + shift) % RANKS),
                1,
            );
        }
        let barrier = Work::Barrier;
        rank.collective("MPI_Barrier", &barrier, WORLD).unwrap();
        let begin = rank.now();
        exchange(rank, ((me + RANKS - 1) % RANKS, (me + 1) % RANKS), MESSAGES);
        let mut longest = seen.lock().unwrap();
        *longest = (rank.now() - begin).max(*longest);
    });
    let longest = *longest.lock().unwrap();
    longest / MESSAGES as u64
}

#[test]
fn a_message_without_a_ring_takes_no_round_trip() {
    let [with, without] = ["64", "0"].map(message);
    eprintln!("{with} ns a message with rings, {without} ns without");
    assert!(without < 2 * with, "{with} and {without} ns");
}
