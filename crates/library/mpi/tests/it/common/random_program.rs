//! Random programs, made from a seed: messages of all modes and sizes, wildcards, collectives,
//! communicators. They are correct MPI, so over any transport they must end, with no message lost,
//! doubled or overtaken.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use datatype::{Op, Predefined};
use mpi::coll::{Blocks, Reduction, Work};
use mpi::comm::WORLD;
use mpi::op::Operation;
use mpi::request::RequestId;
use mpi::{ANY_SOURCE, ANY_TAG, Mode, Rank, Status};
use sim::Random;

use super::{elements, out, pattern, room};

/// The seed that `SEED` names: the test runs this one only, and says more about it.
pub(crate) fn only_seed() -> Option<u64> {
    number("SEED")
}

/// Seeds to run: the one of `SEED`, or `SEEDS` of them, `usual` where that is not set. They begin
/// with the one that `FIRST_SEED` names.
pub(crate) fn seeds(usual: u64) -> Range<u64> {
    match only_seed() {
        Some(seed) => seed..seed + 1,
        None => {
            let first = number("FIRST_SEED").unwrap_or(0);
            first..first + number("SEEDS").unwrap_or(usual)
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the program of a seed. All ranks of a job call this with one seed.
pub(crate) fn play(rank: &Arc<Rank>, seed: u64) {
    play_on(rank, WORLD, seed);
}

/// Runs the program of a seed on a communicator. All members call this with one seed.
pub(crate) fn play_on(rank: &Arc<Rank>, comm: u32, seed: u64) {
    let mut random = Random::new(seed);
    let (me, size) = place(rank, comm);
    for phase in 0..2 + random.below(4) {
        let (kind, seed) = (random.below(10), random.word());
        match kind {
            8 | 9 => rounds(rank, comm, me, size, seed),
            0 => collectives(rank, comm, me, size, seed),
            1 => on_a_part(rank, comm, seed, phase),
            2 => on_a_copy(rank, comm, seed, phase),
            _ => storm(rank, comm, me, size, seed, phase),
        }
    }
}

/// This rank's number in a communicator, and the number of members.
fn place(rank: &Rank, comm: u32) -> (usize, usize) {
    let state = rank.lock();
    let core = &state.objects().comms().get(comm).unwrap().core;
    (core.rank, core.size())
}

fn on_a_copy(rank: &Arc<Rank>, comm: u32, seed: u64, phase: u64) {
    let (me, size) = place(rank, comm);
    let comm = rank.comm_dup("MPI_Comm_dup", comm, &[]).unwrap();
    storm(rank, comm, me, size, seed, phase);
    rank.comm_free(comm).unwrap();
}

fn on_a_part(rank: &Arc<Rank>, comm: u32, seed: u64, phase: u64) {
    let mut random = Random::new(seed);
    let (me, size) = place(rank, comm);
    let colors: Vec<i32> = (0..size).map(|_| random.below(2) as i32).collect();
    let mine = colors[me];
    let members: Vec<usize> = (0..size).filter(|&other| colors[other] == mine).collect();
    let me = members.iter().position(|&member| member == me).unwrap();
    let comm = rank.comm_split("MPI_Comm_split", comm, mine, 0).unwrap();
    let seed = seed.wrapping_add(mine as u64);
    storm(rank, comm, me, members.len(), seed, phase);
    collectives(rank, comm, me, members.len(), seed);
    rank.comm_free(comm).unwrap();
}

fn barrier(rank: &Arc<Rank>, comm: u32) {
    rank.collective("MPI_Barrier", &Work::Barrier, comm)
        .unwrap();
}

fn collectives(rank: &Arc<Rank>, comm: u32, me: usize, size: usize, seed: u64) {
    let mut random = Random::new(seed);
    for _ in 0..1 + random.below(3) {
        let len = [0, 8, 1000, 40_000][random.below(4) as usize];
        let root = random.below(size as u64) as usize;
        match random.below(3) {
            0 => barrier(rank, comm),
            1 => {
                let sent = pattern(len, root);
                let mut bytes = if me == root {
                    sent.clone()
                } else {
                    vec![0; len]
                };
                let work = Work::Bcast {
                    buffer: room(&mut bytes),
                    root: root as i32,
                };
                rank.collective("MPI_Bcast", &work, comm).unwrap();
                assert!(bytes == sent, "{len} bytes from {root}");
            }
            _ => {
                let block = |from: usize, to: usize| pattern(len, from * 31 + to);
                let mut send: Vec<u8> = (0..size).flat_map(|to| block(me, to)).collect();
                let mut receive = vec![0; len * size];
                let work = Work::Alltoall {
                    send: Some(Blocks::even(room(&mut send), size)),
                    receive: Blocks::even(room(&mut receive), size),
                };
                rank.collective("MPI_Alltoall", &work, comm).unwrap();
                let expected: Vec<u8> = (0..size).flat_map(|from| block(from, me)).collect();
                assert!(receive == expected, "{len} bytes from each");
            }
        }
    }
    let mut sum = (me as u64 + 1).to_ne_bytes();
    let reduction = Reduction {
        send: None,
        receive: Some(elements(&mut sum, 1, &Predefined::UINT64_T.into())),
        op: Operation::Predefined(Op::Sum),
    };
    rank.collective("MPI_Allreduce", &Work::Allreduce(reduction), comm)
        .unwrap();
    assert_eq!(u64::from_ne_bytes(sum), (size * (size + 1) / 2) as u64);
}

/// Names in the posted receives of a rank. One rule holds for all of them, so that no receive
/// takes a message that another needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    Exact,
    AnySource,
    AnyTag,
    Anything,
}

struct Message {
    from: usize,
    to: usize,
    tag: i32,
    len: usize,
    mode: Mode,
}

const HEAD: usize = 16;

impl Message {
    fn random(random: &mut Random, size: u64, ready: bool) -> Message {
        let len = match random.below(16) {
            0 => 200_000 + random.below(100_000),
            1..=3 => 20_000 + random.below(40_000),
            4..=7 => 500 + random.below(3_000),
            _ => random.below(60),
        };
        let mode = match random.below(8) {
            0 => Mode::Synchronous,
            1 if ready => Mode::Ready,
            _ => Mode::Standard,
        };
        Message {
            from: random.below(size) as usize,
            to: random.below(size) as usize,
            tag: random.below(3) as i32,
            len: HEAD + len as usize,
            mode,
        }
    }

    /// The sender, the number of this message among those to its receiver, and a pattern.
    fn body(&self, number: u64) -> Vec<u8> {
        let mut body = pattern(self.len, self.from * 7 + number as usize);
        body[..8].copy_from_slice(&(self.from as u64).to_ne_bytes());
        body[8..HEAD].copy_from_slice(&number.to_ne_bytes());
        body
    }
}

/// Many messages between all members.
// Over 80 lines: one program, from the plan to its check.
fn storm(rank: &Arc<Rank>, comm: u32, me: usize, size: usize, seed: u64, phase: u64) {
    let mut random = Random::new(seed);
    let posted_first = random.below(2) == 0;
    let count = 1 + random.below(10 * size as u64);
    let messages: Vec<Message> = (0..count)
        .map(|_| Message::random(&mut random, size as u64, posted_first))
        .collect();
    // Decisions of this rank alone.
    let mut own = Random::new(seed ^ (me as u64 + 1).wrapping_mul(0x1234_5678_9abc_def1) ^ phase);
    let naming = [
        Naming::Exact,
        Naming::AnySource,
        Naming::AnyTag,
        Naming::Anything,
    ];
    let naming = naming[own.below(4) as usize];
    let mine: Vec<&Message> = messages.iter().filter(|message| message.to == me).collect();
    let longest = mine.iter().map(|message| message.len).max().unwrap_or(0);
    let mut bodies = vec![vec![0u8; longest]; mine.len()];
    let mut receives: Vec<Option<RequestId>> = Vec::new();
    let named = |message: &Message| {
        let source = match naming {
            Naming::AnySource | Naming::Anything => ANY_SOURCE,
            _ => message.from as i32,
        };
        let tag = match naming {
            Naming::AnyTag | Naming::Anything => ANY_TAG,
            _ => message.tag,
        };
        (source, tag)
    };
    if posted_first {
        for (message, body) in mine.iter().zip(&mut bodies) {
            let (source, tag) = named(message);
            let id = rank.lock().receive(room(body), source, tag, comm).unwrap();
            receives.push(Some(id));
        }
        barrier(rank, comm);
    }
    let mut numbers: HashMap<usize, u64> = HashMap::new();
    let sent: Vec<(&Message, Vec<u8>)> = messages
        .iter()
        .filter(|message| message.from == me)
        .map(|message| {
            let number = numbers.entry(message.to).or_default();
            *number += 1;
            (message, message.body(*number))
        })
        .collect();
    let mut sends: Vec<RequestId> = Vec::new();
    for (message, body) in &sent {
        let to = message.to as i32;
        let id = rank
            .lock()
            .send(message.mode, &out(body), to, message.tag, comm)
            .unwrap();
        sends.push(id);
    }
    let mut statuses: Vec<Option<Status>> = vec![None; mine.len()];
    if posted_first {
        let mut left: Vec<usize> = (0..mine.len()).collect();
        while !left.is_empty() {
            let at = left.swap_remove(own.below(left.len() as u64) as usize);
            let id = receives[at].take().unwrap();
            statuses[at] = Some(rank.wait("MPI_Wait", id).unwrap());
        }
    } else {
        for (at, (message, body)) in mine.iter().zip(&mut bodies).enumerate() {
            let (source, tag) = named(message);
            statuses[at] = Some(
                rank.receive("MPI_Recv", room(body), source, tag, comm)
                    .unwrap(),
            );
        }
    }
    for id in sends {
        rank.wait("MPI_Wait", id).unwrap();
    }
    check(&mine, &bodies, &statuses, &messages, me);
    barrier(rank, comm);
}

/// Rounds in which each member sends long and short messages with one tag to the right. Receives
/// with equal envelopes are posted again and again, among others with wildcards, and some are
/// cancelled.
fn rounds(rank: &Arc<Rank>, comm: u32, me: usize, size: usize, seed: u64) {
    let mut random = Random::new(seed);
    let mut own = Random::new(seed ^ (me as u64 + 1).wrapping_mul(0x1234_5678_9abc_def1));
    let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    for round in 0..3 + random.below(8) {
        let tag = random.below(2) as i32;
        let count = 1 + random.below(3) as usize;
        let mut bodies = |_| -> Vec<Vec<u8>> {
            let len = |random: &mut Random| match random.below(4) {
                0 => random.below(2_000),
                _ => 34_000 + random.below(80_000),
            };
            let lens = (0..count).map(|_| len(&mut random) as usize);
            let lens: Vec<usize> = lens.collect();
            let number = |at: usize| (round as usize * 8 + at) * 5;
            let bodies = lens.iter().enumerate();
            bodies.map(|(at, len)| pattern(*len, number(at))).collect()
        };
        let all: Vec<Vec<Vec<u8>>> = (0..size).map(&mut bodies).collect();
        let taking_back = random.below(3) == 0;
        let mut rooms = vec![vec![0u8; 120_000]; count];
        let mut receives = Vec::new();
        let mut sends = Vec::new();
        let mut post = |own: &mut Random| {
            for body in &mut rooms {
                let source = if own.below(8) == 0 {
                    ANY_SOURCE
                } else {
                    left as i32
                };
                let tag = if own.below(8) == 0 { ANY_TAG } else { tag };
                receives.push(rank.lock().receive(room(body), source, tag, comm).unwrap());
            }
        };
        let early = own.below(4) > 0;
        if early {
            post(&mut own);
            progress(rank, &mut own);
        }
        for body in &all[me] {
            let mode = [Mode::Standard, Mode::Synchronous][own.below(2) as usize];
            let id = rank.lock().send(mode, &out(body), right as i32, tag, comm);
            sends.push(id.unwrap());
        }
        if !early {
            post(&mut own);
        }
        for (id, sent) in receives.iter().zip(&all[left]) {
            let status = rank.wait("MPI_Wait", *id).unwrap();
            assert_eq!((status.source, status.tag), (left as i32, tag));
            assert_eq!(status.bytes as usize, sent.len());
        }
        for (room, sent) in rooms.iter().zip(&all[left]) {
            assert!(room[..sent.len()] == sent[..], "round {round}");
        }
        for id in sends {
            rank.wait("MPI_Wait", id).unwrap();
        }
        if taking_back {
            let body = &mut rooms[0];
            let mut state = rank.lock();
            let id = state.receive(room(body), left as i32, tag, comm).unwrap();
            drop(state);
            progress(rank, &mut own);
            rank.lock().cancel(id).unwrap();
            let status = rank.wait("MPI_Wait", id).unwrap();
            assert!(status.cancelled, "nobody has sent this");
            barrier(rank, comm);
        }
    }
    barrier(rank, comm);
}

/// Windows of messages with few tags, from 0 bytes to 40 KiB, between neighbours in both directions.
/// Receives are posted early or late, some with wildcards; some are longer than their message, some
/// wait for a while, and some are cancelled.
pub(crate) fn windows(rank: &Arc<Rank>, seed: u64) {
    let (me, size) = (rank.rank(), rank.size());
    let mut random = Random::new(seed);
    let mut own = Random::new(seed ^ (me as u64 + 1).wrapping_mul(0x1234_5678_9abc_def1));
    let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    for window in 0..4 + random.below(10) {
        let tags = 1 + random.below(3);
        let kind = random.below(4);
        let mut body = |at: u64| {
            let len = match (kind, random.below(8)) {
                (_, 0) => random.below(2_000),
                (0, _) => 17_000 + random.below(24_000),
                (_, 1) => random.below(40_000),
                _ => 2_048 + random.below(14_000),
            };
            (
                at % tags,
                pattern(len as usize, (window * 64 + at) as usize),
            )
        };
        let count = 1 + count_of(seed, window);
        let sent: Vec<Vec<(u64, Vec<u8>)>> = (0..size)
            .map(|_| (0..count).map(&mut body).collect())
            .collect();
        let expected = &sent[left];
        let early = own.below(3) > 0;
        let mut rooms: Vec<Vec<u8>> = expected
            .iter()
            .map(|(_, body)| vec![0; body.len() + own.below(3) as usize * 700])
            .collect();
        let mut receives = Vec::new();
        let mut post = |own: &mut Random| {
            for (room_of_it, (tag, _)) in rooms.iter_mut().zip(expected) {
                let wild = tags == 1 && own.below(16) == 0;
                let source = if wild { ANY_SOURCE } else { left as i32 };
                let id = rank
                    .lock()
                    .receive(room(room_of_it), source, *tag as i32, WORLD);
                receives.push(id.unwrap());
                if own.below(8) == 0 {
                    rank.progress().unwrap();
                }
            }
        };
        if early {
            post(&mut own);
            progress(rank, &mut own);
        }
        let mut sends = Vec::new();
        for (tag, body) in &sent[me] {
            let mode = [Mode::Standard, Mode::Synchronous][usize::from(own.below(8) == 0)];
            let id = rank
                .lock()
                .send(mode, &out(body), right as i32, *tag as i32, WORLD);
            sends.push(id.unwrap());
            if own.below(4) == 0 {
                progress(rank, &mut own);
            }
        }
        if !early {
            post(&mut own);
        }
        let mut waiting: Vec<_> = receives.iter().zip(expected).collect();
        while !waiting.is_empty() {
            let at = own.below(waiting.len() as u64) as usize;
            let (id, (tag, body)) = waiting.swap_remove(at);
            let status = rank.wait("MPI_Wait", *id).unwrap();
            assert_eq!((status.source, status.tag), (left as i32, *tag as i32));
            assert_eq!(status.bytes as usize, body.len());
        }
        for (at, (room, (_, body))) in rooms.iter().zip(expected).enumerate() {
            assert!(
                room[..body.len()] == body[..],
                "message {at} of window {window}"
            );
        }
        for id in sends {
            rank.wait("MPI_Wait", id).unwrap();
        }
        if count_of(seed, window).is_multiple_of(3) {
            cancel_receives(rank, left as i32, &mut own);
            barrier(rank, WORLD);
        }
    }
    barrier(rank, WORLD);
}

/// The number of a window's messages, without the first. It is equal on all ranks.
fn count_of(seed: u64, window: u64) -> u64 {
    Random::new(seed ^ window << 32).below(40)
}

/// Posts receives that nothing is sent for, and cancels them in any order.
fn cancel_receives(rank: &Arc<Rank>, source: i32, own: &mut Random) {
    let mut rooms = vec![vec![0u8; 5_000]; 1 + own.below(20) as usize];
    let mut receives: Vec<RequestId> = rooms
        .iter_mut()
        .map(|body| rank.lock().receive(room(body), source, 0, WORLD).unwrap())
        .collect();
    progress(rank, own);
    while !receives.is_empty() {
        let id = receives.swap_remove(own.below(receives.len() as u64) as usize);
        rank.lock().cancel(id).unwrap();
        let status = rank.wait("MPI_Wait", id).unwrap();
        assert!(status.cancelled, "nobody has sent this");
    }
}

/// Makes progress a random number of times.
fn progress(rank: &Arc<Rank>, own: &mut Random) {
    for _ in 0..own.below(40) {
        rank.progress().unwrap();
    }
}

/// Checks that each message arrived once, unchanged, and in the order of sending.
fn check(
    mine: &[&Message],
    bodies: &[Vec<u8>],
    statuses: &[Option<Status>],
    messages: &[Message],
    me: usize,
) {
    let mut expected: HashMap<(usize, u64), &Message> = HashMap::new();
    let mut numbers: HashMap<usize, u64> = HashMap::new();
    for message in messages.iter().filter(|message| message.to == me) {
        let number = numbers.entry(message.from).or_default();
        *number += 1;
        expected.insert((message.from, *number), message);
    }
    let mut last: HashMap<(usize, i32), u64> = HashMap::new();
    for ((body, status), _) in bodies.iter().zip(statuses).zip(mine) {
        let status = status.unwrap();
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| body[at + i]));
        let (from, number) = (word(0) as usize, word(8));
        let message = expected
            .remove(&(from, number))
            .expect("a message that was sent, once");
        assert_eq!(status.source, from as i32);
        assert_eq!(
            (status.tag, status.bytes as usize),
            (message.tag, message.len)
        );
        assert!(
            body[..message.len] == message.body(number),
            "the bytes of message {number} of {from}"
        );
        // Receives are in the order of posting: messages of one sender and tag arrive in order.
        let before = last.insert((from, message.tag), number);
        assert!(
            before < Some(number),
            "message {number} of {from} was overtaken"
        );
    }
    assert!(expected.is_empty());
}
