//! Locks, epochs of groups, and what they promise.

use super::*;

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
