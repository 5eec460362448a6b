//! Traffic of collective operations, and of those that make communicators.

use std::sync::Arc;

use mpi::coll::{Blocks, Work};
use mpi::comm::WORLD;
use mpi::{Error, Rank, RemoteLeader, Result};
use sim::Random;

use super::player::Player;
use crate::common::random_between::{BetweenCase, kinds};
use crate::common::random_collectives::{Case, Kind, Prepared};
use crate::common::{pattern, room};

const NAME: &str = "MPI_Test";

/// The most bytes of a vector or block.
const MOST: usize = 50_000;

/// A collective operation of a round, which depends on the seed of the case.
fn prepare(player: &Player, round: u64, number: usize, members: usize, me: usize) -> Prepared {
    let turn = player.case.seed / 5 + round + number as u64;
    let kind = Kind::ALL[turn as usize % Kind::ALL.len()];
    let mut random = Random::new(player.case.seed << 16 ^ round << 8 ^ number as u64);
    let mut case = Case::new(kind, members, &mut random);
    case.bytes = case.bytes.min(MOST) / 48 * 48;
    let prepared = case.prepare(me, player.results);
    prepared.fill();
    prepared
}

pub(super) fn blocking(player: &Player, round: u64) {
    for number in 0..player.case.requests {
        let (members, me) = (player.case.ranks, player.me());
        let prepared = prepare(player, round, number, members, me);
        let since = player.rank.now();
        let done = player.rank.collective(NAME, &prepared.work, WORLD);
        if player.done("a collective operation", None, since, done) {
            prepared.check();
        }
    }
}

pub(super) fn nonblocking(player: &Player, round: u64) {
    let (members, me) = (player.case.ranks, player.me());
    let prepare = |number| prepare(player, round, number, members, me);
    let operations: Vec<Prepared> = (0..player.case.requests).map(prepare).collect();
    let since = player.rank.now();
    let start = |prepared: &Prepared| {
        let work = prepared.work.clone();
        player.rank.start_collective(work, WORLD)
    };
    let started: Vec<_> = operations.iter().map(start).collect();
    for (id, prepared) in started.into_iter().zip(&operations) {
        let finished = id.and_then(|id| player.wait(id));
        let status = finished.map(|finished| finished.status);
        if player.ended("a request", None, since, status).is_some() {
            prepared.check();
        }
    }
}

pub(super) fn persistent(player: &Player, round: u64) {
    let (members, me) = (player.case.ranks, player.me());
    let prepare = |number| prepare(player, round, number, members, me);
    let operations: Vec<Prepared> = (0..player.case.requests).map(prepare).collect();
    let since = player.rank.now();
    let init = |prepared: &Prepared| player.rank.collective_init(prepared.work.clone(), WORLD);
    let requests: Vec<_> = operations.iter().map(init).collect();
    let mut all = Vec::new();
    for (request, prepared) in requests.into_iter().zip(&operations) {
        match request {
            Ok(id) => all.push((id, prepared)),
            Err(error) => {
                player.done("MPI_Barrier_init", None, since, Err(error));
            }
        }
    }
    for _ in 0..2 {
        let since = player.rank.now();
        for (id, prepared) in &all {
            prepared.fill();
            player.rank.start(*id).unwrap();
        }
        for (id, prepared) in &all {
            let status = player.wait(*id).map(|finished| finished.status);
            if player.ended("an instance", None, since, status).is_some() {
                prepared.check();
            }
        }
    }
    for (id, _) in all {
        player.rank.lock().requests_mut().detach(id).unwrap();
    }
}

/// The groups of an operation between two: the halves of the job, or every second rank. The number
/// of a rank's group, and its own in it.
fn side(player: &Player) -> (usize, usize) {
    let (me, half) = (player.me(), player.case.ranks / 2);
    match player.case.seed % 2 {
        0 => (me / half, me % half),
        _ => (me % 2, me / 2),
    }
}

/// Makes the intercommunicator of the two groups.
pub(super) fn groups(player: &Player) -> Result<u32> {
    let (rank, (side, me)) = (player.rank, side(player));
    let group = rank.comm_split(NAME, WORLD, side as i32, me as i32)?;
    // The ranks that come first in their groups.
    let second = match player.case.seed % 2 {
        0 => player.case.ranks / 2,
        _ => 1,
    };
    let remote = RemoteLeader {
        peer_comm: WORLD,
        rank: [second, 0][side] as i32,
        tag: 3,
    };
    rank.intercomm_create(NAME, group, 0, remote)
}

/// Operations between two groups: blocking ones, and a nonblocking one beside each.
pub(super) fn between(player: &Player, round: u64) {
    let Some(comm) = player.between.get() else {
        return;
    };
    let (rank, (side, me)) = (player.rank, side(player));
    let (kinds, half) = (kinds(), player.case.ranks / 2);
    let prepare = |number: usize| {
        let turn = player.case.seed as usize + round as usize * 7 + number;
        let mut random = Random::new(player.case.seed << 16 ^ round << 8 ^ number as u64);
        let kind = kinds[turn % kinds.len()];
        let case = BetweenCase::new(kind, [half; 2], MOST, &mut random);
        let prepared = case.prepare(side, me, player.results);
        prepared.fill();
        prepared
    };
    for number in 0..player.case.requests {
        let [beside, blocking] = [2 * number, 2 * number + 1].map(prepare);
        let since = rank.now();
        let started = rank.start_collective(beside.work.clone(), comm);
        let done = rank.collective(NAME, &blocking.work, comm);
        if player.done("an operation between two groups", None, since, done) {
            blocking.check();
        }
        let status = started.and_then(|id| player.wait(id));
        let status = status.map(|finished| finished.status);
        if player.ended("a request", None, since, status).is_some() {
            beside.check();
        }
    }
}

/// A ring of all ranks. None: the fault has hit its making.
fn ring(player: &Player) -> Option<u32> {
    let since = player.rank.now();
    let made = player
        .rank
        .cart_create(NAME, WORLD, &[player.case.ranks as i32], &[true], false);
    let comm = made.as_ref().ok().copied();
    player.done("MPI_Cart_create", None, since, made.map(|_| ()));
    comm
}

/// Operations with the neighbours in a ring.
pub(super) fn neighbours(player: &Player, round: u64) {
    let Some(comm) = ring(player) else { return };
    if player.case.is_for_ever() {
        // Others may have failed to make it.
        return;
    }
    let (me, size) = (player.me(), player.case.ranks);
    let sides = [(me + size - 1) % size, (me + 1) % size];
    let len = 100 << (round % 4 * 3);
    let body = |from: usize, to: usize| pattern(len, from * 9 + to);
    let topology = player.rank.objects().neighbourhood(comm).unwrap();
    let mut send = sides.map(|to| body(me, to)).concat();
    let mut receive = vec![0; 2 * len];
    let work = Work::NeighbourAlltoall {
        send: Blocks::even(room(&mut send), 2),
        receive: Blocks::even(room(&mut receive), 2),
        topology,
    };
    let since = player.rank.now();
    let done = player.rank.collective(NAME, &work, comm);
    assert!(player.done("MPI_Neighbor_alltoall", None, since, done));
    assert!(receive == sides.map(|from| body(from, me)).concat());
    player.rank.comm_free(comm).unwrap();
}

/// A call that makes a communicator.
type Maker = fn(&Arc<Rank>) -> Result<u32>;

/// All calls that make communicators of all ranks.
const MAKERS: [Maker; 6] = [
    |rank| rank.comm_dup(NAME, WORLD, &[]),
    |rank| {
        let (comm, request) = rank.comm_idup(WORLD, &[])?;
        let status = rank.wait_request("MPI_Wait", request)?.status;
        rank.result_of(status).map(|_| comm)
    },
    |rank| rank.comm_split(NAME, WORLD, 0, -(rank.rank() as i32)),
    |rank| {
        let group = rank.objects().comm_group(WORLD)?;
        rank.comm_create(NAME, WORLD, group)
    },
    |rank| {
        let group = rank.objects().comm_group(WORLD)?;
        rank.comm_create_group(NAME, WORLD, group, 5)
    },
    |rank| {
        rank.cart_create(
            NAME,
            WORLD,
            &[2, rank.size() as i32 / 2],
            &[true, false],
            true,
        )
    },
];

/// Makes communicators, and uses each once.
pub(super) fn makers(player: &Player, round: u64) {
    for number in 0..player.case.requests as u64 {
        let make = MAKERS[((player.case.seed / 5 + round + number) % 6) as usize];
        let since = player.rank.now();
        let made = make(player.rank);
        let comm = made.as_ref().ok().copied();
        player.done(
            "the making of a communicator",
            None,
            since,
            made.map(|_| ()),
        );
        let Some(comm) = comm else { continue };
        if player.case.is_for_ever() {
            // Others may have failed to make it.
            continue;
        }
        let since = player.rank.now();
        let done: std::result::Result<(), Error> =
            player.rank.collective(NAME, &Work::Barrier, comm);
        assert!(player.done("MPI_Barrier", None, since, done));
        player.rank.comm_free(comm).unwrap();
    }
}

/// Runs one operation among the ranks of a group, which no fault separates.
pub(super) fn among(player: &Player, comm: u32, members: usize, me: usize, number: usize) {
    let prepared = prepare(player, 99, number, members, me);
    let since = player.rank.now();
    match number % 2 {
        0 => player.rank.collective(NAME, &prepared.work, comm).unwrap(),
        _ => {
            let id = player.rank.start_collective(prepared.work.clone(), comm);
            let status = player.wait(id.unwrap()).unwrap().status;
            player.rank.result_of(status).unwrap();
        }
    }
    player.done("a group's operation", Some(player.me()), since, Ok(()));
    prepared.check();
}
