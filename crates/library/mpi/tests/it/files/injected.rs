//! Errors of the system at every call, on every rank, one at a time: collective calls fail on all
//! ranks or on none, with one class, nothing hangs (a modelled machine reports it), and the file
//! works afterwards.

use std::path::Path;
use std::sync::{Arc, Mutex};

use ::file_io::{Call, Fault, FaultyStorage, Injected, RealStorage};
use model::config::MachineConfig;
use mpi::file::Direction::{Read, Write};
use mpi::file::{Pointer, SEEK_END, SEEK_SET};
use mpi::{Class, Rank, Result};

use super::{Shape, memory, open};
use crate::common::modelled::{Keep, play, system};

const RANKS: usize = 3;
/// Bytes of an access: four blocks of eight.
const BYTES: usize = 32;

const ERRORS: [(i32, Class); 5] = [
    (5, Class::IO),
    (28, Class::NO_SPACE),
    (122, Class::QUOTA),
    (116, Class::IO),
    (4, Class::SUCCESS),
];

/// The outcome of a call: its name, whether all ranks take part in it, and its class.
type Outcome = (&'static str, bool, Class);

fn class_of<T>(result: &Result<T>) -> Class {
    result
        .as_ref()
        .map_or_else(|error| error.class, |_| Class::SUCCESS)
}

/// The results of a rank's calls, and the system calls that may fail.
type Report = (Vec<Outcome>, Vec<(Call, u64)>);

/// Ranks write and read their parts of the file by all kinds of calls.
fn program(
    rank: &Arc<Rank>,
    storage: &FaultyStorage,
    path: &Path,
    hints: &[(&str, &str)],
) -> Report {
    let opened = open(rank, path, hints);
    let mut outcomes = vec![("open", true, class_of(&opened))];
    let Ok(file) = opened else {
        return (outcomes, storage.made());
    };
    let me = rank.rank();
    let shape = Shape {
        displacement: me * 8,
        etype: 4,
        blocks: vec![(0, 2)],
        rest: 8 * (RANKS - 1),
    };
    let mut data = vec![me as u8 + 1; BYTES * 2];
    let mut room = vec![0; BYTES * 2];
    let (out, into) = (memory(&mut data, 2), memory(&mut room, 2));
    let mut note = |name, all, class| outcomes.push((name, all, class));
    note("set_view", true, class_of(&shape.set(rank, file)));
    let all = |direction, pointer, memory: &mpi::file::FileMemory| {
        rank.file_collective("all", file, direction, pointer, Ok(memory.clone()))
    };
    let alone = |direction, pointer, memory: &mpi::file::FileMemory| {
        rank.file_access(file, direction, pointer, memory.clone())
    };
    note(
        "write_at_all",
        true,
        class_of(&all(Write, Pointer::At(0), &out)),
    );
    note(
        "write_all",
        true,
        class_of(&all(Write, Pointer::Individual, &out)),
    );
    note(
        "write_ordered",
        true,
        class_of(&all(Write, Pointer::Shared, &out)),
    );
    note(
        "write_at",
        false,
        class_of(&alone(Write, Pointer::At(20), &out)),
    );
    let grown = rank.file_preallocate("preallocate", file, 1024);
    note("preallocate", true, class_of(&grown));
    let cut = rank.file_set_size("set_size", file, 700);
    note("set_size", true, class_of(&cut));
    note("sync", true, class_of(&rank.file_sync("sync", file)));
    note(
        "read_at_all",
        true,
        class_of(&all(Read, Pointer::At(0), &into)),
    );
    note(
        "read_shared",
        false,
        class_of(&alone(Read, Pointer::Shared, &into)),
    );
    note(
        "read_at",
        false,
        class_of(&alone(Read, Pointer::At(2), &into)),
    );
    let sought = rank.file_seek_shared("seek_shared", file, -8, SEEK_END);
    note("seek_shared", true, class_of(&sought));
    let begun = rank.file_seek_shared("seek_shared", file, 0, SEEK_SET);
    note("seek_shared", true, class_of(&begun));
    let atomic = rank.file_set_atomicity("set_atomicity", file, true);
    note("set_atomicity", true, class_of(&atomic));
    note(
        "write_at_all",
        true,
        class_of(&all(Write, Pointer::At(4), &out)),
    );
    // Whatever has failed, the file works: an error strikes once.
    let closed = rank.file_close("close", file);
    note("close", true, class_of(&closed));
    if closed.is_err() {
        rank.file_close("close", file).unwrap();
    }
    let made = storage.made();
    let again = open(rank, path, hints).unwrap();
    shape.set(rank, again).unwrap();
    rank.file_collective("all", again, Write, Pointer::At(0), Ok(out))
        .unwrap();
    rank.file_collective("all", again, Read, Pointer::At(0), Ok(into))
        .unwrap();
    assert_eq!(data, mixed(&room, me as u8 + 1));
    rank.file_close("close", again).unwrap();
    (outcomes, made)
}

/// Memory with the value at the places between the data.
fn mixed(room: &[u8], value: u8) -> Vec<u8> {
    let mut mixed = room.to_vec();
    mixed
        .iter_mut()
        .skip(1)
        .step_by(2)
        .for_each(|byte| *byte = value);
    mixed
}

struct Played {
    outcomes: Vec<Vec<Outcome>>,
    made: Vec<Vec<(Call, u64)>>,
    storages: Vec<FaultyStorage>,
    bytes: Vec<u8>,
}

/// Runs the program with a fault on one rank.
fn run(fault: Option<(usize, Fault)>, hosts: usize, hints: &'static [(&str, &str)]) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let storages: Vec<FaultyStorage> = (0..RANKS)
        .map(|rank| {
            let of_rank = fault.filter(|fault| fault.0 == rank);
            let faults = of_rank.map(|fault| fault.1).into_iter().collect();
            FaultyStorage::new(Arc::new(RealStorage), faults)
        })
        .collect();
    let reports = Arc::new(Mutex::new(vec![Report::default(); RANKS]));
    let scene = MachineConfig::new(&system("qdr"), RANKS, RANKS.div_ceil(hosts), 1).unwrap();
    let (theirs, given, place) = (reports.clone(), storages.clone(), path.clone());
    play(scene, vec![], Keep::Nothing, move |rank| {
        let storage = given[rank.rank()].clone();
        rank.objects()
            .files_mut()
            .set_storage(Arc::new(storage.clone()));
        rank.objects().files_mut().stage_in_model();
        let report = program(rank, &storage, &place, hints);
        theirs.lock().unwrap()[rank.rank()] = report;
    });
    let bytes = std::fs::read(&path).unwrap_or_default();
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    // A file of the shared pointer that cannot be removed stays.
    let kept = fault.is_some_and(|fault| fault.1.call == Call::Remove);
    assert!(
        left <= 1 + usize::from(kept),
        "{fault:?} leaves files behind"
    );
    let (outcomes, made) = reports.lock().unwrap().iter().cloned().unzip();
    Played {
        outcomes,
        made,
        storages,
        bytes,
    }
}

/// Compares what the ranks got.
fn check(played: &Played, fault: (usize, Fault), class: Class) {
    let told = format!("{fault:?}: {:?}", played.outcomes);
    assert_eq!(played.storages[fault.0].struck(), [fault.1], "{told}");
    let first = &played.outcomes[0];
    let mut failed = 0;
    for (at, (_, is_collective, _)) in first.iter().enumerate() {
        let classes = played.outcomes.iter().map(|outcomes| outcomes[at].2);
        let classes: Vec<Class> = classes.collect();
        if *is_collective {
            assert!(classes.iter().all(|class| *class == classes[0]), "{told}");
        }
        failed += usize::from(classes.iter().any(|class| *class != Class::SUCCESS));
    }
    let lens = played.outcomes.iter().map(Vec::len);
    assert!(lens.clone().all(|len| len == first.len()), "{told}");
    // A file of the shared pointer that cannot be removed is no error.
    let shows = fault.1.call != Call::Remove && fault.1.failure != Injected::Short;
    let wanted = usize::from(shows && class != Class::SUCCESS);
    assert!(failed >= wanted && (wanted > 0 || failed == 0), "{told}");
    if failed == 1 && fault.1.call != Call::Lock {
        let is_known = |outcome: &&Outcome| outcome.2 == Class::SUCCESS || outcome.2 == class;
        let mut wrong = played
            .outcomes
            .iter()
            .flatten()
            .filter(|outcome| !is_known(outcome));
        assert_eq!(wrong.next(), None, "{told}");
    }
}

fn at_every_call(hosts: usize, hints: &'static [(&str, &str)]) {
    let usual = run(None, hosts, hints);
    for outcome in usual.outcomes.iter().flatten() {
        assert_eq!(outcome.2, Class::SUCCESS, "{outcome:?}");
    }
    let mut runs = 0;
    for rank in 0..RANKS {
        for (call, count) in usual.made[rank].clone() {
            // The last removal is that of the shared pointer's file, whose failure is no error.
            for after in 0..count {
                let short = matches!(call, Call::Read | Call::Write);
                let errors = ERRORS
                    .iter()
                    .map(|(number, class)| (Injected::Error(*number), *class));
                let short = short.then_some((Injected::Short, Class::SUCCESS));
                for (failure, class) in errors.chain(short) {
                    if class == Class::SUCCESS && failure != Injected::Short && !is_repeated(call) {
                        continue;
                    }
                    let fault = Fault {
                        call,
                        after,
                        failure,
                    };
                    let played = run(Some((rank, fault)), hosts, hints);
                    check(&played, (rank, fault), class);
                    if class == Class::SUCCESS {
                        assert_eq!(played.bytes, usual.bytes, "{fault:?} on rank {rank}");
                    }
                    runs += 1;
                }
            }
        }
    }
    println!("{runs} runs");
    assert!(runs > 200);
}

/// The crate `file_io` itself makes a call again that is interrupted above the trait.
fn is_repeated(call: Call) -> bool {
    matches!(call, Call::Read | Call::Write)
}

#[test]
fn errors_at_every_call_on_one_host() {
    at_every_call(1, &[]);
}

#[test]
fn errors_at_every_call_with_sieved_writes() {
    at_every_call(1, &[("romio_ds_write", "enable")]);
}

#[test]
fn errors_at_every_call_on_two_hosts() {
    at_every_call(2, &[]);
}

#[test]
fn errors_at_every_call_in_two_phases() {
    let hints: &[(&str, &str)] = &[
        ("romio_cb_write", "enable"),
        ("romio_cb_read", "enable"),
        ("cb_nodes", "2"),
        ("cb_buffer_size", "48"),
    ];
    at_every_call(1, hints);
    at_every_call(2, hints);
}
