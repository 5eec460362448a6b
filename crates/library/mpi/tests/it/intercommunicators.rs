//! Intercommunicators: that both groups agree on them, that ranks name the remote group, and what
//! is made of them.

use std::sync::Arc;

use crate::common::modelled::{Keep, play_to_end, system};
use crate::common::{out, pattern, room, run, run_with};
use model::config::MachineConfig;
use model::{Faults, PortFault, PortFaultKind};
use mpi::comm::{self, Core, SELF, WORLD};
use mpi::group::Comparison;
use mpi::{
    ANY_SOURCE, ANY_TAG, Class, Mode, PROC_NULL, Rank, RemoteLeader, Result, UNDEFINED, split_type,
};

/// This rank's group and a remote one: the first `first` ranks of the job, and the others.
pub(crate) fn halves(rank: &Arc<Rank>, first: usize) -> (u32, u32) {
    let is_first = rank.rank() < first;
    let color = i32::from(!is_first);
    let group = rank.comm_split("MPI_Comm_split", WORLD, color, 0).unwrap();
    let remote = RemoteLeader {
        peer_comm: WORLD,
        rank: if is_first { first as i32 } else { 0 },
        tag: 7,
    };
    (group, create(rank, group, 0, remote).unwrap())
}

fn create(rank: &Arc<Rank>, local: u32, leader: i32, remote: RemoteLeader) -> Result<u32> {
    rank.intercomm_create("MPI_Intercomm_create", local, leader, remote)
}

fn split(rank: &Arc<Rank>, comm: u32, color: i32, key: i32) -> u32 {
    let made = rank.comm_split("MPI_Comm_split", comm, color, key);
    made.unwrap()
}

fn core(rank: &Rank, comm: u32) -> Arc<Core> {
    rank.objects().comms().get(comm).unwrap().core.clone()
}

/// The world ranks of the local and the remote group.
fn groups(rank: &Rank, comm: u32) -> [Vec<usize>; 2] {
    let core = core(rank, comm);
    [&core.members, core.remote().unwrap()].map(|group| group.iter().collect())
}

/// Each rank sends to one of the remote group, which receives the sender's number in its own group.
fn talk(rank: &Rank, comm: u32) {
    let core = core(rank, comm);
    let (me, remote) = (core.rank, core.remote().unwrap().len());
    let said = (rank.rank() as u64).to_ne_bytes();
    let to = (me % remote) as i32;
    let senders = (0..remote).filter(|sender| sender % core.size() == me);
    let send = rank
        .lock()
        .send(Mode::Standard, &out(&said), to, 1, comm)
        .unwrap();
    for _ in senders {
        let mut heard = [0; 8];
        let status = rank.receive("MPI_Recv", room(&mut heard), ANY_SOURCE, 1, comm);
        let world = core
            .remote()
            .unwrap()
            .world(status.unwrap().source as usize);
        assert_eq!(world, Some(u64::from_ne_bytes(heard) as usize));
    }
    rank.wait("MPI_Wait", send).unwrap();
}

#[test]
fn create_talk_merge() {
    for (ranks, first) in [(2, 1), (3, 1), (3, 2), (5, 2), (7, 4)] {
        run(ranks, move |rank| {
            let (_, inter) = halves(rank, first);
            talk(rank, inter);
            let twin = rank.comm_dup("MPI_Comm_dup", inter, &[]).unwrap();
            talk(rank, twin);
            for (low, high) in [(false, true), (true, false), (false, false)] {
                let is_high = if rank.rank() < first { low } else { high };
                let merged = rank.intercomm_merge("MPI_Intercomm_merge", inter, is_high);
                let merged = merged.unwrap();
                let core = core(rank, merged);
                let turn = if low && !high { first } else { 0 };
                let expected: Vec<usize> = (0..ranks).map(|at| (turn + at) % ranks).collect();
                assert_eq!(core.members.iter().collect::<Vec<_>>(), expected);
                assert_eq!(core.members.world(core.rank), Some(rank.rank()));
            }
        });
    }
}

const SETTINGS: [&[(&str, &str)]; 3] = [
    &[],
    &[
        ("FISHPLATE_EAGER_LIMIT", "0"),
        ("FISHPLATE_SINGLE_COPY_LIMIT", "0"),
    ],
    &[
        ("FISHPLATE_RING_SLOTS", "4"),
        ("FISHPLATE_RING_BYTES", "8K"),
        ("FISHPLATE_WAIT", "sleep"),
    ],
];

/// Every rank exchanges messages of these modes and lengths with every rank of the remote group.
#[test]
fn messages_of_all_modes() {
    for settings in SETTINGS {
        run_with(5, settings, |rank| {
            let (_, inter) = halves(rank, 2);
            for len in [0, 8, 3_000, 200_000] {
                exchange(rank, inter, len);
            }
            to_nobody(rank, inter);
        });
    }
}

fn exchange(rank: &Arc<Rank>, inter: u32, len: usize) {
    let core = core(rank, inter);
    let remote = core.remote().unwrap();
    let modes = [Mode::Standard, Mode::Synchronous, Mode::Ready];
    let body = pattern(len, rank.rank());
    let mut memory = vec![vec![0; len]; remote.len()];
    for (tag, mode) in (0..).zip(modes) {
        let receives: Vec<_> = (0..)
            .zip(&mut memory)
            .map(|(from, memory)| rank.lock().receive(room(memory), from, tag, inter))
            .collect();
        let barrier = core_barrier(rank, inter);
        let sends: Vec<_> = (0..remote.len() as i32)
            .map(|to| rank.lock().send(mode, &out(&body), to, tag, inter))
            .collect();
        for (from, receive) in (0..).zip(receives) {
            let status = rank.wait("MPI_Wait", receive.unwrap()).unwrap();
            assert_eq!((status.source, status.tag), (from, tag));
            assert_eq!(status.bytes, len as u64);
        }
        for send in sends {
            rank.wait("MPI_Wait", send.unwrap()).unwrap();
        }
        for (from, memory) in memory.iter_mut().enumerate() {
            assert!(*memory == pattern(len, remote.world(from).unwrap()));
            memory.fill(0);
        }
        rank.comm_free(barrier).unwrap();
    }
    persistent(rank, inter, len);
    claimed(rank, inter, len);
}

/// All members of an intercommunicator have come here: none has its merged one before.
fn core_barrier(rank: &Arc<Rank>, inter: u32) -> u32 {
    let merged = rank.intercomm_merge("MPI_Intercomm_merge", inter, false);
    merged.unwrap()
}

/// Started twice: a receive from anyone, and a send.
fn persistent(rank: &Arc<Rank>, inter: u32, len: usize) {
    let core = core(rank, inter);
    let (me, remote) = (core.rank as i32, core.remote().unwrap().clone());
    // Those without a partner in the smaller group have none.
    let partner = if core.rank < remote.len() {
        me
    } else {
        PROC_NULL
    };
    let (body, mut memory) = (pattern(len, rank.rank()), vec![0; len]);
    let source = if partner < 0 { PROC_NULL } else { ANY_SOURCE };
    let mut state = rank.lock();
    let receive = state.receive_init(room(&mut memory), source, 9, inter);
    let send = state.send_init(Mode::Standard, out(&body), partner, 9, inter);
    drop(state);
    for _ in 0..2 {
        for id in [&receive, &send] {
            rank.start(*id.as_ref().unwrap()).unwrap();
        }
        let status = rank.wait("MPI_Wait", *receive.as_ref().unwrap()).unwrap();
        rank.wait("MPI_Wait", *send.as_ref().unwrap()).unwrap();
        assert_eq!(status.source, partner);
        if partner != PROC_NULL {
            assert!(memory == pattern(len, remote.world(me as usize).unwrap()));
        }
        memory.fill(0);
    }
    for id in [receive, send] {
        rank.lock().requests_mut().detach(id.unwrap()).unwrap();
    }
}

/// Probed, claimed and received.
fn claimed(rank: &Arc<Rank>, inter: u32, len: usize) {
    let core = core(rank, inter);
    let remote = core.remote().unwrap();
    let body = pattern(len, rank.rank());
    let sends: Vec<_> = (0..remote.len() as i32)
        .map(|to| rank.lock().send(Mode::Standard, &out(&body), to, 4, inter))
        .collect();
    for _ in 0..remote.len() {
        let probed = rank.probe("MPI_Probe", ANY_SOURCE, ANY_TAG, inter).unwrap();
        let claimed = rank.claim("MPI_Mprobe", probed.source, 4, inter).unwrap();
        assert_eq!(claimed.status.source, probed.source);
        let mut memory = vec![0; len];
        let receive = rank
            .lock()
            .receive_claimed(room(&mut memory), claimed.handle);
        rank.wait("MPI_Wait", receive.unwrap()).unwrap();
        let world = remote.world(probed.source as usize).unwrap();
        assert!(memory == pattern(len, world));
    }
    for send in sends {
        rank.wait("MPI_Wait", send.unwrap()).unwrap();
    }
}

fn to_nobody(rank: &Arc<Rank>, inter: u32) {
    let standard = Mode::Standard;
    rank.send("MPI_Send", standard, out(&[1]), PROC_NULL, 0, inter)
        .unwrap();
    let status = rank
        .receive("MPI_Recv", room(&mut [0]), PROC_NULL, 0, inter)
        .unwrap();
    assert_eq!((status.source, status.bytes), (PROC_NULL, 0));
    let beyond = core(rank, inter).remote().unwrap().len() as i32;
    let wrong = rank.send("MPI_Send", standard, out(&[1]), beyond, 0, inter);
    let wrong = wrong.unwrap_err();
    assert_eq!(wrong.class, Class::RANK);
    assert!(wrong.detail.contains("the remote group has"), "{wrong}");
}

#[test]
fn duplicates() {
    for settings in SETTINGS {
        run_with(5, settings, |rank| {
            let (group, inter) = halves(rank, 3);
            let info = [("mpi_assert_no_any_tag".to_string(), "true".to_string())];
            let twin = rank.comm_dup("MPI_Comm_dup", inter, &info).unwrap();
            let pending = [&[][..], &info].map(|info| rank.comm_idup(inter, info).unwrap());
            for (_, request) in pending {
                rank.wait("MPI_Wait", request).unwrap();
            }
            for (comm, hints) in [(twin, 1), (pending[0].0, 0), (pending[1].0, 1)] {
                talk(rank, comm);
                let state = rank.lock();
                let compared = state.objects().comms().compare(inter, comm).unwrap();
                assert_eq!(compared, Comparison::Congruent);
                let known = state.objects().comms().get(comm).unwrap();
                assert_eq!(known.hints.info().len(), hints);
                assert!(known.core.is_inter());
            }
            let state = rank.lock();
            let compare = |one, other| state.objects().comms().compare(one, other).unwrap();
            assert_eq!(compare(inter, inter), Comparison::Ident);
            assert_eq!(compare(inter, group), Comparison::Unequal);
            drop(state);
            rank.comm_disconnect("MPI_Comm_disconnect", twin).unwrap();
            rank.comm_free(inter).unwrap();
            talk(rank, pending[0].0);
        });
    }
}

/// Each side of an intercommunicator between an even number of ranks and three others splits by
/// colour and key.
#[test]
fn splits() {
    run(7, |rank| {
        let (_, inter) = halves(rank, 4);
        let me = rank.rank();
        // First group: 0 and 2 red in reverse order, 1 green, 3 in none. Second: 4 red, 5 blue,
        // 6 green.
        let (color, key) = [
            (1, 9),
            (2, 0),
            (1, -3),
            (UNDEFINED, 0),
            (1, 0),
            (3, 0),
            (2, 0),
        ][me];
        let part = split(rank, inter, color, key);
        let expected: Option<[&[usize]; 2]> = match me {
            0 | 2 => Some([&[2, 0], &[4]]),
            4 => Some([&[4], &[2, 0]]),
            1 => Some([&[1], &[6]]),
            6 => Some([&[6], &[1]]),
            _ => None,
        };
        match expected {
            None => assert_eq!(part, comm::NULL),
            Some(expected) => {
                assert_eq!(groups(rank, part), expected);
                talk(rank, part);
            }
        }
        let turned = split(rank, inter, 0, -(me as i32));
        let state = rank.lock();
        let compared = state.objects().comms().compare(turned, inter).unwrap();
        assert_eq!(compared, Comparison::Similar);
        drop(state);
        talk(rank, turned);
        let here = rank.hosts().beside(me).count();
        let kind = split_type::SHARED;
        let shared = rank.comm_split_type("MPI_Comm_split_type", inter, kind, 0, &[]);
        let shared = shared.unwrap();
        let [local, remote] = groups(rank, shared);
        assert_eq!(local.len() + remote.len(), here);
        talk(rank, shared);
    });
}

#[test]
fn groups_of_both_sides_become_an_intercommunicator() {
    run(6, |rank| {
        let (_, inter) = halves(rank, 3);
        let is_first = rank.rank() < 3;
        let ours = rank.objects().comm_group(inter).unwrap();
        let part =
            |rank: &Rank, ranks: &[i32]| rank.objects().groups_mut().incl(ours, ranks).unwrap();
        let mine = part(rank, if is_first { &[2, 0] } else { &[1] });
        let made = rank.comm_create("MPI_Comm_create", inter, mine).unwrap();
        match rank.rank() {
            0 | 2 => assert_eq!(groups(rank, made), [vec![2, 0], vec![4]]),
            4 => assert_eq!(groups(rank, made), [vec![4], vec![2, 0]]),
            _ => assert_eq!(made, comm::NULL),
        }
        if made != comm::NULL {
            talk(rank, made);
        }
        // One side is empty.
        let mine = if is_first { mpi::group::EMPTY } else { ours };
        let made = rank.comm_create("MPI_Comm_create", inter, mine).unwrap();
        assert_eq!(made, comm::NULL);
        // The group of one side is not its own: both sides get the error.
        let theirs = rank.objects().comm_remote_group(inter).unwrap();
        let mine = if is_first { theirs } else { ours };
        let wrong = rank.comm_create("MPI_Comm_create", inter, mine);
        assert_eq!(wrong.unwrap_err().class, Class::GROUP);
        talk(rank, inter);
    });
}

/// A call that needs one group refuses two, and the other way round.
#[test]
fn refusals() {
    run(3, |rank| {
        let (group, inter) = halves(rank, 1);
        let ours = rank.objects().comm_group(inter).unwrap();
        let refused = [
            rank.comm_create_group("MPI_Comm_create_group", inter, ours, 0),
            rank.cart_create("MPI_Cart_create", inter, &[1], &[false], false),
            create(
                rank,
                inter,
                0,
                RemoteLeader {
                    peer_comm: WORLD,
                    rank: 0,
                    tag: 0,
                },
            ),
            rank.intercomm_merge("MPI_Intercomm_merge", group, false),
            rank.objects().comm_remote_group(group),
        ];
        for refused in refused {
            assert_eq!(refused.unwrap_err().class, Class::COMM);
        }
        let topology = rank.objects().neighbourhood(inter).unwrap_err();
        assert_eq!(topology.class, Class::TOPOLOGY);
        assert_eq!(rank.objects().topology(inter).unwrap(), UNDEFINED);
    });
}

/// The failure of a leader is its whole group's, and the group can go on.
#[test]
fn a_leader_that_fails() {
    run(4, |rank| {
        let group = split(rank, WORLD, (rank.rank() % 2) as i32, 0);
        let leader = 1;
        let is_leader = core(rank, group).rank == 1;
        let good = RemoteLeader {
            peer_comm: WORLD,
            rank: if rank.rank() % 2 == 0 { 3 } else { 2 },
            tag: 5,
        };
        let wrong = [
            (RemoteLeader { tag: -1, ..good }, Class::TAG),
            (RemoteLeader { rank: 4, ..good }, Class::RANK),
            (RemoteLeader { rank: -1, ..good }, Class::RANK),
            (
                RemoteLeader {
                    rank: rank.rank() as i32,
                    ..good
                },
                Class::COMM,
            ),
            (
                RemoteLeader {
                    peer_comm: comm::NULL,
                    ..good
                },
                Class::COMM,
            ),
        ];
        // Not significant on the others.
        let nonsense = RemoteLeader {
            peer_comm: 77,
            rank: -70,
            tag: -7,
        };
        for (wrong, class) in wrong {
            let remote = if is_leader { wrong } else { nonsense };
            let failed = create(rank, group, leader, remote).unwrap_err();
            assert_eq!(failed.class, class, "{failed}");
            assert_eq!(
                failed.detail.contains("the leader of the local"),
                !is_leader
            );
        }
        for wrong in [-1, 2] {
            let failed = create(rank, group, wrong, good).unwrap_err();
            assert_eq!(failed.class, Class::RANK);
        }
        let remote = if is_leader { good } else { nonsense };
        let inter = create(rank, group, leader, remote).unwrap();
        talk(rank, inter);
        // The group still makes communicators.
        let twin = rank.comm_dup("MPI_Comm_dup", group, &[]).unwrap();
        assert_eq!(core(rank, twin).size(), 2);
    });
}

/// The peer communicator is an intercommunicator, the groups are single ranks.
#[test]
fn over_an_intercommunicator() {
    run(6, |rank| {
        let (_, inter) = halves(rank, 2);
        // Ranks 0 and 1 pair with 2 and 3 of the remote group's numbers 0 and 1.
        let place = core(rank, inter).rank;
        if place < 2 {
            let remote = RemoteLeader {
                peer_comm: inter,
                rank: 1 - place as i32,
                tag: 1,
            };
            let pair = create(rank, SELF, 0, remote).unwrap();
            let partner = if rank.rank() < 2 {
                3 - place
            } else {
                1 - place
            };
            assert_eq!(groups(rank, pair), [vec![rank.rank()], vec![partner]]);
            talk(rank, pair);
            let merged = rank.intercomm_merge("MPI_Intercomm_merge", pair, rank.rank() < 2);
            let merged = core(rank, merged.unwrap());
            let first = rank.rank().max(partner);
            assert_eq!(merged.members.world(0), Some(first));
        }
    });
}

/// Several at a time between the same leaders, by threads; tags tell them apart.
#[test]
fn many_at_a_time() {
    run(4, |rank| {
        rank.allow_threads();
        let groups: Vec<u32> = (0..4)
            .map(|_| split(rank, WORLD, (rank.rank() / 2) as i32, 0))
            .collect();
        let remote = |tag| RemoteLeader {
            peer_comm: WORLD,
            rank: if rank.rank() < 2 { 3 } else { 1 },
            tag,
        };
        let made: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..)
                .zip(&groups)
                .map(|(tag, &group)| {
                    // The two sides start them in different orders.
                    let tag = if rank.rank() < 2 { tag } else { 3 - tag };
                    scope.spawn(move || (tag, create(rank, group, 1, remote(tag)).unwrap()))
                })
                .collect();
            let mut made: Vec<(i32, u32)> = threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect();
            made.sort_unstable();
            made.into_iter().map(|(_, comm)| comm).collect()
        });
        for comm in made {
            talk(rank, comm);
        }
    });
}

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// A machine of four hosts. The last one is cut off at this time in nanoseconds.
fn machine(cut: Option<u64>) -> MachineConfig {
    let mut machine = MachineConfig::new(&system("qdr"), 4, 1, 1).unwrap();
    let mut faults = Faults::default();
    if let Some(cut) = cut {
        let fault = PortFault {
            host: 3,
            rail: 0,
            from: 1_000 * cut,
            until: u64::MAX,
            kind: PortFaultKind::Silent,
        };
        faults.ports.push(fault).unwrap();
    }
    machine.faults = faults;
    machine
}

/// The report of a deadlock names ranks of the remote group.
#[test]
fn a_deadlock_names_remote_ranks() {
    play_to_end(machine(None), vec![], Keep::Nothing, |rank| {
        let (_, inter) = halves(rank, 1);
        let comm = rank.objects().comms_mut().get_mut(inter).map(|comm| {
            comm.set_name("workers");
            inter
        });
        let comm = comm.unwrap();
        let mut memory = [0];
        let (source, words) = match rank.rank() {
            0 => (2, "MPI_Recv from 2 of the remote group tag 5 on workers"),
            1 => (0, "MPI_Recv from 0 of the remote group tag 5 on workers"),
            _ => (
                ANY_SOURCE,
                "MPI_Recv from any of the remote group tag 5 on workers",
            ),
        };
        let ended = rank.receive("MPI_Recv", room(&mut memory), source, 5, comm);
        let ended = ended.unwrap_err();
        assert!(ended.detail.contains("deadlock"), "{ended}");
        assert!(ended.detail.contains(words), "{ended}");
    });
}

/// A rank of a remote group is lost: what needs it fails, everything else goes on.
#[test]
fn a_lost_rank_of_the_remote_group() {
    let settings = vec![("FISHPLATE_OUTAGE", "2s")];
    let run = play_to_end(machine(Some(SECOND)), settings, Keep::Nothing, |rank| {
        let (group, inter) = halves(rank, 2);
        talk(rank, inter);
        rank.enter(mpi::ProgramCall::after(SECOND, "MPI_Wtime"));
        rank.leave();
        let mut memory = [0];
        let mut receive = |source, tag| {
            let got = rank.receive("MPI_Recv", room(&mut memory), source, tag, inter);
            got.and_then(|status| rank.result_of(status))
        };
        let standard = Mode::Standard;
        let send = |to, tag| rank.send("MPI_Send", standard, out(&[1]), to, tag, inter);
        match rank.rank() {
            3 => {
                receive(0, 1).unwrap_err();
                receive(ANY_SOURCE, 1).unwrap_err();
            }
            2 => {
                // The loss of a rank of the own group concerns no message here.
                for source in [0, 1] {
                    assert_eq!(receive(ANY_SOURCE, 2).unwrap().source, source);
                    send(source, 3).unwrap();
                }
            }
            me => {
                receive(1, 1).unwrap_err();
                rank.probe("MPI_Probe", 1, 1, inter).unwrap_err();
                if me == 1 {
                    // After rank 0.
                    let mut memory = [0];
                    rank.receive("MPI_Recv", room(&mut memory), 0, 0, WORLD)
                        .unwrap();
                }
                send(0, 2).unwrap();
                // The first wait reports the loss, the second one receives.
                receive(ANY_SOURCE, 3).unwrap_err();
                assert_eq!(receive(ANY_SOURCE, 3).unwrap().source, 0);
                if me == 0 {
                    rank.send("MPI_Send", standard, out(&[1]), 1, 0, WORLD)
                        .unwrap();
                }
            }
        }
        collective_calls_fail(rank, inter);
        // Its leader is lost to one group; the other group has lost a member.
        let remote = RemoteLeader {
            peer_comm: WORLD,
            rank: if rank.rank() < 2 { 3 } else { 0 },
            tag: 8,
        };
        let leader = i32::from(rank.rank() >= 2);
        create(rank, group, leader, remote).unwrap_err();
        let _ = rank.finish("MPI_Finalize");
    });
    let last = run.times.iter().max().unwrap();
    assert!(*last < 30 * SECOND, "ends after {last} ns");
}

fn collective_calls_fail(rank: &Arc<Rank>, inter: u32) {
    let failed = [
        rank.intercomm_merge("MPI_Intercomm_merge", inter, false),
        rank.comm_dup("MPI_Comm_dup", inter, &[]),
        rank.comm_split("MPI_Comm_split", inter, 0, 0),
    ];
    for failed in failed {
        failed.unwrap_err();
    }
}
