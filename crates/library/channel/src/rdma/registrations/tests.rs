//! The cache over fake devices that pin pages, with fake memory and a fake watch.

use std::collections::BTreeSet;
use std::ops::Range;

use super::domains::access;
use super::fake::{FakeNode, FakeWatch, Pinned, Shared, each_page};
use super::watch::PAGE;
use super::*;

/// A cache, its node and its memory.
pub(super) struct Bench {
    pub node: FakeNode,
    pub memory: Shared,
    pub cache: Registrations,
}

/// A cache with the watch of the test and these bounds, over one rail for each of `domains`.
fn bench(domains: &[usize], bounds: Bounds) -> Bench {
    let memory = Shared::new();
    let watch = Box::new(FakeWatch(memory.clone()));
    bench_with(domains, bounds, memory, Watching::On(watch))
}

pub(super) fn bench_with(
    domains: &[usize],
    bounds: Bounds,
    memory: Shared,
    watching: Watching,
) -> Bench {
    let mut node = FakeNode::new(domains, &memory);
    let cache = Registrations {
        bounds,
        watching,
        ..Registrations::new(&mut node, RailSet::below(domains.len()), true)
    };
    Bench {
        node,
        memory,
        cache,
    }
}

pub(super) const WIDE: Bounds = Bounds {
    count: 1024,
    bytes: 1 << 30,
};

impl Bench {
    pub(super) fn expose(&mut self, range: ExposedRange) -> u32 {
        self.cache.expose(&mut self.node, range).unwrap().on(0).lkey
    }

    pub(super) fn retract(&mut self, range: ExposedRange) {
        self.cache.retract(&mut self.node, range).unwrap();
    }

    /// Exposes and retracts. Returns the key.
    pub(super) fn touch(&mut self, range: ExposedRange) -> u32 {
        let key = self.expose(range);
        self.retract(range);
        key
    }

    pub(super) fn is_live(&self, key: u32) -> bool {
        self.memory.lock().live.contains_key(&key)
    }

    pub(super) fn pinned(&self, key: u32) -> Pinned {
        self.memory.lock().live[&key].clone()
    }
}

fn read(page: u64, len: usize) -> ExposedRange {
    (page * PAGE, len, Exposed::ToRead)
}

fn write(page: u64, len: usize) -> ExposedRange {
    (page * PAGE, len, Exposed::ToWrite)
}

#[test]
fn a_registration_is_kept_for_the_next_exposure_of_its_memory() {
    let mut bench = bench(&[0], WIDE);
    let key = bench.touch(read(10, 4000));
    assert_eq!(bench.touch(read(10, 4000)), key);
    // Two exposures at once are two users of one registration.
    assert_eq!(bench.expose(read(10, 4000)), key);
    assert_eq!(bench.touch(read(10, 4000)), key);
    bench.retract(read(10, 4000));
    let counts = bench.cache.counts();
    assert_eq!((counts.misses, counts.hits, counts.present), (1, 3, 1));
    assert_eq!(bench.memory.lock().registered, 1);
    bench.cache.end(&mut bench.node);
    assert!(bench.memory.lock().live.is_empty() && bench.memory.lock().watched.is_empty());
}

#[test]
fn a_range_within_a_registration_needs_none_if_the_rights_suffice() {
    let mut bench = bench(&[0], WIDE);
    let whole = bench.touch(read(10, 8192));
    assert_eq!(bench.touch((10 * PAGE + 100, 8092, Exposed::ToRead)), whole);
    let beyond = bench.touch((10 * PAGE + 100, 8093, Exposed::ToRead));
    assert_ne!(beyond, whole);
    // Writing needs more than the right to read, and includes it.
    let written = bench.touch(write(10, 8192));
    assert!(written != whole && bench.pinned(written).access.remote_write);
    assert_eq!(bench.touch(read(10, 100)), written);
    assert!(!bench.is_live(whole), "the wider rights replace it");
    assert!(bench.is_live(beyond));
}

#[test]
fn a_wider_registration_replaces_those_within_it_but_not_under_a_user() {
    let mut bench = bench(&[0], WIDE);
    let (first, second) = (bench.touch(read(10, 100)), bench.expose(read(11, 100)));
    let wide = bench.touch(read(10, 8192));
    assert!(!bench.is_live(first) && bench.is_live(second) && bench.is_live(wide));
    bench.retract(read(11, 100));
    assert!(!bench.is_live(second));
    assert_eq!(bench.touch(read(11, 100)), wide);
    assert_eq!(bench.cache.counts().evicted, 0);
}

#[test]
fn the_least_recently_used_registration_makes_room() {
    let bounds = Bounds { count: 3, ..WIDE };
    let mut bench = bench(&[0], bounds);
    let keys: Vec<u32> = (0..3).map(|page| bench.touch(read(page, 100))).collect();
    bench.touch(read(0, 100));
    bench.touch(read(7, 100));
    let live =
        |bench: &Bench| -> Vec<bool> { keys.iter().map(|key| bench.is_live(*key)).collect() };
    assert_eq!(live(&bench), [true, false, true]);
    bench.touch(read(8, 100));
    assert_eq!(live(&bench), [true, false, false]);
    assert_eq!(bench.cache.counts().evicted, 2);
}

#[test]
fn bytes_are_bounded_and_what_is_too_long_displaces_nothing() {
    let bounds = Bounds {
        bytes: 1000,
        ..WIDE
    };
    let mut bench = bench(&[0], bounds);
    let short = bench.touch(read(0, 400));
    let long = bench.touch(read(1, 1001));
    assert!(!bench.is_live(long) && bench.is_live(short));
    bench.touch(read(2, 600));
    assert!(bench.is_live(short));
    bench.touch(read(3, 1));
    assert!(!bench.is_live(short));
    assert!(bench.memory.lock().bytes() <= 1000);
}

#[test]
fn a_registration_with_users_is_never_evicted() {
    let bounds = Bounds { count: 2, ..WIDE };
    let mut bench = bench(&[0], bounds);
    let keys: Vec<u32> = (0..5).map(|page| bench.expose(read(page, 100))).collect();
    assert!(keys.iter().all(|key| bench.is_live(*key)));
    for page in 0..5 {
        bench.retract(read(page, 100));
    }
    let live: Vec<bool> = keys.iter().map(|key| bench.is_live(*key)).collect();
    assert_eq!(live, [false, false, false, true, true]);
}

#[test]
fn a_registration_that_lacks_locked_memory_takes_that_of_others() {
    let mut bench = bench(&[0], WIDE);
    bench.memory.lock().limit = 1000;
    let keys: Vec<u32> = (0..4).map(|page| bench.touch(read(page, 250))).collect();
    let held = bench.expose(read(0, 250));
    let new = bench.touch(read(9, 400));
    assert!(bench.is_live(new) && bench.is_live(held));
    assert!(!bench.is_live(keys[1]) && !bench.is_live(keys[2]) && bench.is_live(keys[3]));
    // If they have too few bytes, the exposure fails, and the first error says why.
    let first = bench.memory.lock().attempts + 1;
    let error = bench
        .cache
        .expose(&mut bench.node, read(20, 800))
        .unwrap_err();
    assert!(
        error.to_string().contains(&format!("attempt {first}:")),
        "{error}"
    );
    assert!(bench.is_live(held) && bench.memory.lock().live.len() == 1);
    assert_eq!(bench.cache.counts().evicted, 4);
    bench.retract(read(0, 250));
}

#[test]
fn memory_is_registered_once_for_each_protection_domain() {
    let mut bench = bench(&[5, 3, 5], WIDE);
    let range = write(4, 5000);
    let keys = bench.cache.expose(&mut bench.node, range).unwrap();
    assert_eq!(keys.rails(), RailSet::below(3));
    assert_eq!(keys.on(0), keys.on(2));
    assert_ne!(keys.on(0), keys.on(1));
    assert_eq!(bench.memory.lock().registered, 2);
    assert_eq!(
        (
            bench.pinned(keys.on(0).lkey).rail,
            bench.pinned(keys.on(1).lkey).rail
        ),
        (0, 1)
    );
    assert_eq!(bench.cache.keys(range).on(2), keys.on(2));
    // If one domain refuses, the other is as before.
    bench.memory.lock().limit = 12_000;
    bench
        .cache
        .expose(&mut bench.node, write(40, 1500))
        .unwrap_err();
    assert_eq!(bench.memory.lock().live.len(), 2);
    bench.retract(range);
    bench.cache.end(&mut bench.node);
    assert_eq!(bench.memory.lock().deregistered, 3);
}

#[test]
fn unmapped_memory_loses_its_registration_once_and_only_its_own() {
    let mut bench = bench(&[0], WIDE);
    let (old, other) = (bench.touch(read(10, 5000)), bench.touch(read(11, 5000)));
    let beside = bench.touch(read(12, 5000));
    bench.memory.lock().map_anew(10 * PAGE..11 * PAGE);
    let new = bench.touch(read(10, 5000));
    assert!(!bench.is_live(old) && bench.is_live(other) && bench.is_live(beside));
    assert_ne!(new, old);
    let pinned = bench.pinned(new);
    assert!(bench.memory.lock().is_fresh(&pinned));
    // The pages of a neighbour are still watched, and so are the new ones.
    bench.memory.lock().discard(11 * PAGE..12 * PAGE);
    bench.touch(read(50, 1));
    assert!(!bench.is_live(new) && !bench.is_live(other) && bench.is_live(beside));
    let counts = bench.cache.counts();
    assert_eq!((counts.invalidated, counts.evicted), (3, 0));
}

#[test]
fn memory_unmapped_under_a_transfer_stays_registered_until_its_retraction() {
    let mut bench = bench(&[0], WIDE);
    let range = write(10, 5000);
    let old = bench.expose(range);
    assert_eq!(bench.expose(range), old);
    bench.memory.lock().map_anew(10 * PAGE..12 * PAGE);
    let new = bench.expose(range);
    assert!(new != old && bench.is_live(old));
    assert_eq!(bench.cache.keys(range).on(0).lkey, new);
    // Exposures of one range may end in any order.
    bench.retract(range);
    bench.retract(range);
    assert!(bench.is_live(old) && bench.is_live(new));
    bench.retract(range);
    assert!(!bench.is_live(old));
    assert_eq!(bench.touch(range), new);
    // A range that is exposed no more keeps its keys as long as its transfer.
    let held = bench.expose(range);
    bench.memory.lock().map_anew(10 * PAGE..12 * PAGE);
    bench.touch(read(50, 1));
    assert_eq!(bench.cache.keys(range).on(0).lkey, held);
    bench.retract(range);
    assert!(!bench.is_live(held));
}

#[test]
fn memory_unmapped_beside_a_transfer_leaves_the_transfer_its_registration() {
    let mut bench = bench(&[0], WIDE);
    let wide = bench.touch(read(10, 5 * 4096));
    assert_eq!(bench.expose(read(10, 100)), wide);
    bench.memory.lock().map_anew(13 * PAGE..14 * PAGE);
    let narrow = bench.touch(read(11, 100));
    assert!(narrow != wide && bench.is_live(wide));
    bench.retract(read(10, 100));
    assert!(!bench.is_live(wide) && bench.is_live(narrow));
}

#[test]
fn nothing_is_kept_where_nothing_can_be_watched() {
    let mut bench = bench_with(&[0], WIDE, Shared::new(), Watching::Off);
    let range = write(10, 5000);
    let key = bench.expose(range);
    assert!(
        !bench.pinned(key).access.remote_read,
        "no more rights than the exposure's"
    );
    // A range within one that is exposed gets a registration of its own, as on the model.
    assert_ne!(bench.touch((10 * PAGE, 100, Exposed::ToWrite)), key);
    assert_eq!(bench.touch(range), key);
    bench.retract(range);
    assert!(bench.memory.lock().live.is_empty());
    assert_ne!(bench.touch(range), key);
}

#[test]
fn the_setting_off_and_virtual_time_keep_nothing_and_say_why() {
    let memory = Shared::new();
    let mut node = FakeNode::new(&[0], &memory);
    let mut cache = Registrations::new(&mut node, RailSet::only(0), false);
    cache.expose(&mut node, read(1, 1)).unwrap();
    cache.retract(&mut node, read(1, 1)).unwrap();
    assert!(memory.lock().live.is_empty());
    let why = cache.counts().off.unwrap();
    assert!(why.contains("FISHPLATE_REGISTRATION_CACHE"), "{why}");
}

/// Numbers for a test, from a seed.
pub(super) struct Draw(pub u64);

impl Draw {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31) % limit
    }
}

/// The number of pages of the memory in which random ranges lie.
pub(super) const ARENA: u64 = 24;

/// Makes random exposures and retractions, and changes of the memory between them. `change` makes
/// these: it maps other pages (true) or discards pages. `Memory` is the reference.
pub(super) fn random_program(
    bench: &mut Bench,
    seed: u64,
    base: u64,
    change: impl Fn(&Shared, Range<u64>, bool),
) {
    let mut draw = Draw(seed);
    let mut held: Vec<(ExposedRange, RailKeys)> = Vec::new();
    for _ in 0..400 {
        match draw.below(12) {
            0..4 => {
                let start = draw.below(ARENA * PAGE - 1);
                // Some ranges come again, as the buffers of a program do.
                let start = if draw.below(2) == 0 {
                    start / 8192 * 8192
                } else {
                    start
                };
                let len = 1 + draw.below((ARENA * PAGE - start).min(20_000)) as usize;
                let len = if draw.below(2) == 0 {
                    len
                } else {
                    len.min(4096)
                };
                let exposed = [Exposed::ToRead, Exposed::ToWrite][draw.below(2) as usize];
                let range = (base + start, len, exposed);
                held.push((range, exposed_as_it_must_be(bench, range, &held)));
            }
            4..9 if !held.is_empty() => {
                let (range, _) = held.swap_remove(draw.below(held.len() as u64) as usize);
                bench.retract(range);
            }
            _ => {
                let first = draw.below(ARENA);
                let pages = 1 + draw.below((ARENA - first).min(3));
                let range = base + first * PAGE..base + (first + pages) * PAGE;
                let overlaps = |&(address, len, _): &ExposedRange| {
                    address < range.end && range.start < address + len as u64
                };
                // A program unmaps no memory under a transfer.
                if !held.iter().any(|(of, _)| overlaps(of)) {
                    change(&bench.memory, range, draw.below(2) == 0);
                }
            }
        }
        check(bench, &held);
    }
    for (range, _) in held.drain(..) {
        bench.retract(range);
    }
    check(bench, &held);
}

/// Exposes a range. Checks that its keys are valid for it, and that no suitable registration was
/// idle if it was registered now.
fn exposed_as_it_must_be(
    bench: &mut Bench,
    range: ExposedRange,
    held: &[(ExposedRange, RailKeys)],
) -> RailKeys {
    let (address, len, exposed) = range;
    let rights = access(exposed, false);
    let suits = |bench: &Bench, pinned: &Pinned| {
        let may = pinned.access;
        pinned.range.start <= address
            && address + len as u64 <= pinned.range.end
            && (may.remote_read || !rights.remote_read)
            && (may.remote_write && may.local_write || !rights.remote_write)
            && bench.memory.lock().is_fresh(pinned)
    };
    let is_held = |key: u32| held.iter().any(|(_, keys)| keys.on(0).lkey == key);
    let idle: Vec<Pinned> = {
        let memory = bench.memory.lock();
        let idle = memory
            .live
            .iter()
            .filter(|(key, pinned)| pinned.rail == 0 && !is_held(**key));
        idle.map(|(_, pinned)| pinned.clone()).collect()
    };
    let must_hit = idle.iter().any(|pinned| suits(bench, pinned));
    let before = bench.cache.counts();
    let keys = bench.cache.expose(&mut bench.node, range).unwrap();
    for rail in keys.rails().iter() {
        let pinned = bench.pinned(keys.on(rail).lkey);
        assert!(
            suits(bench, &pinned),
            "{range:?} got {pinned:?}, which is stale or too small"
        );
    }
    let counts = bench.cache.counts();
    assert_eq!(counts.hits + counts.misses, before.hits + before.misses + 1);
    assert!(
        counts.hits > before.hits || !must_hit,
        "{range:?} was registered already"
    );
    keys
}

/// Checks the invariants of the cache.
fn check(bench: &Bench, held: &[(ExposedRange, RailKeys)]) {
    let memory = bench.memory.lock();
    for (range, keys) in held {
        for rail in keys.rails().iter() {
            let key = keys.on(rail).lkey;
            assert!(memory.live.contains_key(&key), "{range:?} is exposed");
        }
    }
    let Bounds { count, bytes } = bench.cache.bounds;
    assert!(
        bench.cache.idle.is_empty()
            || bench.cache.counts().present <= count && memory.bytes() <= bytes,
        "{} registrations of {} bytes",
        memory.live.len(),
        memory.bytes()
    );
    assert_eq!(bench.cache.bytes, memory.bytes());
}

#[test]
fn a_random_program_never_gets_a_stale_key_and_registers_nothing_needlessly() {
    let bounds = Bounds {
        count: 12,
        bytes: 150_000,
    };
    for seed in 0..300 {
        println!("seed {seed}");
        let domains: &[usize] = if seed % 3 == 0 { &[0, 0, 1] } else { &[0] };
        let mut bench = bench(domains, bounds);
        random_program(&mut bench, seed, 16 * PAGE, |memory, range, anew| {
            let mut memory = memory.lock();
            match anew {
                true => memory.map_anew(range),
                false => memory.discard(range),
            }
        });
        let memory = bench.memory.lock();
        let kept = memory
            .live
            .values()
            .filter(|pinned| memory.is_fresh(pinned));
        let kept: BTreeSet<u64> = kept.flat_map(each_page).collect();
        assert!(
            kept.is_subset(&memory.watched),
            "every page of a kept region is watched"
        );
    }
}
