//! Windows whose target computes: its progress thread serves them, and it serves nothing else.

use std::sync::{Arc, Barrier, Mutex};

use crate::common::modelled::{Keep, play, system};
use crate::common::{out, room, run_nodes, run_shared, run_with};
use crate::tcp;
use datatype::{Elements, Op, Predefined};
use model::config::MachineConfig;
use mpi::coll::Work;
use mpi::comm::WORLD;
use mpi::window::{Access, Flavor, Place};
use mpi::{Rank, WindowSpec};

const LOCK_EXCLUSIVE: i32 = 301;
const LOCK_SHARED: i32 = 302;

/// Longer than a message that is sent at once, on every transport.
const LONG: usize = 300_000;

fn window(rank: &Arc<Rank>, memory: &mut [u8], info: &[(String, String)]) -> u32 {
    let spec = WindowSpec {
        memory: room(memory),
        disp_unit: 1,
        info,
    };
    rank.window_create("MPI_Win_create", WORLD, Flavor::Create, spec)
        .unwrap()
}

fn barrier(rank: &Arc<Rank>) {
    rank.collective("MPI_Barrier", &Work::Barrier, WORLD)
        .unwrap();
}

fn access(rank: &Rank, win: u32, access: Access, (disp, count): (i64, usize), ty: Predefined) {
    let place = Place {
        rank: 0,
        disp,
        count,
        ty: ty.into(),
    };
    let started = (&access, &place);
    let request = rank.access_window(rank.lock(), "MPI_Put", win, started, false);
    assert_eq!(request.unwrap(), None);
}

fn lock(rank: &Rank, win: u32, kind: i32) {
    rank.window_lock("MPI_Win_lock", win, (kind, 0, 0)).unwrap();
}

fn unlock(rank: &Rank, win: u32) {
    rank.window_unlock("MPI_Win_unlock", win, 0).unwrap();
}

fn progress(rank: &Rank, win: u32) -> String {
    let info = rank.objects().windows().info(win).unwrap();
    let found = info
        .into_iter()
        .find(|(key, _)| key == "fishplate_progress");
    found.unwrap().1
}

/// Rank 0 waits outside of MPI until all others have ended their operations on its window.
fn target_computes(rank: &Arc<Rank>, others: &Barrier) {
    let (me, size) = (rank.rank(), rank.size());
    let mut memory = vec![0; 16 + LONG];
    let win = window(rank, &mut memory, &[]);
    assert!(progress(rank, win).ends_with("accumulate=thread,lock=thread"));
    for round in 1..=2 {
        barrier(rank);
        if me > 0 {
            let mut one = [1i64];
            let long = Predefined::INT64_T.into();
            let ones = |one: &mut [i64; 1]| {
                // SAFETY: the value stays until the operation is complete.
                unsafe { Elements::new(one.as_mut_ptr().cast(), 1, &long) }
            };
            for _ in 0..100 {
                let (origin, op) = (ones(&mut one), Op::Sum);
                lock(rank, win, LOCK_SHARED);
                let sum = Access::Accumulate { origin, op };
                access(rank, win, sum, (0, 1), Predefined::INT64_T);
                unlock(rank, win);
            }
            let mut old = [-1i64];
            let get = Access::GetAccumulate {
                origin: Some(ones(&mut one)),
                result: ones(&mut old),
                op: Op::Sum,
            };
            let data = crate::common::pattern(LONG, round);
            let mut back = vec![0; LONG];
            lock(rank, win, LOCK_EXCLUSIVE);
            access(rank, win, get, (8, 1), Predefined::INT64_T);
            let put = Access::Put(out(&data));
            access(rank, win, put, (16, LONG), Predefined::BYTE);
            rank.window_flush("MPI_Win_flush", win, Some(0)).unwrap();
            let get = Access::Get(room(&mut back));
            access(rank, win, get, (16, LONG), Predefined::BYTE);
            unlock(rank, win);
            assert_eq!(back, data);
            assert!((old[0] as usize) < round * size, "{old:?}");
        }
        others.wait();
        barrier(rank);
        if me == 0 {
            let word = |at: usize| i64::from_ne_bytes(memory[at..at + 8].try_into().unwrap());
            let origins = (round * (size - 1)) as i64;
            assert_eq!((word(0), word(8)), (100 * origins, origins));
        }
    }
    rank.window_free("MPI_Win_free", win).unwrap();
}

#[test]
fn a_target_that_computes_holds_nobody_up() {
    for settings in [
        &[][..],
        &[("FISHPLATE_WAIT", "sleep")],
        &[
            ("FISHPLATE_RING_SLOTS", "4"),
            ("FISHPLATE_RING_BYTES", "8K"),
        ],
        &[("FISHPLATE_RDMA_DESIGN", "basic")],
    ] {
        for ranks in [2, 3] {
            let others = Barrier::new(ranks);
            run_with(ranks, settings, move |rank| target_computes(rank, &others));
        }
    }
}

#[test]
fn threads_of_the_program_do_not_keep_the_progress_thread_from_it() {
    let others = Barrier::new(3);
    run_with(3, &[], move |rank| {
        rank.allow_threads();
        target_computes(rank, &others);
    });
}

#[test]
fn a_target_over_tcp_holds_nobody_up() {
    for rails in [1, 2] {
        let others = Barrier::new(3);
        run_nodes(tcp::nodes(3, rails), &[], move |rank| {
            target_computes(rank, &others);
        });
    }
}

/// Rank 1 puts and gets, each as the only access of an epoch. The answer is the number of accesses
/// that went straight to memory, at rank 1.
fn lone_accesses(rank: &Arc<Rank>, others: &Barrier) -> Option<u64> {
    let mut memory = vec![0; LONG];
    let win = window(rank, &mut memory, &[]);
    let mut straight = None;
    if rank.rank() == 1 {
        let data = crate::common::pattern(LONG, 1);
        let mut back = vec![0; LONG];
        for one in [Access::Put(out(&data)), Access::Get(room(&mut back))] {
            lock(rank, win, LOCK_EXCLUSIVE);
            access(rank, win, one, (0, LONG), Predefined::BYTE);
            unlock(rank, win);
        }
        assert_eq!(back, data);
        straight = Some(rank.objects().windows().get(win).unwrap().counts.straight);
    }
    others.wait();
    rank.window_free("MPI_Win_free", win).unwrap();
    straight
}

#[test]
fn the_first_access_of_an_epoch_waits_for_its_lock_where_the_kernel_copies() {
    let others = Barrier::new(2);
    let limit = ("FISHPLATE_SINGLE_COPY_LIMIT", "64K");
    run_shared(2, &[limit], move |rank| {
        // Ranks of one process may reach each other's memory, as processes of one user may.
        let straight = lone_accesses(rank, &others);
        assert!(matches!(straight, None | Some(2)), "{straight:?}");
    });
}

#[test]
fn windows_tell_who_makes_progress() {
    run_shared(2, &[], |rank| {
        let mut memory = [0; 8];
        let win = window(rank, &mut memory, &[("no_locks".into(), "true".into())]);
        let calls = "put=calls,get=calls,accumulate=calls,lock=calls";
        assert_eq!(progress(rank, win), calls);
        let mut locked = [0; 8];
        let other = window(rank, &mut locked, &[]);
        assert_eq!(progress(rank, win), calls);
        assert_eq!(progress(rank, other), calls.replace("calls", "thread"));
        rank.window_free("MPI_Win_free", other).unwrap();
        rank.window_free("MPI_Win_free", win).unwrap();
        let made = rank.explain_choices();
        let thread = r#"{"flavor":"MPI_Win_create","count":1,"progress":[{"operations":"put","by":"thread"}"#;
        assert!(made.contains(thread), "{made}");
    });
    run_shared(2, &[("FISHPLATE_PROGRESS", "calls")], |rank| {
        let mut memory = [0; 8];
        let win = window(rank, &mut memory, &[]);
        assert!(progress(rank, win).ends_with("lock=calls"));
        rank.window_free("MPI_Win_free", win).unwrap();
    });
}

/// Virtual nanoseconds of an operation at a target that computes for a second, and the nanoseconds
/// from the target's start of computing to its next call.
fn modelled(
    machine: &str,
    cores: Option<u32>,
    settings: &[(&'static str, &'static str)],
) -> (u64, u64) {
    const SECOND: u64 = 1_000_000_000;
    let run = || {
        let mut system = system(machine);
        system.host.cores = cores;
        let scene = MachineConfig::new(&system, 2, 1, 1).unwrap();
        let times = Arc::new(Mutex::new((0, 0)));
        let kept = times.clone();
        let run = play(scene, settings.to_vec(), Keep::Digest, move |rank| {
            let mut memory = [0; 8];
            let win = window(rank, &mut memory, &[]);
            barrier(rank);
            let start = rank.now();
            if rank.rank() == 0 {
                rank.enter(mpi::ProgramCall::after(SECOND, "MPI_Barrier"));
                times.lock().unwrap().1 = rank.now() - start;
            } else {
                // The target computes already.
                rank.enter(mpi::ProgramCall::after(SECOND / 10, "MPI_Win_lock"));
                let start = rank.now();
                lock(rank, win, LOCK_EXCLUSIVE);
                let put = Access::Put(out(&[1; 8]));
                access(rank, win, put, (0, 8), Predefined::BYTE);
                unlock(rank, win);
                times.lock().unwrap().0 = rank.now() - start;
            }
            barrier(rank);
            assert_eq!(memory[0], u8::from(rank.rank() == 0));
            rank.window_free("MPI_Win_free", win).unwrap();
        });
        let times = *kept.lock().unwrap();
        (run, times)
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    first.1
}

#[test]
fn virtual_time_has_the_thread_too_which_slows_computing_on_the_same_core() {
    const SECOND: u64 = 1_000_000_000;
    for machine in ["qdr", "2xqdr", "edr"] {
        for cores in [None, Some(1), Some(2)] {
            let (operation, computing) = modelled(machine, cores, &[]);
            assert!(operation < 100_000, "{machine}: {operation} ns");
            let added = computing - SECOND;
            let wanted = if cores == Some(1) {
                1_000..100_000
            } else {
                0..1_000
            };
            assert!(wanted.contains(&added), "{machine}, {cores:?}: {added} ns");
        }
        let (operation, computing) = modelled(machine, None, &[("FISHPLATE_PROGRESS", "calls")]);
        assert!(operation > 8 * SECOND / 10, "{machine}: {operation} ns");
        assert!(computing < SECOND + 1_000, "{machine}: {computing} ns");
    }
}
