//! Communicators: that all members agree on them, and that their messages stay apart.

use std::sync::Arc;

use crate::common::{out, room, run, run_with};
use mpi::comm::{self, SELF, WORLD};
use mpi::group::Comparison;
use mpi::{ANY_SOURCE, ANY_TAG, Class, Mode, Rank, UNDEFINED, split_type};

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

fn size(rank: &Rank, comm: u32) -> usize {
    rank.objects().comms().get(comm).unwrap().core.size()
}

fn place(rank: &Rank, comm: u32) -> usize {
    rank.objects().comms().get(comm).unwrap().core.rank
}

/// Every member receives from its left neighbour a message that only this one can have sent on this
/// communicator.
fn talk(rank: &Rank, comm: u32) {
    let (size, me) = (size(rank, comm) as i32, place(rank, comm) as i32);
    let context = rank.objects().comms().get(comm).unwrap().core.context;
    let said = [context, me as u64].map(u64::to_ne_bytes).concat();
    let mut heard = vec![0; 16];
    let left = (me + size - 1) % size;
    let receive = rank
        .lock()
        .receive(room(&mut heard), ANY_SOURCE, ANY_TAG, comm)
        .unwrap();
    rank.send(
        "MPI_Send",
        Mode::Standard,
        out(&said),
        (me + 1) % size,
        3,
        comm,
    )
    .unwrap();
    let status = rank.wait("MPI_Wait", receive).unwrap();
    assert_eq!((status.source, status.bytes), (left, 16));
    assert_eq!(heard, [context, left as u64].map(u64::to_ne_bytes).concat());
}

fn world_ranks(rank: &Rank, comm: u32) -> Vec<usize> {
    rank.objects()
        .comms()
        .get(comm)
        .unwrap()
        .core
        .members
        .iter()
        .collect()
}

fn info(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
}

#[test]
fn duplicates_are_congruent_and_apart() {
    for settings in SETTINGS {
        for ranks in [1, 2, 5] {
            run_with(ranks, settings, |rank| {
                let mut comms = vec![WORLD];
                for number in 0..10 {
                    comms.push(
                        rank.comm_dup("MPI_Comm_dup", comms[number / 2], &[])
                            .unwrap(),
                    );
                }
                // A message on each before any is received: a mixed-up context would show.
                for &comm in &comms {
                    talk(rank, comm);
                    let mut state = rank.lock();
                    assert_eq!(
                        state.objects().comms().compare(comm, comm).unwrap(),
                        Comparison::Ident
                    );
                    let with_world = state.objects().comms().compare(WORLD, comm).unwrap();
                    assert_eq!(
                        with_world,
                        if comm == WORLD {
                            Comparison::Ident
                        } else {
                            Comparison::Congruent
                        }
                    );
                    assert_eq!(
                        state
                            .objects_mut()
                            .comms_mut()
                            .get_mut(comm)
                            .unwrap()
                            .core
                            .rank,
                        rank.rank()
                    );
                }
                for comm in comms.drain(1..) {
                    rank.comm_free(comm).unwrap();
                    assert_eq!(rank.comm_free(comm).unwrap_err().class, Class::COMM);
                }
            });
        }
    }
}

#[test]
fn a_split_goes_by_colour_and_key() {
    for settings in SETTINGS {
        run_with(7, settings, |rank| {
            let me = rank.rank() as i32;
            // Odd ranks in descending order, even ones in the order of the parent, the last in
            // none.
            let color = if me == 6 { UNDEFINED } else { me % 2 };
            let key = if color == 1 { -me } else { 0 };
            let part = rank
                .comm_split("MPI_Comm_split", WORLD, color, key)
                .unwrap();
            match color {
                UNDEFINED => assert_eq!(part, comm::NULL),
                1 => assert_eq!(world_ranks(rank, part), [5, 3, 1]),
                _ => assert_eq!(world_ranks(rank, part), [0, 2, 4]),
            }
            if part != comm::NULL {
                talk(rank, part);
                let alone = rank.comm_split("MPI_Comm_split", part, me, 0).unwrap();
                talk(rank, alone);
                let state = rank.lock();
                assert_eq!(
                    state.objects().comms().compare(alone, SELF).unwrap(),
                    Comparison::Congruent
                );
                assert_eq!(
                    state.objects().comms().compare(alone, part).unwrap(),
                    Comparison::Unequal
                );
                assert_eq!(
                    state.objects().comms().compare(WORLD, part).unwrap(),
                    Comparison::Unequal
                );
            }
            let turned = rank.comm_split("MPI_Comm_split", WORLD, 0, -me).unwrap();
            talk(rank, turned);
            assert_eq!(
                rank.objects().comms().compare(turned, WORLD).unwrap(),
                Comparison::Similar
            );
            let wrong = rank.comm_split("MPI_Comm_split", WORLD, -5, 0);
            assert_eq!(wrong.unwrap_err().class, Class::ARG);
        });
    }
}

#[test]
fn a_split_by_type_gives_what_one_machine_has() {
    run(3, |rank| {
        let split = |kind, pairs: &[(&str, &str)]| {
            rank.comm_split_type("MPI_Comm_split_type", WORLD, kind, 0, &info(pairs))
                .unwrap()
        };
        let here = rank.hosts().beside(rank.rank()).count();
        let shared = split(split_type::SHARED, &[]);
        talk(rank, shared);
        assert_eq!(size(rank, shared), here);
        assert_eq!(split(split_type::HW_UNGUIDED, &[]), comm::NULL);
        assert_eq!(split(split_type::HW_GUIDED, &[]), comm::NULL);
        assert_eq!(
            split(
                split_type::HW_GUIDED,
                &[("mpi_hw_resource_type", "a grain of sand")]
            ),
            comm::NULL
        );
        let guided = split(
            split_type::HW_GUIDED,
            &[("mpi_hw_resource_type", "mpi_shared_memory")],
        );
        assert_eq!(size(rank, guided), here);
        let alone = split(
            split_type::RESOURCE_GUIDED,
            &[("mpi_pset_name", "mpi://SELF")],
        );
        assert_eq!(size(rank, alone), 1);
        let mine = if rank.rank() == 1 {
            UNDEFINED
        } else {
            split_type::SHARED
        };
        let rest = split(mine, &[]);
        assert_eq!(rest == comm::NULL, rank.rank() == 1);
        if rest != comm::NULL {
            assert_eq!(world_ranks(rank, rest), [0, 2]);
        }
    });
}

#[test]
fn groups_become_communicators() {
    for settings in SETTINGS {
        run_with(6, settings, |rank| {
            let me = rank.rank();
            let world = rank.objects().comm_group(WORLD).unwrap();
            let mine: &[i32] = if me % 2 == 0 { &[4, 0, 2] } else { &[1, 5] };
            let group = rank.objects().groups_mut().incl(world, mine).unwrap();
            // Two groups at once; rank 3 is in none.
            let new = rank.comm_create("MPI_Comm_create", WORLD, group).unwrap();
            assert_eq!(new == comm::NULL, me == 3);
            if new != comm::NULL {
                talk(rank, new);
                assert_eq!(
                    world_ranks(rank, new),
                    mine.iter().map(|&rank| rank as usize).collect::<Vec<_>>()
                );
                let group = rank.objects().comm_group(new).unwrap();
                assert_eq!(
                    place(rank, new),
                    rank.objects().groups().get(group).unwrap().rank.unwrap()
                );
                if me % 2 == 0 {
                    let error = rank.comm_create("MPI_Comm_create", new, world).unwrap_err();
                    assert_eq!(error.class, Class::GROUP);
                }
            }
        });
    }
}

/// Only members call, in different orders, and all with one tag: the senders tell the groups apart.
#[test]
fn communicators_of_overlapping_groups() {
    for settings in SETTINGS {
        run_with(4, settings, |rank| {
            let world = rank.objects().comm_group(WORLD).unwrap();
            let create = |ranks: &[i32]| {
                let group = rank.objects().groups_mut().incl(world, ranks).unwrap();
                let new = rank
                    .comm_create_group("MPI_Comm_create_group", WORLD, group, 9)
                    .unwrap();
                rank.objects().groups_mut().free(group).unwrap();
                new
            };
            for _ in 0..20 {
                let mut comms = Vec::new();
                let me = rank.rank() as i32;
                if [0, 3].contains(&me) {
                    comms.push(create(&[0, 3]));
                }
                if [1, 3].contains(&me) {
                    comms.push(create(&[1, 3]));
                }
                if [3, 2, 1].contains(&me) {
                    comms.push(create(&[3, 2, 1]));
                }
                for comm in comms {
                    talk(rank, comm);
                    rank.comm_free(comm).unwrap();
                }
            }
        });
    }
}

#[test]
fn duplicates_can_be_made_in_the_background() {
    for settings in SETTINGS {
        run_with(5, settings, |rank| {
            let many: Vec<_> = (0..20)
                .map(|_| rank.comm_idup(WORLD, &[]).unwrap())
                .collect();
            // Until it is ready, its use is an error; rank 0 alone is ready at once.
            if rank.rank() > 0 {
                let early = rank.send("MPI_Send", Mode::Standard, out(b""), 0, 0, many[19].0);
                assert!(
                    early.is_err_and(|error| error.class == Class::RANK)
                        || size(rank, many[19].0) == 5
                );
            }
            let blocking = rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
            for (comm, request) in many.into_iter().rev() {
                rank.wait("MPI_Wait", request).unwrap();
                talk(rank, comm);
            }
            talk(rank, blocking);
        });
    }
}

#[test]
fn threads_make_communicators_at_once() {
    run_with(3, &[("FISHPLATE_RING_SLOTS", "8")], |rank| {
        rank.allow_threads();
        let comms: Vec<u32> = (0..3)
            .map(|_| rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap())
            .collect();
        std::thread::scope(|scope| {
            for comm in comms {
                let rank: &Arc<Rank> = rank;
                scope.spawn(move || {
                    for number in 0..50 {
                        let new = match number % 3 {
                            0 => rank.comm_dup("MPI_Comm_dup", comm, &[]).unwrap(),
                            1 => rank
                                .comm_split("MPI_Comm_split", comm, 0, -(rank.rank() as i32))
                                .unwrap(),
                            _ => {
                                let (new, request) = rank.comm_idup(comm, &[]).unwrap();
                                rank.wait("MPI_Wait", request).unwrap();
                                new
                            }
                        };
                        talk(rank, new);
                        rank.comm_free(new).unwrap();
                    }
                });
            }
        });
    });
}

#[test]
fn a_freed_communicator_ends_what_is_under_way() {
    run(2, |rank| {
        let comm = rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
        let mut heard = [0; 4];
        let request = match rank.rank() {
            0 => rank.lock().receive(room(&mut heard), 1, 0, comm).unwrap(),
            _ => rank
                .lock()
                .send(Mode::Synchronous, &out(b"late"), 0, 0, comm)
                .unwrap(),
        };
        rank.comm_free(comm).unwrap();
        assert_eq!(
            rank.wait("MPI_Wait", request).unwrap().error,
            Class::SUCCESS
        );
        assert!(rank.rank() == 1 || heard == *b"late");

        let comm = rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
        let request = match rank.rank() {
            0 => rank.lock().receive(room(&mut heard), 1, 0, comm).unwrap(),
            _ => rank
                .lock()
                .send(Mode::Synchronous, &out(b"then"), 0, 0, comm)
                .unwrap(),
        };
        rank.comm_disconnect("MPI_Comm_disconnect", comm).unwrap();
        assert!(
            rank.lock()
                .requests()
                .valid(request)
                .unwrap()
                .status
                .is_some()
        );
        rank.wait("MPI_Wait", request).unwrap();
    });
}

#[test]
fn predefined_communicators_stay() {
    run(1, |rank| {
        for comm in [WORLD, SELF, comm::NULL, 0x1001] {
            assert_eq!(rank.comm_free(comm).unwrap_err().class, Class::COMM);
            assert_eq!(
                rank.comm_disconnect("MPI_Comm_disconnect", comm)
                    .unwrap_err()
                    .class,
                Class::COMM
            );
        }
        assert_eq!(
            rank.comm_dup("MPI_Comm_dup", comm::NULL, &[])
                .unwrap_err()
                .class,
            Class::COMM
        );
    });
}

#[test]
fn names_and_hints_belong_to_one_communicator() {
    run(2, |rank| {
        rank.objects()
            .comms_mut()
            .get_mut(WORLD)
            .unwrap()
            .set_name(&"ö".repeat(100));
        let hints = info(&[("mpi_assert_no_any_tag", "true"), ("somebody_elses", "7")]);
        let comm = rank
            .comm_dup("MPI_Comm_dup_with_info", WORLD, &hints)
            .unwrap();
        let copy = rank.comm_dup("MPI_Comm_dup", comm, &[]).unwrap();
        let mut state = rank.lock();
        assert_eq!(
            state.objects().comms().get(WORLD).unwrap().name,
            "ö".repeat(63)
        );
        assert_eq!(state.objects().comms().get(comm).unwrap().name, "");
        assert_eq!(
            state.objects().comms().get(comm).unwrap().hints.info(),
            info(&[("mpi_assert_no_any_tag", "true")])
        );
        assert_eq!(state.objects().comms().get(copy).unwrap().hints.info(), []);
        let hints = &mut state.objects_mut().comms_mut().get_mut(comm).unwrap().hints;
        hints
            .update(&info(&[("mpi_assert_exact_length", "false")]))
            .unwrap();
        assert_eq!(hints.info().len(), 2);
        let wrong = hints.update(&info(&[("mpi_assert_exact_length", "perhaps")]));
        assert_eq!(wrong.unwrap_err().class, Class::INFO_VALUE);
    });
}
