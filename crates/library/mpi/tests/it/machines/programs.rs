//! The programs whose time is compared: messages of two ranks, and collective calls.

use std::sync::Arc;

use mpi::coll::{Blocks, Work};
use mpi::comm::WORLD;
use mpi::{Mode, Rank};

use crate::common::{out, room};

const NAME: &str = "MPI_Test";

/// A program of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// A message to and fro.
    Latency,
    /// A window of messages in one direction, and an answer.
    OneDirection,
    /// A window of messages in both directions, and an answer.
    BothDirections,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
}

impl Program {
    pub(super) const MESSAGES: [Program; 3] = [
        Program::Latency,
        Program::OneDirection,
        Program::BothDirections,
    ];
    pub(super) const COLLECTIVES: [Program; 5] = [
        Program::Bcast,
        Program::Gather,
        Program::Scatter,
        Program::Allgather,
        Program::Alltoall,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Program::Latency => "latency",
            Program::OneDirection => "bw",
            Program::BothDirections => "bibw",
            Program::Bcast => "bcast",
            Program::Gather => "gather",
            Program::Scatter => "scatter",
            Program::Allgather => "allgather",
            Program::Alltoall => "alltoall",
        }
    }

    /// The procedure whose alternatives apply.
    pub(super) fn procedure(self) -> &'static str {
        match self {
            Program::Latency | Program::OneDirection | Program::BothDirections => "MPI_Send",
            Program::Bcast => "MPI_Bcast",
            Program::Gather => "MPI_Gather",
            Program::Scatter => "MPI_Scatter",
            Program::Allgather => "MPI_Allgather",
            Program::Alltoall => "MPI_Alltoall",
        }
    }

    /// Number of messages of a step from each rank that sends, or of calls.
    pub(super) fn per_step(self) -> usize {
        match self {
            Program::OneDirection | Program::BothDirections => WINDOW,
            _ => 1,
        }
    }

    /// Number of messages of a step that wait for each other.
    pub(super) fn messages_in_a_row(self) -> usize {
        match self {
            Program::Latency => 2,
            _ => 1,
        }
    }
}

/// Number of messages of a window.
const WINDOW: usize = 16;

/// The memory of a rank for a program with messages or blocks of `len` bytes.
pub(super) struct Memory {
    send: Vec<u8>,
    receive: Vec<u8>,
    len: usize,
}

impl Memory {
    pub(super) fn new(program: Program, len: usize, size: usize) -> Memory {
        let blocks = match program {
            Program::OneDirection | Program::BothDirections | Program::Latency => 1,
            _ => size,
        };
        Memory {
            send: vec![0; len * blocks],
            receive: vec![0; len * blocks],
            len,
        }
    }
}

/// One step of a program.
pub(super) fn step(rank: &Arc<Rank>, program: Program, memory: &mut Memory) {
    match program {
        Program::Latency => to_and_fro(rank, memory),
        Program::OneDirection => window(rank, memory, [true, false]),
        Program::BothDirections => window(rank, memory, [true, true]),
        _ => collective(rank, program, memory),
    }
}

fn to_and_fro(rank: &Rank, memory: &mut Memory) {
    let peer = 1 - rank.rank() as i32;
    for sender in [0, 1] {
        if rank.rank() == sender {
            rank.send(NAME, Mode::Blocking, out(&memory.send), peer, 1, WORLD)
                .unwrap();
        } else {
            let into = room(&mut memory.receive);
            rank.receive(NAME, into, peer, 1, WORLD).unwrap();
        }
    }
}

/// A window of messages from each rank for which `sends` is true; then the second rank answers.
fn window(rank: &Rank, memory: &mut Memory, sends: [bool; 2]) {
    let me = rank.rank();
    let peer = 1 - me as i32;
    let mut requests = Vec::new();
    if sends[1 - me] {
        for _ in 0..WINDOW {
            let into = room(&mut memory.receive);
            requests.push(rank.lock().receive(into, peer, 1, WORLD).unwrap());
        }
    }
    if sends[me] {
        for _ in 0..WINDOW {
            let from = out(&memory.send);
            let sent = rank.lock().send(Mode::Standard, &from, peer, 1, WORLD);
            requests.push(sent.unwrap());
        }
    }
    for request in requests {
        rank.wait(NAME, request).unwrap();
    }
    if me == 1 {
        rank.send(NAME, Mode::Blocking, out(&[1]), peer, 2, WORLD)
            .unwrap();
    } else {
        rank.receive(NAME, room(&mut [0]), peer, 2, WORLD).unwrap();
    }
}

fn collective(rank: &Rank, program: Program, memory: &mut Memory) {
    let (size, root, is_root) = (rank.size(), 0, rank.rank() == 0);
    let len = memory.len;
    let own = out(&memory.send[..len]);
    let work = match program {
        Program::Bcast => Work::Bcast {
            buffer: room(&mut memory.receive[..len]),
            root,
        },
        Program::Gather => Work::Gather {
            send: Some(own),
            receive: is_root.then(|| Blocks::even(room(&mut memory.receive), size)),
            root,
        },
        Program::Scatter => Work::Scatter {
            send: is_root.then(|| Blocks::even(out(&memory.send), size)),
            receive: Some(room(&mut memory.receive[..len])),
            root,
        },
        Program::Allgather => Work::Allgather {
            send: Some(own),
            receive: Blocks::even(room(&mut memory.receive), size),
        },
        _ => Work::Alltoall {
            send: Some(Blocks::even(out(&memory.send), size)),
            receive: Blocks::even(room(&mut memory.receive), size),
        },
    };
    rank.collective(NAME, &work, WORLD).unwrap();
}
