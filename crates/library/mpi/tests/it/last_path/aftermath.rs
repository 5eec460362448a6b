//! A job after the loss of peers: operations with them fail at once, all others work.

use mpi::coll::Work;
use mpi::comm::WORLD;
use mpi::{ANY_SOURCE, Mode};

use super::collectives;
use super::player::Player;
use crate::common::{out, pattern, room};

/// The first tag of these messages.
const TAG: i32 = 2_000_000;

/// Communicators that a rank has made before the fault.
#[derive(Clone, Copy)]
pub(super) struct Comms {
    /// All ranks.
    copy: u32,
    /// The ranks that the fault leaves together with this one.
    group: u32,
    /// Two groups of all ranks, for operations between them.
    pub(super) between: Option<u32>,
}

impl Comms {
    /// Makes them. None: the fault has hit that.
    pub(super) fn make(player: &Player) -> Option<Comms> {
        let rank = player.rank;
        let since = rank.now();
        let color = player.case.group(player.me())[0] as i32;
        let copy = rank.comm_dup("MPI_Comm_dup", WORLD, &[]);
        let group = rank.comm_split("MPI_Comm_split", WORLD, color, 0);
        let made = copy.and_then(|copy| {
            let between = player.case.is_between();
            Ok(Comms {
                copy,
                group: group?,
                between: between.then(|| collectives::groups(player)).transpose()?,
            })
        });
        let comms = made.as_ref().ok().copied();
        player.done(
            "the making of a communicator",
            None,
            since,
            made.map(|_| ()),
        );
        comms
    }
}

/// Uses the library after a fault that does not end. `comms`: all ranks have theirs.
pub(super) fn play(player: &Player, comms: Option<Comms>) {
    // Ranks that compute elsewhere would delay everything.
    let others = 0..player.case.ranks;
    let lost = others.filter(|&peer| player.case.separates(player.me(), peer));
    for peer in lost.collect::<Vec<_>>() {
        with_lost(player, peer as i32);
        with_lost(player, peer as i32);
    }
    collectives_fail(player, WORLD);
    within_group(player);
    made_group(player);
    if let Some(comms) = comms {
        for number in 0..4 {
            let group = player.case.group(player.me());
            let me = group.iter().position(|&member| member == player.me());
            collectives::among(player, comms.group, group.len(), me.unwrap(), number);
        }
        any_source(player, comms);
        collectives_fail(player, comms.copy);
        if let Some(between) = comms.between {
            collectives_fail(player, between);
        }
    }
}

/// Every operation with a lost peer fails.
fn with_lost(player: &Player, peer: i32) {
    let rank = player.rank;
    let lost = Some(peer as usize);
    let since = rank.now();
    let body = pattern(100, 1);
    let mut memory = vec![0; 100];
    let fails = |what: &str, result: mpi::Result<()>| {
        assert!(
            !player.done(what, lost, since, result),
            "{what} to a lost peer"
        );
    };
    let synchronous = Mode::Synchronous;
    fails(
        "MPI_Ssend",
        rank.send("MPI_Ssend", synchronous, out(&body), peer, TAG, WORLD),
    );
    fails(
        "MPI_Send",
        rank.send("MPI_Send", Mode::Standard, out(&body), peer, TAG, WORLD),
    );
    // Sent messages may have come all the same: the receives use a tag that nobody sends.
    let got = rank.receive("MPI_Recv", room(&mut memory), peer, TAG + 5, WORLD);
    let got = got.and_then(|status| rank.result_of(status));
    fails("MPI_Recv", got.map(|_| ()));
    let got = rank.lock().probe(peer, TAG + 5, WORLD);
    fails("MPI_Iprobe", got.map(|_| ()));
    let got = rank.claim("MPI_Mprobe", peer, TAG + 5, WORLD);
    fails("MPI_Mprobe", got.map(|_| ()));
    let mut state = rank.lock();
    let ids = [
        state.receive(room(&mut memory), peer, TAG + 5, WORLD),
        state.send(Mode::Standard, &out(&body), peer, TAG, WORLD),
        state.send_init(Mode::Standard, out(&body), peer, TAG, WORLD),
        state.receive_init(room(&mut memory), peer, TAG + 5, WORLD),
    ];
    drop(state);
    for (at, id) in ids.into_iter().enumerate() {
        let id = id.unwrap();
        if at >= 2 {
            rank.start(id).unwrap();
        }
        let finished = player.wait(id).unwrap();
        let result = rank.result_of(finished.status);
        fails("a request", result.map(|_| ()));
        assert_eq!(finished.gone, at < 2);
        if at >= 2 {
            rank.lock().requests_mut().detach(id).unwrap();
        }
    }
    player.bury(memory);
}

/// No collective operation on this communicator works, and nobody waits in one.
fn collectives_fail(player: &Player, comm: u32) {
    let rank = player.rank;
    let since = rank.now();
    let done = rank.collective("MPI_Barrier", &Work::Barrier, comm);
    assert!(!player.done("MPI_Barrier", None, since, done));
    let id = rank.start_collective(Work::Barrier, comm);
    let status = id
        .and_then(|id| player.wait(id))
        .map(|finished| finished.status);
    assert!(player.ended("MPI_Ibarrier", None, since, status).is_none());
    let made = rank.comm_dup("MPI_Comm_dup", comm, &[]);
    assert!(!player.done("MPI_Comm_dup", None, since, made.map(|_| ())));
}

/// Messages between ranks that the fault leaves together.
fn within_group(player: &Player) {
    let (rank, me) = (player.rank, player.me());
    let group = player.case.group(me);
    let place = group.iter().position(|&member| member == me).unwrap();
    for step in 1..group.len() {
        let to = group[(place + step) % group.len()];
        let from = group[(place + group.len() - step) % group.len()];
        let len = [8, 3_000, 100_000][step % 3];
        let mut memory = vec![0; len];
        let body = pattern(len, me);
        let since = rank.now();
        let mut state = rank.lock();
        let receive = state.receive(room(&mut memory), from as i32, TAG + 1, WORLD);
        let send = state.send(Mode::Standard, &out(&body), to as i32, TAG + 1, WORLD);
        drop(state);
        for (id, peer) in [(receive, from), (send, to)] {
            let status = player.wait(id.unwrap()).map(|finished| finished.status);
            assert!(
                player
                    .ended("a request", Some(peer), since, status)
                    .is_some()
            );
        }
        assert!(memory == pattern(len, from));
    }
}

/// The group makes a communicator, though its parent has lost members.
fn made_group(player: &Player) {
    let rank = player.rank;
    let group = player.case.group(player.me());
    let ranks: Vec<i32> = group.iter().map(|&member| member as i32).collect();
    let since = rank.now();
    let world = rank.objects().comm_group(WORLD).unwrap();
    let named = rank.objects().groups_mut().incl(world, &ranks).unwrap();
    let made = rank.comm_create_group("MPI_Comm_create_group", WORLD, named, 3);
    let comm = made.as_ref().ok().copied();
    let is_made = player.done(
        "MPI_Comm_create_group",
        Some(player.me()),
        since,
        made.map(|_| ()),
    );
    assert!(is_made);
    let me = group
        .iter()
        .position(|&member| member == player.me())
        .unwrap();
    let comm = comm.unwrap();
    (0..2).for_each(|number| collectives::among(player, comm, group.len(), me, number));
    rank.comm_free(comm).unwrap();
}

/// A receive from any source reports the loss once, and takes a message of another rank then.
fn any_source(player: &Player, comms: Comms) {
    let comm = comms.copy;
    let (rank, me) = (player.rank, player.me());
    let group = player.case.group(me);
    let place = group.iter().position(|&member| member == me).unwrap();
    let mut memory = vec![0; 50];
    let id = rank
        .lock()
        .receive(room(&mut memory), ANY_SOURCE, TAG + 2, comm)
        .unwrap();
    let has_lost = (0..player.case.ranks).any(|peer| player.case.separates(me, peer));
    let is_last = (0..player.case.ranks).all(|peer| peer == me || player.case.separates(me, peer));
    let since = rank.now();
    for _ in 0..if is_last { 3 } else { usize::from(has_lost) } {
        let finished = player.wait(id).unwrap();
        assert!(!finished.gone, "it stays active");
        assert!(
            player
                .ended("a report", None, since, Ok(finished.status))
                .is_none()
        );
    }
    if is_last {
        // Nobody is left who could send.
        rank.lock().cancel(id).unwrap();
        let finished = player.wait(id).unwrap();
        assert!(finished.gone && finished.status.cancelled, "{finished:?}");
        return player.bury(memory);
    }
    let to = group[(place + 1) % group.len()] as i32;
    let from = group[(place + group.len() - 1) % group.len()];
    let body = pattern(50, me);
    // The others send when all have received the report.
    rank.collective("MPI_Barrier", &Work::Barrier, comms.group)
        .unwrap();
    rank.send("MPI_Send", Mode::Standard, out(&body), to, TAG + 2, comm)
        .unwrap();
    let finished = player.wait(id).unwrap();
    assert!(finished.gone && finished.status.error == mpi::Class::SUCCESS);
    assert_eq!(finished.status.source, from as i32);
    assert!(memory == pattern(50, from));
}
