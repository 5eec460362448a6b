//! One-sided communication: every kind of window, operation and synchronisation, over every
//! transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{gapped, out, pattern, room, run, run_remote, run_shared, run_with};
use crate::intercommunicators::halves;
use datatype::{Buffer, Elements, Op, Predefined, Type};
use mpi::comm::{SELF, WORLD};
use mpi::errhandler::RETURN;
use mpi::window::{Access, Flavor, Place, WayCounts};
use mpi::{Class, PROC_NULL, Rank, Result, WindowSpec, group};
use testdevice::strict::Setup;

const LOCK_EXCLUSIVE: i32 = 301;
const LOCK_SHARED: i32 = 302;
const NOCHECK: i32 = 1024;
const NOSUCCEED: i32 = 16384;

/// Settings that take every message through each of its paths.
const SETTINGS: [&[(&str, &str)]; 2] = [
    &[],
    &[
        ("FISHPLATE_RING_SLOTS", "4"),
        ("FISHPLATE_RING_BYTES", "8K"),
        ("FISHPLATE_WAIT", "sleep"),
    ],
];

fn window(rank: &Arc<Rank>, memory: &mut [u8], disp_unit: i64) -> u32 {
    window_of(rank, Flavor::Create, room(memory), disp_unit, &[])
}

fn window_of(
    rank: &Arc<Rank>,
    flavor: Flavor,
    memory: Buffer,
    disp_unit: i64,
    info: &[(String, String)],
) -> u32 {
    let spec = WindowSpec {
        memory,
        disp_unit,
        info,
    };
    let win = rank
        .window_create("MPI_Win_create", WORLD, flavor, spec)
        .unwrap();
    rank.objects().set_window_errhandler(win, RETURN).unwrap();
    win
}

fn free(rank: &Arc<Rank>, win: u32) {
    rank.window_free("MPI_Win_free", win).unwrap();
}

fn place(rank: i32, disp: i64, count: usize, ty: impl Into<Type>) -> Place {
    Place {
        rank,
        disp,
        count,
        ty: ty.into(),
    }
}

fn access(rank: &Rank, win: u32, access: Access, place: Place) -> Result<()> {
    let request = rank.lock().access_window(win, &access, &place, false)?;
    assert_eq!(request, None);
    Ok(())
}

fn put(rank: &Rank, win: u32, bytes: &[u8], at: Place) -> Result<()> {
    access(rank, win, Access::Put(out(bytes)), at)
}

fn get(rank: &Rank, win: u32, bytes: &mut [u8], at: Place) -> Result<()> {
    access(rank, win, Access::Get(room(bytes)), at)
}

fn operand(values: &mut [i64]) -> Elements {
    let long = Predefined::INT64_T.into();
    // SAFETY: the tests keep the values until the operation is complete.
    unsafe { Elements::new(values.as_mut_ptr().cast(), values.len(), &long) }
}

fn accumulate(rank: &Rank, win: u32, values: &mut [i64], op: Op, at: Place) -> Result<()> {
    let origin = operand(values);
    access(rank, win, Access::Accumulate { origin, op }, at)
}

fn fence(rank: &Rank, win: u32) {
    rank.window_fence("MPI_Win_fence", win, 0).unwrap();
}

fn longs(bytes: &[u8]) -> Vec<i64> {
    let words = bytes.chunks_exact(8);
    words
        .map(|word| i64::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

const LONG: Predefined = Predefined::INT64_T;

fn me(rank: &Rank) -> (i32, i32) {
    (rank.rank() as i32, rank.size() as i32)
}

#[test]
fn data_of_any_length_reach_the_neighbour() {
    for settings in SETTINGS {
        for ranks in [1, 2, 3] {
            run_with(ranks, settings, |rank| {
                let (me, size) = me(rank);
                for len in [0, 1, 8, 1000, 65_536, 65_537, 300_000] {
                    let mut memory = vec![0; len + 3];
                    let win = window(rank, &mut memory, 1);
                    let data = crate::common::pattern(len, rank.rank());
                    fence(rank, win);
                    let right = (me + 1) % size;
                    put(rank, win, &data, place(right, 3, len, Predefined::BYTE)).unwrap();
                    fence(rank, win);
                    let left = (me + size - 1) % size;
                    let theirs = crate::common::pattern(len, left as usize);
                    assert!(memory[..3] == [0; 3] && memory[3..] == theirs);
                    let mut read = vec![0; len];
                    get(rank, win, &mut read, place(right, 3, len, Predefined::BYTE)).unwrap();
                    fence(rank, win);
                    assert!(read == data);
                    free(rank, win);
                }
            });
        }
    }
}

/// Windows that nobody uses are not served, so messages cost the same beside any number of them.
#[test]
fn a_window_at_rest_is_not_served() {
    run(2, |rank| {
        let (me, _) = me(rank);
        let mut memories = [[0; 64]; 20];
        let windows = memories.each_mut().map(|memory| window(rank, memory, 1));
        // A fence marks its own window; others are served once more, when a wait makes progress.
        let mut fences = 0;
        while rank.objects().windows().marked() > 1 && fences < 1000 {
            fence(rank, windows[0]);
            fences += 1;
        }
        // The other rank may need some of them, too.
        (fences..1000).for_each(|_| fence(rank, windows[0]));
        assert!(rank.objects().windows().marked() <= 1);
        fence(rank, windows[7]);
        put(
            rank,
            windows[7],
            &[7],
            place(1 - me, 3, 1, Predefined::BYTE),
        )
        .unwrap();
        fence(rank, windows[7]);
        assert!(rank.objects().windows().marked() <= 2);
        windows.into_iter().for_each(|win| free(rank, win));
        assert_eq!(memories[7][3], 7);
    });
}

#[test]
fn derived_datatypes_on_both_sides() {
    run(2, |rank| {
        let (me, _) = me(rank);
        // Three of each four integers, 5000 times, at the target; every second integer here.
        let target = gapped();
        for count in [1usize, 40, 5000] {
            let integers = count * 4;
            let every_second =
                Type::vector(integers as i64, 1, 2, &Predefined::INT.into()).unwrap();
            let mut mine: Vec<u8> = (0..integers * 2)
                .flat_map(|at| (at as i32 + 100 * me).to_ne_bytes())
                .collect();
            mine.truncate(integers * 8 - 4);
            mine.resize(integers * 8, 0);
            let mut memory = vec![0xee; count * 32 + 8];
            let win = window(rank, &mut memory, 4);
            fence(rank, win);
            let origin = crate::common::typed(&mut mine, 1, &every_second);
            let at = place(1 - me, 2, count, target.clone());
            access(rank, win, Access::Put(origin), at.clone()).unwrap();
            fence(rank, win);
            let int = |at: usize| i32::from_ne_bytes(memory[at..at + 4].try_into().unwrap());
            for element in 0..count {
                let base = 8 + element * 32;
                for (at, offset) in [0, 4, 8, 16].into_iter().enumerate() {
                    let sent = (element * 4 + at) as i32 * 2 + 100 * (1 - me);
                    assert_eq!(int(base + offset), sent);
                }
                assert_eq!(memory[base + 12..base + 16], [0xee; 4]);
                assert_eq!(
                    memory[base + 20..(base + 32).min(memory.len())]
                        .iter()
                        .max(),
                    Some(&0xee)
                );
            }
            let mut back = vec![0; integers * 8];
            let origin = crate::common::typed(&mut back, 1, &every_second);
            access(rank, win, Access::Get(origin), at).unwrap();
            fence(rank, win);
            for at in (0..integers * 8).filter(|at| at % 8 < 4) {
                assert_eq!(back[at], mine[at]);
            }
            free(rank, win);
        }
    });
}

#[test]
fn accumulates_of_all_ranks_lose_nothing() {
    for settings in SETTINGS {
        run_with(4, settings, |rank| {
            let (me, size) = me(rank);
            // More than a piece of an accumulate.
            for count in [1usize, 3, 20_000] {
                let mut memory = vec![0; count * 8];
                let win = window(rank, &mut memory, 8);
                fence(rank, win);
                let mut ones = vec![1 + i64::from(me); count];
                for target in 0..size {
                    let at = place(target, 0, count, LONG);
                    accumulate(rank, win, &mut ones, Op::Sum, at).unwrap();
                }
                fence(rank, win);
                assert_eq!(longs(&memory), vec![10; count]);
                free(rank, win);
            }
        });
    }
}

#[test]
fn fetched_values_are_a_counter() {
    for settings in SETTINGS {
        run_with(3, settings, |rank| {
            const TIMES: usize = 50;
            let (me, size) = me(rank);
            let mut memory = vec![0; 8 * (1 + 3 * TIMES)];
            let win = window(rank, &mut memory, 8);
            rank.window_lock_all("MPI_Win_lock_all", win, 0).unwrap();
            let mut one = [1];
            for _ in 0..TIMES {
                let mut old = [-1];
                let fetch = Access::GetAccumulate {
                    origin: Some(operand(&mut one)),
                    result: operand(&mut old),
                    op: Op::Sum,
                };
                access(rank, win, fetch, place(0, 0, 1, LONG)).unwrap();
                rank.window_flush("MPI_Win_flush", win, Some(0)).unwrap();
                assert!((0..(TIMES as i64 * i64::from(size))).contains(&old[0]));
                // Each number is drawn once, so each place is written once.
                let at = place(0, 1 + old[0], 1, LONG);
                accumulate(rank, win, &mut [1 + i64::from(me)], Op::Sum, at).unwrap();
                rank.window_flush("MPI_Win_flush", win, Some(0)).unwrap();
            }
            rank.window_unlock_all("MPI_Win_unlock_all", win).unwrap();
            fence(rank, win);
            if me == 0 {
                let all = longs(&memory);
                assert_eq!(all[0], TIMES as i64 * i64::from(size));
                let of = |rank: i64| all[1..].iter().filter(|&&value| value == rank + 1).count();
                assert_eq!([of(0), of(1), of(2)], [TIMES; 3]);
            }
            free(rank, win);
        });
    }
}

#[test]
fn exclusive_locks_keep_gets_and_puts_together() {
    for settings in SETTINGS {
        run_with(3, settings, |rank| {
            const TIMES: i64 = 20;
            let mut memory = vec![0; 8];
            let win = window(rank, &mut memory, 1);
            for _ in 0..TIMES {
                for target in [0, 2] {
                    rank.window_lock("MPI_Win_lock", win, (LOCK_EXCLUSIVE, target, 0))
                        .unwrap();
                    let mut word = [0; 8];
                    get(rank, win, &mut word, place(target, 0, 1, LONG)).unwrap();
                    rank.window_flush("MPI_Win_flush", win, Some(target))
                        .unwrap();
                    let next = i64::from_ne_bytes(word) + 1;
                    let next = next.to_ne_bytes();
                    put(rank, win, &next, place(target, 0, 1, LONG)).unwrap();
                    rank.window_unlock("MPI_Win_unlock", win, target).unwrap();
                }
            }
            fence(rank, win);
            let expected = if rank.rank() == 1 { 0 } else { 3 * TIMES };
            assert_eq!(longs(&memory), [expected]);
            free(rank, win);
        });
    }
}

#[test]
fn own_window_is_locked_when_the_call_returns() {
    run(2, |rank| {
        const TIMES: i64 = 30;
        let mut memory = [0i64];
        let base = memory.as_mut_ptr();
        // SAFETY: the array outlives the window; it is touched under its lock only.
        let buffer = unsafe { Buffer::dense(base.cast(), 8) };
        let win = window_of(rank, Flavor::Create, buffer, 8, &[]);
        if rank.rank() == 0 {
            for _ in 0..TIMES {
                rank.window_lock("MPI_Win_lock", win, (LOCK_EXCLUSIVE, 0, 0))
                    .unwrap();
                // SAFETY: as above.
                unsafe { base.write_volatile(base.read_volatile() + 1) };
                rank.window_unlock("MPI_Win_unlock", win, 0).unwrap();
            }
        } else {
            for _ in 0..TIMES {
                rank.window_lock("MPI_Win_lock", win, (LOCK_SHARED, 0, 0))
                    .unwrap();
                accumulate(rank, win, &mut [1], Op::Sum, place(0, 0, 1, LONG)).unwrap();
                rank.window_unlock("MPI_Win_unlock", win, 0).unwrap();
            }
        }
        fence(rank, win);
        // SAFETY: as above.
        let sum = unsafe { base.read_volatile() };
        assert_eq!(sum, if rank.rank() == 0 { 2 * TIMES } else { 0 });
        free(rank, win);
    });
}

#[test]
fn compare_and_swap_has_one_winner() {
    run(4, |rank| {
        let me = rank.rank() as i64;
        let mut memory = vec![0xff; 16];
        let win = window(rank, &mut memory, 8);
        let (mut old, mut free_place, mut mine) = ([0], [-1], [me]);
        rank.window_lock("MPI_Win_lock", win, (LOCK_SHARED, 1, 0))
            .unwrap();
        let swap = Access::CompareAndSwap {
            compare: operand(&mut free_place),
            origin: operand(&mut mine),
            result: operand(&mut old),
        };
        access(rank, win, swap, place(1, 1, 1, LONG)).unwrap();
        rank.window_unlock("MPI_Win_unlock", win, 1).unwrap();
        fence(rank, win);
        if rank.rank() == 1 {
            let all = longs(&memory);
            assert!(all[0] == -1 && (0..4).contains(&all[1]));
        }
        let mut winner = [0; 8];
        get(rank, win, &mut winner, place(1, 1, 1, LONG)).unwrap();
        fence(rank, win);
        let winner = i64::from_ne_bytes(winner);
        assert_eq!(old[0], if winner == me { -1 } else { winner });
        free(rank, win);
    });
}

#[test]
fn post_start_complete_wait() {
    for settings in SETTINGS {
        run_with(4, settings, |rank| {
            let (me, size) = me(rank);
            let mut memory = vec![0; 8 * 4];
            let win = window(rank, &mut memory, 8);
            let neighbours = rank
                .objects()
                .groups_mut()
                .add(vec![((me + 1) % size) as u32, ((me + 3) % size) as u32].into())
                .unwrap();
            for round in 0..10 {
                rank.window_post(win, neighbours, 0).unwrap();
                rank.window_start("MPI_Win_start", win, neighbours, 0)
                    .unwrap();
                for target in [(me + 1) % size, (me + 3) % size] {
                    let word = (i64::from(me) + 100 * round).to_ne_bytes();
                    put(rank, win, &word, place(target, i64::from(me), 1, LONG)).unwrap();
                }
                let outside = place((me + 2) % size, 0, 1, LONG);
                let refused = put(rank, win, &[0; 8], outside).unwrap_err();
                assert_eq!(refused.class, Class::RMA_SYNC);
                rank.window_complete("MPI_Win_complete", win).unwrap();
                if round % 2 == 0 {
                    rank.window_wait("MPI_Win_wait", win).unwrap();
                } else {
                    while !rank.window_test("MPI_Win_test", win).unwrap() {}
                }
                let all = longs(&memory);
                for origin in [(me + 1) % size, (me + 3) % size] {
                    assert_eq!(all[origin as usize], i64::from(origin) + 100 * round);
                }
            }
            rank.objects().groups_mut().free(neighbours).unwrap();
            free(rank, win);
        });
    }
}

#[test]
fn requests_complete_with_their_data() {
    run(2, |rank| {
        let (me, _) = me(rank);
        let other = 1 - me;
        for len in [8usize, 100_000] {
            let mut memory = vec![me as u8; len];
            let win = window(rank, &mut memory, 1);
            rank.window_lock_all("MPI_Win_lock_all", win, 0).unwrap();
            let mut read = vec![9; len];
            let at = place(other, 0, len, Predefined::BYTE);
            let id = rank
                .lock()
                .access_window(win, &Access::Get(room(&mut read)), &at, true)
                .unwrap();
            rank.wait("MPI_Wait", id.unwrap()).unwrap();
            assert!(read == vec![other as u8; len]);
            // Nobody writes before all have read.
            rank.collective("MPI_Barrier", &mpi::coll::Work::Barrier, WORLD)
                .unwrap();
            let mut data = vec![7; len];
            let id = rank
                .lock()
                .access_window(win, &Access::Put(room(&mut data)), &at, true)
                .unwrap();
            rank.wait("MPI_Wait", id.unwrap()).unwrap();
            data.fill(0);
            rank.window_flush_local("MPI_Win_flush_local", win, Some(other))
                .unwrap();
            rank.window_flush_local("MPI_Win_flush_local_all", win, None)
                .unwrap();
            rank.window_unlock_all("MPI_Win_unlock_all", win).unwrap();
            fence(rank, win);
            assert!(memory == vec![7; len]);
            let nobody = place(PROC_NULL, 0, len, Predefined::BYTE);
            let id = rank
                .lock()
                .access_window(win, &Access::Get(room(&mut read)), &nobody, true)
                .unwrap();
            rank.wait("MPI_Wait", id.unwrap()).unwrap();
            free(rank, win);
        }
    });
}

#[test]
fn dynamic_windows_know_attached_memory_only() {
    run(2, |rank| {
        let (me, _) = me(rank);
        let other = 1 - me;
        let win = window_of(rank, Flavor::Dynamic, Buffer::empty(), 1, &[]);
        let mut memory = vec![0u8; 200_000];
        let start = memory.as_ptr().addr();
        rank.window_attach(win, room(&mut memory)).unwrap();
        let overlapping = rank.window_attach(win, room(&mut memory[7..9]));
        assert_eq!(overlapping.unwrap_err().class, Class::RMA_ATTACH);
        let mut addresses = vec![0; 16];
        let table = window(rank, &mut addresses, 8);
        fence(rank, table);
        let word = (start as u64).to_ne_bytes();
        put(rank, table, &word, place(other, i64::from(me), 1, LONG)).unwrap();
        fence(rank, table);
        let theirs = longs(&addresses)[other as usize];
        rank.window_lock("MPI_Win_lock", win, (LOCK_EXCLUSIVE, other, 0))
            .unwrap();
        for len in [4, 150_000] {
            let at = place(other, theirs + 10, len, Predefined::BYTE);
            let data = vec![5; len];
            put(rank, win, &data, at).unwrap();
            rank.window_flush("MPI_Win_flush", win, Some(other))
                .unwrap();
        }
        // Outside: the target refuses, whatever the operation, and its answer is the error.
        let mut read = vec![3; 100_000];
        for at in [theirs - 1, theirs + 150_000, 0] {
            let at = place(other, at, 100_000, Predefined::BYTE);
            put(rank, win, &read, at.clone()).unwrap();
            let refused = rank.window_flush("MPI_Win_flush", win, Some(other));
            assert_eq!(refused.unwrap_err().class, Class::RMA_RANGE);
            get(rank, win, &mut read, at).unwrap();
            let refused = rank.window_flush("MPI_Win_flush", win, Some(other));
            assert_eq!(refused.unwrap_err().class, Class::RMA_RANGE);
        }
        let at = place(other, theirs, 1, LONG);
        accumulate(rank, win, &mut [-1], Op::Replace, at).unwrap();
        rank.window_unlock("MPI_Win_unlock", win, other).unwrap();
        fence(rank, table);
        assert_eq!(memory[..10], [255, 255, 255, 255, 255, 255, 255, 255, 0, 0]);
        assert!(memory[10..150_010].iter().all(|byte| *byte == 5));
        rank.objects().window_detach(win, start).unwrap();
        let again = rank.objects().window_detach(win, start).unwrap_err();
        assert_eq!(again.class, Class::RMA_ATTACH);
        fence(rank, win);
        put(rank, win, &[1], place(other, theirs, 1, Predefined::BYTE)).unwrap();
        let refused = rank.window_fence("MPI_Win_fence", win, 0).unwrap_err();
        assert_eq!(refused.class, Class::RMA_RANGE);
        free(rank, win);
        free(rank, table);
    });
}

#[test]
fn shared_windows_are_memory_of_all() {
    crate::common::run_shared(3, &[], |rank| {
        let (me, size) = me(rank);
        for noncontiguous in ["false", "true"] {
            let info = [(
                "alloc_shared_noncontig".to_string(),
                noncontiguous.to_string(),
            )];
            let spec = WindowSpec {
                memory: Buffer::empty(),
                disp_unit: 4,
                info: &info,
            };
            // The first rank gives nothing.
            let bytes = 24 * me as usize;
            let win = rank
                .window_create_shared("MPI_Win_allocate_shared", WORLD, bytes, spec)
                .unwrap();
            let query = |of| rank.objects().window_shared_query(win, of).unwrap();
            assert_eq!((query(2).1, query(1).1, query(1).2), (48, 24, 4));
            assert_eq!(query(PROC_NULL), query(1));
            assert_eq!(query(0).1, 0);
            if noncontiguous == "false" {
                assert_eq!(query(2).0, query(1).0 + 24);
            } else {
                assert_eq!((query(2).0 - query(1).0) % 4096, 0);
            }
            let right = (me + 1) % size;
            let (address, len, _) = query(right);
            assert_eq!(
                query(me).0,
                rank.objects().windows().get(win).unwrap().facts.base
            );
            rank.window_lock_all("MPI_Win_lock_all", win, 0).unwrap();
            let theirs = std::ptr::with_exposed_provenance_mut::<u8>(address);
            for at in 0..len {
                // SAFETY: within the part of that rank; nobody else writes there.
                unsafe { theirs.add(at).write_volatile(me as u8 + 1) };
            }
            rank.window_sync(win).unwrap();
            rank.collective("MPI_Barrier", &mpi::coll::Work::Barrier, WORLD)
                .unwrap();
            rank.window_sync(win).unwrap();
            let left = (me + size - 1) % size;
            let mut read = vec![0; bytes];
            let all = place(me, 0, bytes, Predefined::BYTE);
            get(rank, win, &mut read, all).unwrap();
            rank.window_unlock_all("MPI_Win_unlock_all", win).unwrap();
            assert_eq!(read, vec![left as u8 + 1; bytes]);
            free(rank, win);
        }
    });
}

#[test]
fn ranks_of_several_hosts_share_no_window() {
    run(2, |rank| {
        let spec = WindowSpec {
            memory: Buffer::empty(),
            disp_unit: 1,
            info: &[],
        };
        let made = rank.window_create_shared("MPI_Win_allocate_shared", WORLD, 8, spec);
        let hosts = rank.hosts();
        match (made, hosts.of(0) == hosts.of(1)) {
            (Ok(win), true) => free(rank, win),
            (Err(error), false) => assert_eq!(error.class, Class::RMA_SHARED),
            (made, together) => panic!("{:?} although {together}", made.map(drop)),
        }
    });
}

/// A target of a mapped window may compute for ever: it makes no call while it is accessed.
/// A promise of words makes accumulates atomics of the processor where all members map the window;
/// the others are refused, and where nothing is mapped, all work.
#[test]
fn a_window_of_words_has_no_other_accumulates() {
    const KEY: &str = "fishplate_word_accumulates";
    let program = |all_promise: bool| {
        move |rank: &Arc<Rank>| {
            let (me, size) = me(rank);
            let promises = all_promise || me != 0;
            let info = [(KEY.to_string(), promises.to_string())];
            let mut memory = vec![0u8; 64];
            let spec = WindowSpec {
                memory: Buffer::empty(),
                disp_unit: 8,
                info: &info,
            };
            let own = room(&mut memory);
            let win = rank
                .window_allocate("MPI_Win_allocate", WORLD, (64, true), spec, || Some(own))
                .unwrap();
            rank.objects().set_window_errhandler(win, RETURN).unwrap();
            let (shown, base, is_mapped) = {
                let state = rank.lock();
                let window = state.objects().windows().get(win).unwrap();
                (window.hints.info(), window.facts.base, window.is_mapped())
            };
            let is_in_effect = is_mapped && all_promise;
            assert!(shown.contains(&(KEY.to_string(), is_in_effect.to_string())));
            rank.window_lock_all("MPI_Win_lock_all", win, 0).unwrap();
            const TIMES: i64 = 2000;
            for turn in 0..TIMES {
                let mut ones = [1, 1, 1];
                let count = [1, 3][turn as usize % 2];
                let at = place(0, 0, count, LONG);
                accumulate(rank, win, &mut ones[..count], Op::Sum, at).unwrap();
            }
            // The lowest rank that draws a number takes it.
            let (mut old, mut new, mut expected) = ([-1], [i64::from(me) + 1], [0]);
            let swap = Access::CompareAndSwap {
                compare: operand(&mut expected),
                origin: operand(&mut new),
                result: operand(&mut old),
            };
            access(rank, win, swap, place(0, 7, 1, LONG)).unwrap();
            rank.window_flush("MPI_Win_flush", win, Some(0)).unwrap();
            assert!((0..=i64::from(size)).contains(&old[0]));
            let at = place(0, 5, 1, LONG);
            let refused = accumulate(rank, win, &mut [1], Op::Max, at);
            assert_eq!(
                refused.is_err_and(|error| error.class == Class::RMA_CONFLICT),
                is_in_effect
            );
            rank.window_unlock_all("MPI_Win_unlock_all", win).unwrap();
            fence(rank, win);
            if me == 0 {
                let base = std::ptr::with_exposed_provenance::<i64>(base);
                // SAFETY: the part has as many words, and nobody changes them any more.
                let words = [0, 1, 7].map(|at| unsafe { base.add(at).read_volatile() });
                let size = i64::from(size);
                assert_eq!(words[..2], [TIMES * size, TIMES / 2 * size]);
                assert!((1..=size).contains(&words[2]));
            }
            free(rank, win);
        }
    };
    run_with(4, &[], program(true));
    run_with(3, &[], program(false));
}

#[test]
fn targets_of_mapped_windows_have_no_part_in_accesses() {
    let done = Arc::new(AtomicBool::new(false));
    run_shared(2, &[], move |rank| {
        let spec = WindowSpec {
            memory: Buffer::empty(),
            disp_unit: 8,
            info: &[],
        };
        let never = || unreachable!("ranks of one segment share memory");
        let win = rank
            .window_allocate("MPI_Win_allocate", WORLD, (64, true), spec, never)
            .unwrap();
        assert!(rank.objects().windows().get(win).unwrap().is_mapped());
        if rank.rank() == 0 {
            for kind in [LOCK_EXCLUSIVE, LOCK_SHARED] {
                rank.window_lock("MPI_Win_lock", win, (kind, 1, 0)).unwrap();
                let (mut one, mut old) = ([3], [0; 8]);
                accumulate(rank, win, &mut one, Op::Sum, place(1, 2, 1, LONG)).unwrap();
                rank.window_flush("MPI_Win_flush", win, Some(1)).unwrap();
                put(rank, win, &7i64.to_ne_bytes(), place(1, 0, 1, LONG)).unwrap();
                rank.window_flush("MPI_Win_flush_all", win, None).unwrap();
                get(rank, win, &mut old, place(1, 0, 1, LONG)).unwrap();
                assert_eq!(i64::from_ne_bytes(old), 7);
                rank.window_unlock("MPI_Win_unlock", win, 1).unwrap();
            }
            rank.window_lock_all("MPI_Win_lock_all", win, 0).unwrap();
            let mut old = [0; 8];
            get(rank, win, &mut old, place(1, 2, 1, LONG)).unwrap();
            assert_eq!(i64::from_ne_bytes(old), 6);
            rank.window_unlock_all("MPI_Win_unlock_all", win).unwrap();
            done.store(true, Ordering::SeqCst);
        } else {
            while !done.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
        free(rank, win);
    });
}

#[test]
fn a_window_needs_a_communicator_of_one_group() {
    run(2, |rank| {
        let (_, inter) = halves(rank, 1);
        let spec = WindowSpec {
            memory: Buffer::empty(),
            disp_unit: 1,
            info: &[],
        };
        let made = rank.window_create("MPI_Win_create", inter, Flavor::Create, spec);
        assert_eq!(made.unwrap_err().class, Class::COMM);
    });
}

#[test]
fn wrong_use_is_a_clear_error() {
    run(2, |rank| {
        let mut memory = vec![0; 80];
        let win = window(rank, &mut memory, 8);
        let class = |result: Result<()>| result.unwrap_err().class;
        let byte = |target, disp, count| place(target, disp, count, Predefined::BYTE);
        assert_eq!(class(put(rank, win, &[1], byte(0, 0, 1))), Class::RMA_SYNC);
        fence(rank, win);
        assert_eq!(class(put(rank, win, &[1], byte(0, -1, 1))), Class::DISP);
        assert_eq!(
            class(put(rank, win, &[1], byte(0, 10, 1))),
            Class::RMA_RANGE
        );
        assert_eq!(
            class(put(rank, win, &[1; 9], byte(0, 9, 9))),
            Class::RMA_RANGE
        );
        assert_eq!(
            class(put(rank, win, &[1; 9], byte(0, 0, 8))),
            Class::TRUNCATE
        );
        assert_eq!(class(put(rank, win, &[1], byte(2, 0, 1))), Class::RANK);
        assert_eq!(class(put(rank, win, &[1], byte(-7, 0, 1))), Class::RANK);
        assert_eq!(class(put(rank, 7, &[1], byte(0, 0, 1))), Class::WIN);
        put(rank, win, &[1], byte(PROC_NULL, -4, 1)).unwrap();
        let far = place(0, i64::MAX / 4, 1, LONG);
        assert_eq!(class(put(rank, win, &[1; 8], far)), Class::RMA_RANGE);
        let mut one = [1];
        let minloc = accumulate(rank, win, &mut one, Op::Minloc, place(0, 0, 1, LONG));
        assert_eq!(class(minloc), Class::OP);
        let short = accumulate(
            rank,
            win,
            &mut one,
            Op::Sum,
            place(0, 0, 2, Predefined::INT),
        );
        assert_eq!(class(short), Class::TYPE);
        let float = place(0, 0, 1, Predefined::DOUBLE);
        let (mut compare, mut origin, mut result) = ([1], [1], [1]);
        let swap = Access::CompareAndSwap {
            compare: operand(&mut compare),
            origin: operand(&mut origin),
            result: operand(&mut result),
        };
        assert_eq!(class(access(rank, win, swap, float)), Class::TYPE);
        let lock = |arguments| class(rank.window_lock("MPI_Win_lock", win, arguments));
        assert_eq!(lock((300, 0, 0)), Class::LOCKTYPE);
        assert_eq!(lock((LOCK_SHARED, 2, 0)), Class::RANK);
        assert_eq!(lock((LOCK_SHARED, 0, 1)), Class::ASSERT);
        assert_eq!(
            class(rank.window_fence("MPI_Win_fence", win, NOCHECK)),
            Class::ASSERT
        );
        rank.window_fence("MPI_Win_fence", win, NOSUCCEED).unwrap();
        assert_eq!(class(put(rank, win, &[1], byte(0, 0, 1))), Class::RMA_SYNC);
        assert_eq!(
            class(rank.window_unlock("MPI_Win_unlock", win, 0)),
            Class::RMA_SYNC
        );
        assert_eq!(
            class(rank.window_wait("MPI_Win_wait", win)),
            Class::RMA_SYNC
        );
        assert_eq!(
            class(rank.window_flush("MPI_Win_flush", win, Some(0))),
            Class::RMA_SYNC
        );
        rank.window_lock("MPI_Win_lock", win, (LOCK_SHARED, 0, NOCHECK))
            .unwrap();
        assert_eq!(
            class(rank.window_free("MPI_Win_free", win)),
            Class::RMA_SYNC
        );
        rank.window_unlock("MPI_Win_unlock", win, 0).unwrap();
        assert_eq!(
            class(rank.window_attach(win, Buffer::empty())),
            Class::RMA_FLAVOR
        );
        free(rank, win);
        assert_eq!(class(rank.window_free("MPI_Win_free", win)), Class::WIN);
        let no_locks = [("no_locks".to_string(), "true".to_string())];
        let win = window_of(rank, Flavor::Allocate, room(&mut memory), 1, &no_locks);
        assert_eq!(
            class(rank.window_lock_all("MPI_Win_lock_all", win, 0)),
            Class::RMA_SYNC
        );
        free(rank, win);
        let spec = |disp_unit| WindowSpec {
            memory: Buffer::empty(),
            disp_unit,
            info: &[],
        };
        for disp_unit in [0, -4] {
            let made = rank.window_create("MPI_Win_create", SELF, Flavor::Create, spec(disp_unit));
            assert_eq!(class(made.map(drop)), Class::DISP);
        }
    });
}

/// Operations without number leave within the credit of the target, and none is lost.
#[test]
fn a_flood_of_operations_is_complete_after_one_flush() {
    for settings in SETTINGS {
        run_with(3, settings, |rank| {
            const TIMES: i64 = 1000;
            let mut memory = vec![0; 16];
            let win = window(rank, &mut memory, 8);
            rank.window_lock_all("MPI_Win_lock_all", win, 0).unwrap();
            for time in 1..=TIMES {
                for target in 0..3 {
                    let at = place(target, 0, 1, LONG);
                    accumulate(rank, win, &mut [1], Op::Sum, at).unwrap();
                    let at = place(target, 1, 1, LONG);
                    accumulate(rank, win, &mut [time], Op::Max, at).unwrap();
                }
            }
            rank.window_flush("MPI_Win_flush_all", win, None).unwrap();
            rank.window_unlock_all("MPI_Win_unlock_all", win).unwrap();
            fence(rank, win);
            assert_eq!(longs(&memory), [3 * TIMES, TIMES]);
            free(rank, win);
        });
    }
}

#[test]
fn the_group_of_a_window_is_that_of_its_communicator() {
    run(3, |rank| {
        let mut memory = vec![0; 4];
        let win = window(rank, &mut memory, 1);
        let mut state = rank.lock();
        let members = state.objects_mut().window_group(win).unwrap();
        assert_eq!(
            state.objects().groups().get(members).unwrap().members,
            group::Members::All(3)
        );
        state.objects_mut().groups_mut().free(members).unwrap();
        let window = state.objects_mut().windows_mut().get_mut(win).unwrap();
        window.set_name("halo");
        assert_eq!(window.name, "halo");
        assert_eq!((window.facts.size, window.facts.disp_unit), (4, 1));
        assert_eq!(window.facts.base, memory.as_ptr().addr());
        drop(state);
        free(rank, win);
    });
}

/// Bytes of the windows whose puts and gets are counted by path.
const COUNTED: usize = 256 << 10;

/// Puts and gets of rank 0, by the lengths of their runs at rank 1, each with 3 runs; then the
/// number of operations on each path.
fn ways_of(rank: &Arc<Rank>, lens: &[usize]) -> Option<WayCounts> {
    let mut memory = vec![0; COUNTED];
    let win = window(rank, &mut memory, 1);
    rank.window_lock_all("MPI_Win_lock_all", win, 0).unwrap();
    let mut counts = None;
    if rank.rank() == 0 {
        // The first operation connects the two ranks, and brings the lock.
        put(rank, win, &[7], place(1, 0, 1, Predefined::BYTE)).unwrap();
        let flush = || rank.window_flush("MPI_Win_flush", win, Some(1)).unwrap();
        flush();
        let before = rank.objects().windows().get(win).unwrap().counts;
        for &len in lens {
            let data = pattern(3 * len, len);
            let runs = Type::vector(3, len as i64, len as i64 + 9, &Predefined::BYTE.into());
            let at = place(1, 5, 1, runs.unwrap());
            put(rank, win, &data, at.clone()).unwrap();
            flush();
            let mut back = vec![0; data.len()];
            get(rank, win, &mut back, at).unwrap();
            flush();
            assert!(back == data, "{len}");
        }
        let after = rank.objects().windows().get(win).unwrap().counts;
        counts = Some(WayCounts {
            straight: after.straight - before.straight,
            messages: after.messages - before.messages,
        });
    }
    rank.window_unlock_all("MPI_Win_unlock_all", win).unwrap();
    free(rank, win);
    if rank.rank() == 1 {
        assert!(memory[0] == 7);
    }
    counts
}

#[test]
fn devices_access_a_window_without_its_target() {
    let counted = |straight, messages| Some(WayCounts { straight, messages });
    let runs = [60_000, 20_000];
    let with = |setup: Setup, settings: &'static [(&str, &str)], straight, messages| {
        run_remote(2, settings, &setup, move |rank| {
            let counts = ways_of(rank, &runs);
            assert!(
                counts.is_none() || counts == counted(straight, messages),
                "{counts:?}"
            );
        });
    };
    for rails in [1, 3] {
        let setup = || Setup {
            rails,
            delays: true,
            ..Setup::default()
        };
        with(setup(), &[], 4, 0);
        with(setup(), &[("FISHPLATE_WINDOWS", "messages")], 0, 4);
        // Other messages are short enough.
        let longest_region = COUNTED - 1;
        with(
            Setup {
                longest_region,
                ..setup()
            },
            &[],
            0,
            4,
        );
        // The end of a write does not show that the bytes are there.
        let answered = false;
        with(
            Setup {
                answered,
                ..setup()
            },
            &[],
            2,
            2,
        );
    }
}

#[test]
fn short_runs_go_together_in_a_message() {
    run_remote(2, &[], &Setup::default(), |rank| {
        let counts = ways_of(rank, &[3, 8]);
        assert!(counts.is_none_or(|counts| counts.straight == 0 && counts.messages == 4));
    });
}

#[test]
fn the_kernel_copies_long_data_within_a_host() {
    run_shared(2, &[("FISHPLATE_SINGLE_COPY_LIMIT", "64K")], |rank| {
        // Ranks of one process may reach each other's memory, as processes of one user may.
        let counts = ways_of(rank, &[70_000, 100]);
        let all = counts.map(|counts| (counts.straight, counts.messages));
        assert!(matches!(all, None | Some((2, 2))), "{all:?}");
    });
}

#[test]
fn an_epoch_ends_behind_what_devices_move() {
    let setup = Setup {
        rails: 2,
        delays: true,
        ..Setup::default()
    };
    run_remote(2, &[], &setup, |rank| {
        const LEN: usize = 100_000;
        let me = rank.rank();
        let mut memory = vec![0; 2 * LEN];
        let win = window(rank, &mut memory, 1);
        let members = rank.objects().window_group(win).unwrap();
        let peer = 1 - me as i32;
        for turn in 0..20 {
            let data = pattern(LEN, turn + me);
            let at = |half: usize| place(peer, (half * LEN) as i64, LEN, Predefined::BYTE);
            rank.window_post(win, members, 0).unwrap();
            rank.window_start("MPI_Win_start", win, members, 0).unwrap();
            put(rank, win, &data, at(turn % 2)).unwrap();
            rank.window_complete("MPI_Win_complete", win).unwrap();
            rank.window_wait("MPI_Win_wait", win).unwrap();
            let half = turn % 2 * LEN;
            assert!(
                memory[half..half + LEN] == pattern(LEN, turn + peer as usize),
                "{turn}"
            );
            // The other rank takes the lock only once the bytes are there.
            rank.window_lock("MPI_Win_lock", win, (LOCK_EXCLUSIVE, 0, 0))
                .unwrap();
            let (mut theirs, own) = (vec![0; LEN], [0, 1][me]);
            let here = place(0, (own * LEN) as i64, LEN, Predefined::BYTE);
            put(rank, win, &data, here.clone()).unwrap();
            rank.window_flush("MPI_Win_flush", win, Some(0)).unwrap();
            get(rank, win, &mut theirs, here).unwrap();
            rank.window_unlock("MPI_Win_unlock", win, 0).unwrap();
            assert!(theirs == data);
            fence(rank, win);
            fence(rank, win);
        }
        assert!(rank.objects().windows().get(win).unwrap().counts.straight >= 20);
        rank.objects().groups_mut().free(members).unwrap();
        free(rank, win);
    });
}

/// Blocks of a type whose description is too long for an operation.
const BLOCKS: usize = 300_000;

/// `blocks` blocks of a byte, two bytes apart.
fn comb(blocks: usize) -> Type {
    let places: Vec<i64> = (0..blocks as i64).map(|at| 2 * at).collect();
    Type::indexed_block(1, &places, &Predefined::BYTE.into()).unwrap()
}

/// Blocks that are empty but for the first and the last: few data, and as long a description.
fn ends(blocks: usize) -> Type {
    let places: Vec<i64> = (0..blocks as i64).collect();
    let mut lengths = vec![0; blocks];
    (lengths[0], lengths[blocks - 1]) = (1, 1);
    Type::indexed(&lengths, &places, &LONG.into()).unwrap()
}

#[test]
fn types_of_many_blocks_reach_the_target() {
    run(2, |rank| {
        let (me, _) = me(rank);
        let peer = 1 - me;
        let mut memory = vec![0; 8 * BLOCKS];
        let win = window(rank, &mut memory, 1);
        let (comb, ends) = (comb(BLOCKS), ends(BLOCKS));
        let data = pattern(BLOCKS, rank.rank());
        let mut got = vec![0; BLOCKS];
        fence(rank, win);
        // A long put, and a get of the same type behind it; then another type of that kind, and
        // the first one again.
        put(rank, win, &data, place(peer, 0, 1, comb.clone())).unwrap();
        get(rank, win, &mut got, place(peer, 0, 1, comb.clone())).unwrap();
        fence(rank, win);
        assert!(got == data);
        let mut values = [5, 7];
        let at = || place(peer, 0, 1, ends.clone());
        accumulate(rank, win, &mut values, Op::Replace, at()).unwrap();
        accumulate(rank, win, &mut values, Op::Sum, at()).unwrap();
        let mut both = [0; 16];
        get(rank, win, &mut both, at()).unwrap();
        got.fill(0);
        get(rank, win, &mut got, place(peer, 0, 1, comb.clone())).unwrap();
        // A short description behind long ones.
        let mut first = [0; 8];
        get(rank, win, &mut first, place(peer, 0, 1, LONG)).unwrap();
        fence(rank, win);
        assert_eq!(longs(&both), [10, 14]);
        assert_eq!(longs(&first), [10]);
        assert!(got[4..] == data[4..]);
        free(rank, win);
        assert_eq!(longs(&memory[8 * BLOCKS - 8..]), [14]);
    });
}
