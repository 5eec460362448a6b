//! Ranks as processes: any program, unmodified. No process schedules: the rank that ends its turn
//! computes its successor and wakes it. All processes share one core, where this handover is
//! fastest.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::memory::{Box as SharedBox, Memory, Vec, WorldMemory};
use crate::turn::{Baton, Turn};
use crate::world::{Model, World};

/// The contents of the memory of a world of processes.
struct JobMemory<M: Model> {
    world: World<M>,
    relay: Relay,
}

struct Relay {
    /// One word for each rank: 1 if the rank was given the turn and has not noticed yet.
    given: Vec<AtomicU32>,
    holder: AtomicU32,
    /// The number of times that the turn has passed from one rank to another.
    passed: AtomicU64,
    /// The value of `passed` for which a stuck rank has been reported last.
    told: AtomicU64,
}

/// The parameters of a rank in a job of processes.
#[derive(Clone, Copy)]
pub struct Participant {
    /// The number of this rank.
    pub rank: u32,
    /// The number of ranks of the world.
    pub ranks: u32,
    /// The seed of all random numbers in the world.
    pub seed: u64,
    /// Called in one waiting rank, with the number of a rank that has kept the turn for [`LONG`]
    /// seconds.
    pub stuck: fn(u32),
}

/// The wall-clock time after which a rank that keeps its turn is reported, in seconds.
pub const LONG: u64 = 10;

/// Joins the world in this file. The first rank to arrive builds it, with `model`.
pub fn join<M: Model + 'static>(
    file: &OwnedFd,
    place: Participant,
    model: impl FnOnce(WorldMemory) -> M,
) -> io::Result<Turn<M>> {
    // The world ends with the process, so its contents may be used until then.
    let memory = std::mem::ManuallyDrop::new(Memory::open(file)?);
    let shared = memory.shared();
    let header = shared.header();
    let begun = header
        .built
        .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
    if begun.is_ok() {
        build(shared, place, model);
    }
    while header.built.load(Ordering::Acquire) != 2 {
        futex_wait(&header.built, 1, 1000);
    }
    pin(header.core.get());
    let stage: *mut JobMemory<M> = header.root.get().cast();
    // SAFETY: the builder has put contents of this type there (all ranks run the same library), and
    // they stay.
    let (relay, world) = unsafe { (&(*stage).relay, NonNull::from(&mut (*stage).world)) };
    if place.rank as usize >= relay.given.len() {
        return Err(io::Error::other("the world was made for fewer ranks"));
    }
    let runner = Runner {
        relay,
        rank: place.rank,
        stuck: place.stuck,
        first: Cell::new(begun.is_ok()),
    };
    runner.begin();
    // SAFETY: the memory stays mapped, and the relay lets one rank run at a time.
    let turn = unsafe { Turn::new(world, place.rank, Box::new(runner)) };
    turn.settle().ok();
    Ok(turn)
}

fn build<M: Model>(shared: WorldMemory, place: Participant, model: impl FnOnce(WorldMemory) -> M) {
    shared.prepare();
    let mut given = Vec::new_in(shared);
    given.extend((0..place.ranks).map(|_| AtomicU32::new(0)));
    let stage = JobMemory {
        world: World::new(shared, place.ranks, place.seed, model(shared)),
        relay: Relay {
            given,
            holder: AtomicU32::new(0),
            passed: AtomicU64::new(1),
            told: AtomicU64::new(0),
        },
    };
    let stage = SharedBox::leak(SharedBox::new_in(stage, shared));
    let header = shared.header();
    // SAFETY: a plain call, which fails on no system that we run on.
    header
        .core
        .set(unsafe { libc::sched_getcpu() }.max(0) as u32);
    header.root.set((&raw mut *stage).cast());
    header.built.store(2, Ordering::Release);
    futex_wake(&header.built, i32::MAX);
}

struct Runner {
    relay: &'static Relay,
    rank: u32,
    stuck: fn(u32),
    /// True if this rank built the world, until its first turn. It has the turn before any other
    /// rank.
    first: Cell<bool>,
}

impl Runner {
    fn begin(&self) {
        match self.first.replace(false) {
            true if self.rank == 0 => {}
            true => self.pass(0),
            false => self.await_baton(),
        }
    }

    fn give(&self, to: u32) {
        self.relay.holder.store(to, Ordering::Relaxed);
        self.relay.passed.fetch_add(1, Ordering::Relaxed);
        let word = &self.relay.given[to as usize];
        word.store(1, Ordering::Release);
        futex_wake(word, 1);
    }

    fn await_baton(&self) {
        let word = &self.relay.given[self.rank as usize];
        let (mut seen, mut waited) = (0, 0);
        while word.swap(0, Ordering::Acquire) == 0 {
            if futex_wait(word, 0, 1000) {
                continue;
            }
            // A second has passed.
            let passed = self.relay.passed.load(Ordering::Relaxed);
            waited = if passed == seen { waited + 1 } else { 0 };
            seen = passed;
            if waited >= LONG && self.relay.told.swap(passed, Ordering::Relaxed) != passed {
                (self.stuck)(self.relay.holder.load(Ordering::Relaxed));
            }
        }
    }
}

impl Baton for Runner {
    fn pass(&self, to: u32) {
        self.give(to);
        self.await_baton();
    }

    fn leave(&self, to: Option<u32>) {
        if let Some(to) = to {
            self.give(to);
        }
    }

    fn is_private(&self) -> bool {
        true
    }
}

/// Waits on a futex. False: the time limit `millis` has passed.
fn futex_wait(word: &AtomicU32, value: u32, millis: i64) -> bool {
    let time = libc::timespec {
        tv_sec: millis / 1000,
        tv_nsec: millis % 1000 * 1_000_000,
    };
    // SAFETY: the word and the time outlive the call, which changes neither.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            &raw const time,
        )
    };
    answer == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ETIMEDOUT)
}

fn futex_wake(word: &AtomicU32, most: i32) {
    // SAFETY: the call only wakes waiters.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, most) };
}

/// Pins this process to a core. A refusal is ignored: it makes handovers of the turn slower.
fn pin(core: u32) {
    // SAFETY: an empty set is a valid one, and the call reads it only.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core as usize % libc::CPU_SETSIZE as usize, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}
