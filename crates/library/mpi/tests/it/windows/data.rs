//! Operations on windows, and their data.

use super::*;

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
