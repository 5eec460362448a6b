//! The paths by which operations move their data.

use super::*;

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
