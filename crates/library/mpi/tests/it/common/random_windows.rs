//! Random programs of one-sided communication, made from a seed, against a sequential reference:
//! all ranks know the whole program, so each computes what every window must hold.
//!
//! In a phase either each word of a window belongs to one origin, whose operations on it are in
//! order, or each operation has words of its own, or all origins accumulate by one commutative
//! operation.

use std::sync::Arc;

use datatype::{Buffer, Elements, Op, Predefined, Type};
use mpi::coll::Work;
use mpi::comm::WORLD;
use mpi::window::{Access, Flavor, Place, WayCounts};
use mpi::{Rank, WindowSpec};
use sim::Random;

const LOCK_EXCLUSIVE: i32 = 301;
const LOCK_SHARED: i32 = 302;

/// Words of a window.
const WORDS: usize = 24_000;

/// An operation of a program.
#[derive(Clone, Copy, Debug)]
struct Step {
    origin: usize,
    target: usize,
    /// The first word at the target, their number, and the words from one to the next.
    first: usize,
    count: usize,
    stride: usize,
    kind: Kind,
    seed: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Put,
    Get,
    Accumulate(Op),
    GetAccumulate(Op),
    /// Of one word; true: the comparison succeeds.
    CompareAndSwap(bool),
}

#[derive(Clone, Copy, Debug)]
enum Sync {
    Fence,
    LockAll,
    Locks,
    PostStart,
}

impl Step {
    fn words(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count).map(|at| self.first + at * self.stride)
    }

    fn operand(&self, at: usize) -> i64 {
        self.seed.wrapping_mul(at as i64 + 1)
    }

    /// Applies the step to the reference; the old words.
    fn apply(&self, window: &mut [i64]) -> Vec<i64> {
        let old: Vec<i64> = self.words().map(|word| window[word]).collect();
        for (at, word) in self.words().enumerate() {
            let (value, operand) = (window[word], self.operand(at));
            window[word] = match self.kind {
                Kind::Get | Kind::CompareAndSwap(false) => value,
                Kind::Put | Kind::CompareAndSwap(true) => operand,
                Kind::Accumulate(op) | Kind::GetAccumulate(op) => combine(op, operand, value),
            };
        }
        old
    }
}

fn combine(op: Op, operand: i64, value: i64) -> i64 {
    match op {
        Op::Sum => value.wrapping_add(operand),
        Op::Max => value.max(operand),
        Op::Bxor => value ^ operand,
        Op::Replace => operand,
        Op::NoOp => value,
        other => unreachable!("{other:?} is not drawn"),
    }
}

/// The memory of one operation at its origin.
struct Held {
    operands: Vec<i64>,
    result: Vec<i64>,
    compare: Vec<i64>,
    expected: Option<Vec<i64>>,
}

/// The memory of a window: the test's, or the library's.
struct Memory(Vec<i64>);

impl Memory {
    fn new(words: usize) -> Memory {
        Memory(vec![0; words])
    }

    /// A window of this memory, or one that the library allocates. The memory outlives it.
    fn window(&mut self, rank: &Arc<Rank>, allocates: bool, stripe: u64) -> u32 {
        let bytes = size_of_val(&self.0[..]);
        let words = self.0.as_mut_ptr();
        // SAFETY: the caller keeps the vector, and it is read only while nothing accesses it.
        let buffer = || unsafe { Buffer::dense(words.cast(), bytes) };
        let info = [("mpi_accumulate_granularity".to_string(), stripe.to_string())];
        let spec = |memory| WindowSpec {
            memory,
            disp_unit: 8,
            info: &info,
        };
        let made = match allocates {
            true => {
                let (call, spec) = ("MPI_Win_allocate", spec(Buffer::empty()));
                rank.window_allocate(call, WORLD, (bytes, true), spec, || Some(buffer()))
            }
            false => rank.window_create("MPI_Win_create", WORLD, Flavor::Create, spec(buffer())),
        };
        made.unwrap()
    }

    /// The words of this rank's part, while nobody accesses the window.
    fn words(&self, rank: &Rank, win: u32) -> Vec<i64> {
        let base = rank.objects().windows().get(win).unwrap().facts.base;
        let base = std::ptr::with_exposed_provenance::<i64>(base);
        // SAFETY: the part has as many words; others have written them, and write no more.
        let words = (0..self.0.len()).map(|at| unsafe { base.add(at).read_volatile() });
        words.collect()
    }
}

/// Runs the program of a seed. All ranks of a job call this with one seed. The result counts this
/// rank's operations by path.
pub(crate) fn play(rank: &Arc<Rank>, seed: u64) -> WayCounts {
    let mut random = Random::new(seed ^ 0x71d0);
    let (me, size) = (rank.rank(), rank.size());
    let mut memory = Memory::new(WORDS);
    let stripe = [0, 64, 4096][random.below(3) as usize];
    let win = memory.window(rank, random.below(2) == 0, stripe);
    let members = rank.objects().window_group(win).unwrap();
    let mut reference = vec![vec![0i64; WORDS]; size];
    for phase in 0..3 + random.below(5) {
        let sync =
            [Sync::Fence, Sync::LockAll, Sync::Locks, Sync::PostStart][random.below(4) as usize];
        let steps = steps(&mut random, size, sync);
        open(rank, win, members, sync);
        let mut held = Vec::new();
        for step in &steps {
            let old = step.apply(&mut reference[step.target]);
            if step.origin == me {
                held.push(start(rank, win, step, old, sync, steps.course));
            }
        }
        close(rank, win, sync);
        for one in &held {
            if let Some(expected) = &one.expected {
                assert!(
                    one.result == *expected,
                    "seed {seed}, phase {phase}: wrong old words"
                );
            }
        }
        let now = memory.words(rank, win);
        let wrong = (0..WORDS).find(|&at| now[at] != reference[me][at]);
        assert_eq!(
            wrong, None,
            "seed {seed}, phase {phase}, {sync:?}: a wrong word"
        );
        barrier(rank);
    }
    rank.objects().groups_mut().free(members).unwrap();
    let counts = rank.objects().windows().get(win).unwrap().counts;
    rank.window_free("MPI_Win_free", win).unwrap();
    counts
}

/// The operations of a phase, in an order that the reference may take.
struct Steps {
    all: Vec<Step>,
    course: Course,
}

/// The words of the operations of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// Several origins accumulate to one word.
    Shared,
    /// A word belongs to an origin, whose operations on it are in order.
    InOrder,
    /// A word belongs to an operation: long ones of all origins are in progress together.
    Apart,
}

impl<'a> IntoIterator for &'a Steps {
    type Item = &'a Step;
    type IntoIter = std::slice::Iter<'a, Step>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

fn steps(random: &mut Random, size: usize, sync: Sync) -> Steps {
    let course = [Course::Shared, Course::InOrder, Course::Apart][random.below(3) as usize];
    if course == Course::Apart {
        return steps_apart(random, size);
    }
    // Only accumulates have an order within an epoch without flushes.
    let can_flush = matches!(sync, Sync::LockAll | Sync::Locks);
    let is_shared = course == Course::Shared;
    let common = [Op::Sum, Op::Max, Op::Bxor][random.below(3) as usize];
    let all = (0..random.below(30)).map(|_| {
        let origin = random.below(size as u64) as usize;
        let count = [1, 1, 3, 100, 3000][random.below(5) as usize];
        let kind = match is_shared {
            true => Kind::Accumulate(common),
            false => kind(random, can_flush),
        };
        let count = match kind {
            Kind::CompareAndSwap(_) => 1,
            _ => count,
        };
        // Words of an origin are those of its number, so origins stay apart.
        let (first, stride) = match is_shared {
            true => (random.below(50) as usize, 1 + random.below(2) as usize),
            false => (origin + size * random.below(40) as usize, size),
        };
        Step {
            origin,
            target: random.below(size as u64) as usize,
            first,
            count,
            stride,
            kind,
            seed: random.word() as i64 | 1,
        }
    });
    Steps {
        all: all.collect(),
        course,
    }
}

/// A kind of operation on words that belong to its origin. Puts and gets if they `can_flush`.
fn kind(random: &mut Random, can_flush: bool) -> Kind {
    let op = [Op::Sum, Op::Max, Op::Replace, Op::NoOp][random.below(4) as usize];
    match random.below(6) {
        0 | 1 if can_flush => Kind::Put,
        0 | 1 => Kind::Accumulate(Op::Replace),
        2 if can_flush => Kind::Get,
        2 => Kind::GetAccumulate(Op::NoOp),
        3 => Kind::Accumulate(op),
        4 => Kind::GetAccumulate(op),
        _ => Kind::CompareAndSwap(random.below(2) == 0),
    }
}

/// Operations on words that no other operation of the phase accesses, most of them puts and gets:
/// one run of words, or several.
fn steps_apart(random: &mut Random, size: usize) -> Steps {
    let mut free = vec![0; size];
    let mut all = Vec::new();
    for _ in 0..random.below(40) {
        let kind = match random.below(4) {
            0 => kind(random, true),
            1 => Kind::Get,
            _ => Kind::Put,
        };
        let count = match kind {
            Kind::CompareAndSwap(_) => 1,
            _ => [1, 2, 40, 700, 2500, 18_000][random.below(6) as usize],
        };
        let stride = [1, 1, 1, 3][random.below(4) as usize];
        let target = random.below(size as u64) as usize;
        let first = free[target] + random.below(9) as usize;
        let end = first + count * stride;
        if end > WORDS {
            continue;
        }
        free[target] = end;
        all.push(Step {
            origin: random.below(size as u64) as usize,
            target,
            first,
            count,
            stride,
            kind,
            seed: random.word() as i64 | 1,
        });
    }
    Steps {
        all,
        course: Course::Apart,
    }
}

/// Starts an operation of this rank; `old`: the words that the target has before it.
fn start(
    rank: &Arc<Rank>,
    win: u32,
    step: &Step,
    old: Vec<i64>,
    sync: Sync,
    course: Course,
) -> Held {
    let swaps = matches!(step.kind, Kind::CompareAndSwap(true));
    let mut held = Held {
        operands: (0..step.count).map(|at| step.operand(at)).collect(),
        result: vec![0; step.count],
        compare: vec![if swaps { old[0] } else { old[0] ^ 1 }],
        expected: None,
    };
    let longs = |values: &mut Vec<i64>| {
        let long = Predefined::INT64_T.into();
        // SAFETY: the vectors stay until the epoch has ended.
        unsafe { Elements::new(values.as_mut_ptr().cast(), values.len(), &long) }
    };
    let origin = longs(&mut held.operands);
    let result = longs(&mut held.result);
    let access = match step.kind {
        Kind::Put => Access::Put(origin.buffer()),
        Kind::Get => Access::Get(result.buffer()),
        Kind::Accumulate(op) => Access::Accumulate { origin, op },
        Kind::GetAccumulate(op) => Access::GetAccumulate {
            origin: (op != Op::NoOp).then_some(origin),
            result,
            op,
        },
        Kind::CompareAndSwap(_) => Access::CompareAndSwap {
            compare: longs(&mut held.compare),
            origin,
            result,
        },
    };
    if matches!(
        step.kind,
        Kind::Get | Kind::GetAccumulate(_) | Kind::CompareAndSwap(_)
    ) {
        held.expected = Some(old);
    }
    let long: Type = Predefined::INT64_T.into();
    let ty = match step.count {
        1 => long,
        count => Type::vector(count as i64, 1, step.stride as i64, &long).unwrap(),
    };
    let place = Place {
        rank: step.target as i32,
        disp: step.first as i64,
        count: 1,
        ty,
    };
    // Puts and gets of one word are in order only if each is at its target before the next.
    if course == Course::InOrder && matches!(sync, Sync::LockAll | Sync::Locks) {
        let target = Some(step.target as i32);
        rank.window_flush("MPI_Win_flush", win, target).unwrap();
    }
    rank.lock()
        .access_window(win, &access, &place, false)
        .unwrap();
    held
}

fn open(rank: &Arc<Rank>, win: u32, members: u32, sync: Sync) {
    match sync {
        Sync::Fence => rank.window_fence("MPI_Win_fence", win, 0).unwrap(),
        Sync::LockAll => rank.window_lock_all("MPI_Win_lock_all", win, 0).unwrap(),
        Sync::Locks => {
            for target in 0..rank.size() as i32 {
                rank.window_lock("MPI_Win_lock", win, (LOCK_SHARED, target, 0))
                    .unwrap();
            }
        }
        Sync::PostStart => {
            rank.window_post(win, members, 0).unwrap();
            rank.window_start("MPI_Win_start", win, members, 0).unwrap();
        }
    }
}

fn close(rank: &Arc<Rank>, win: u32, sync: Sync) {
    match sync {
        Sync::Fence => {
            // No accesses follow.
            rank.window_fence("MPI_Win_fence", win, 1 << 14).unwrap();
        }
        Sync::LockAll => {
            rank.window_unlock_all("MPI_Win_unlock_all", win).unwrap();
            barrier(rank);
        }
        Sync::Locks => {
            for target in 0..rank.size() as i32 {
                rank.window_unlock("MPI_Win_unlock", win, target).unwrap();
            }
            barrier(rank);
        }
        Sync::PostStart => {
            rank.window_complete("MPI_Win_complete", win).unwrap();
            rank.window_wait("MPI_Win_wait", win).unwrap();
        }
    }
}

/// Ranks take turns by exclusive locks: each adds to a word that only it may touch meanwhile.
pub(crate) fn take_turns(rank: &Arc<Rank>, seed: u64) {
    let mut random = Random::new(seed ^ rank.rank() as u64);
    let mut memory = Memory::new(4);
    let win = memory.window(rank, seed.is_multiple_of(2), 0);
    let times = 10;
    for _ in 0..times {
        let target = random.below(rank.size() as u64) as i32;
        let mut words = [0u8; 8];
        let place = |disp| Place {
            rank: target,
            disp,
            count: 1,
            ty: Predefined::INT64_T.into(),
        };
        rank.window_lock("MPI_Win_lock", win, (LOCK_EXCLUSIVE, target, 0))
            .unwrap();
        let get = Access::Get(super::room(&mut words));
        rank.lock()
            .access_window(win, &get, &place(1), false)
            .unwrap();
        rank.window_flush("MPI_Win_flush", win, Some(target))
            .unwrap();
        let next = (i64::from_ne_bytes(words) + 1).to_ne_bytes();
        let put = Access::Put(super::out(&next));
        rank.lock()
            .access_window(win, &put, &place(1), false)
            .unwrap();
        rank.window_unlock("MPI_Win_unlock", win, target).unwrap();
    }
    barrier(rank);
    let mut sum = [0i64];
    for target in 0..rank.size() as i32 {
        let mut word = [0u8; 8];
        rank.window_lock("MPI_Win_lock", win, (LOCK_SHARED, target, 0))
            .unwrap();
        let get = Access::Get(super::room(&mut word));
        let place = Place {
            rank: target,
            disp: 1,
            count: 1,
            ty: Predefined::INT64_T.into(),
        };
        rank.lock().access_window(win, &get, &place, false).unwrap();
        rank.window_unlock("MPI_Win_unlock", win, target).unwrap();
        sum[0] += i64::from_ne_bytes(word);
    }
    assert_eq!(sum[0], times * rank.size() as i64);
    rank.window_free("MPI_Win_free", win).unwrap();
}

fn barrier(rank: &Arc<Rank>) {
    rank.collective("MPI_Barrier", &Work::Barrier, WORLD)
        .unwrap();
}
