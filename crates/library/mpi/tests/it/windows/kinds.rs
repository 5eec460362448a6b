//! Windows of each flavor.

use super::*;

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

/// A target of a mapped window may compute for ever: it makes no call while it is accessed.
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
