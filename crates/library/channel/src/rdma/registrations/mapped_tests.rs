//! The cache over mapped memory of this process, watched by the kernel. Where the kernel refuses to
//! watch, the tests say so, and that nothing is kept.

use super::fake::Shared;
use super::tests::{ARENA, Bench, WIDE, bench_with, random_program};
use super::watch::PAGE;
use super::*;

const LEN: usize = 16 * PAGE as usize;

/// A cache with the kernel's watch. `None`: the kernel refuses, and the cache says so.
fn bench() -> Option<Bench> {
    let mut bench = bench_with(&[0], WIDE, Shared::new(), Watching::NotStarted);
    if !bench.cache.start_watch() {
        let why = bench.cache.counts().off.expect("a reason");
        println!("not run: {why}");
        let range = (PAGE, 100, Exposed::ToRead);
        let key = bench.touch(range);
        assert!(!bench.is_live(key));
        return None;
    }
    Some(bench)
}

/// Maps `len` bytes at address `at`; 0: at an address of the kernel's choice. `None`: it refuses.
fn map(at: u64, len: usize, flags: i32) -> Option<u64> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE | flags;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, or one over memory of this test.
    let address = unsafe { libc::mmap(at as *mut _, len, protection, flags, -1, 0) };
    (address != libc::MAP_FAILED).then_some(address as u64)
}

fn unmap(address: u64, len: usize) {
    // SAFETY: memory of this test.
    assert_eq!(unsafe { libc::munmap(address as *mut _, len) }, 0);
}

#[test]
fn memory_mapped_anew_at_the_address_of_freed_memory_gets_a_new_key() {
    let Some(mut bench) = bench() else { return };
    let mut at_the_same_address = 0;
    for _ in 0..50 {
        let address = map(0, LEN, 0).unwrap();
        let range = (address, LEN, Exposed::ToWrite);
        let old = bench.touch(range);
        assert_eq!(bench.touch(range), old, "it is kept");
        unmap(address, LEN);
        if map(address, LEN, libc::MAP_FIXED_NOREPLACE) != Some(address) {
            // Another thread of the test program was given the address.
            continue;
        }
        at_the_same_address += 1;
        let new = bench.touch(range);
        assert!(new != old && !bench.is_live(old));
        unmap(address, LEN);
    }
    assert!(at_the_same_address > 0);
    assert!(bench.cache.counts().invalidated >= 2 * at_the_same_address - 1);
}

/// Every kind of call by which a program gives pages back or gets others.
#[test]
fn every_change_of_a_mapping_is_seen() {
    let Some(mut bench) = bench() else { return };
    type Change = fn(u64);
    let changes: [(&str, Change); 6] = [
        ("munmap of one page", |at| {
            unmap(at + 5 * PAGE, PAGE as usize)
        }),
        ("mmap over it", |at| {
            assert_eq!(map(at, LEN, libc::MAP_FIXED), Some(at));
        }),
        ("madvise", |at| {
            // SAFETY: memory of this test.
            let answer =
                unsafe { libc::madvise((at + PAGE) as *mut _, PAGE as usize, libc::MADV_DONTNEED) };
            assert_eq!(answer, 0);
        }),
        ("mremap to another place", |at| {
            let to = map(0, LEN, 0).unwrap();
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            // SAFETY: memory of this test.
            let moved =
                unsafe { libc::mremap(at as *mut _, LEN, LEN, flags, to as *mut libc::c_void) };
            assert_eq!(moved as u64, to);
        }),
        ("mremap to a smaller size", |at| {
            // SAFETY: memory of this test.
            let moved = unsafe { libc::mremap(at as *mut _, LEN, LEN / 2, 0) };
            assert_eq!(moved as u64, at);
        }),
        ("munmap by another thread", |at| {
            std::thread::spawn(move || unmap(at, LEN)).join().unwrap();
        }),
    ];
    for (what, change) in changes {
        let address = map(0, LEN, 0).unwrap();
        let range = (address, LEN, Exposed::ToRead);
        let (old, before) = (bench.touch(range), bench.cache.counts().invalidated);
        change(address);
        bench.cache.drop_changed(&mut bench.node);
        assert!(!bench.is_live(old), "{what}");
        assert_eq!(bench.cache.counts().invalidated, before + 1, "{what}");
    }
}

#[test]
fn watched_memory_is_used_as_before() {
    let Some(mut bench) = bench() else { return };
    // Pages that no one has touched, read and written after they are watched.
    let address = map(0, LEN, 0).unwrap();
    bench.touch((address, LEN, Exposed::ToWrite));
    // SAFETY: mapped above, and unused otherwise.
    let memory = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, LEN) };
    memory.fill(7);
    assert!(memory.iter().all(|byte| *byte == 7));
    // SAFETY: memory of this test.
    unsafe { libc::madvise(address as *mut _, LEN, libc::MADV_DONTNEED) };
    assert!(memory.iter().all(|byte| *byte == 0));
    unmap(address, LEN);
    // The stack grows below a watched part of it.
    fn deeper(levels: usize, bench: &mut Bench) -> u64 {
        let mut local = [levels as u8; 20_000];
        let range = (local.as_mut_ptr() as u64, local.len(), Exposed::ToWrite);
        bench.touch(range);
        let below = if levels > 0 {
            deeper(levels - 1, bench)
        } else {
            0
        };
        below + u64::from(std::hint::black_box(&local)[local.len() / 2])
    }
    let thread = std::thread::Builder::new().stack_size(16 << 20);
    let thread = thread.spawn(move || deeper(100, &mut bench)).unwrap();
    assert_eq!(thread.join().unwrap(), 5050);
}

#[test]
fn a_random_program_over_mapped_memory_never_gets_a_stale_key() {
    for seed in 0..40 {
        let Some(mut bench) = bench() else { return };
        println!("seed {seed}");
        let len = (ARENA * PAGE) as usize;
        let base = map(0, len, 0).unwrap();
        random_program(&mut bench, seed, base, |memory, range, anew| {
            let len = (range.end - range.start) as usize;
            match anew {
                true => {
                    assert_eq!(map(range.start, len, libc::MAP_FIXED), Some(range.start));
                    memory.lock().map_anew(range);
                }
                false => {
                    // SAFETY: memory of this test.
                    unsafe { libc::madvise(range.start as *mut _, len, libc::MADV_DONTNEED) };
                    memory.lock().discard(range);
                }
            }
        });
        unmap(base, len);
        assert!(bench.cache.counts().hits > 0 && bench.cache.counts().invalidated > 0);
    }
}

/// The thread that reads the reports must not wait for an allocator whose owner waits for it.
#[test]
fn threads_that_allocate_and_free_watched_memory_go_on() {
    let Some(mut bench) = bench() else { return };
    let (give, take) = std::sync::mpsc::channel::<Vec<u8>>();
    let free = std::thread::spawn(move || {
        for buffer in take {
            let twin = buffer.clone();
            drop((buffer, twin));
        }
    });
    for round in 0..2000 {
        let mut buffer = vec![1u8; 1000 + round * 331 % 300_000];
        bench.touch((buffer.as_mut_ptr() as u64, buffer.len(), Exposed::ToWrite));
        match round % 2 {
            0 => give.send(buffer).unwrap(),
            _ => drop(buffer),
        }
    }
    drop(give);
    free.join().unwrap();
    // The allocator may or may not give memory back: that depends on what else has memory in this
    // process.
    let address = map(0, LEN, 0).unwrap();
    bench.touch((address, LEN, Exposed::ToRead));
    unmap(address, LEN);
    bench.cache.drop_changed(&mut bench.node);
    assert!(bench.cache.counts().invalidated > 0);
}
