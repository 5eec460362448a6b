//! For each rule an erroneous sequence is reported, and a similar correct one is not.

use datatype::{Op, Predefined};

use super::*;
use machine::Action;

const WINDOW: u64 = 5;
/// The address of the window at each rank.
const BASE: u64 = 1 << 20;
const UNIT: u64 = 8;

/// A job that notes events, one in each picosecond.
struct Job {
    machine: Machine,
    now: u64,
}

fn job() -> Job {
    let mut job = Job {
        machine: Machine::default(),
        now: 0,
    };
    for rank in 0..4 {
        let (window, base, len) = (WINDOW, BASE, 1000);
        job.call(rank, "MPI_Win_create", Event::Made { window, base, len });
    }
    job
}

impl Job {
    fn call(&mut self, rank: u32, call: &str, event: Event) -> &mut Job {
        self.now += 1;
        self.machine.take(self.now, rank, call, event);
        self
    }

    /// An access of `origin` to eight bytes of `target`.
    fn access(&mut self, origin: u32, kind: Kind, target: u32, at: u64, epoch: Epoch) -> &mut Job {
        let access = Access {
            window: WINDOW,
            target,
            kind,
            epoch,
            runs: Runs::one(at, UNIT),
            has_request: false,
        };
        self.call(origin, "", Event::Accessed(access))
    }

    fn fence(&mut self) -> &mut Job {
        for rank in 0..4 {
            self.call(rank, "MPI_Win_fence", Event::Fenced { window: WINDOW });
        }
        self
    }

    fn ends(&mut self, rank: u32, is_local: bool, unlocks: bool) -> &mut Job {
        let (window, target) = (WINDOW, None);
        let event = Event::Ended {
            window,
            target,
            is_local,
            unlocks,
        };
        self.call(rank, "MPI_Win_flush", event)
    }

    /// A receive or a send of a rank with memory of its window, which returns at once.
    fn uses(&mut self, rank: u32, at: u64, is_written: bool) -> &mut Job {
        let runs = Runs::one(BASE + at, UNIT);
        self.call(rank, "MPI_Recv", Event::Used { runs, is_written });
        self.call(rank, "MPI_Recv", Event::Returned)
    }

    fn post(&mut self, rank: u32) -> &mut Job {
        self.call(rank, "MPI_Win_post", Event::Posted { window: WINDOW })
    }

    fn wait(&mut self, rank: u32) -> &mut Job {
        self.call(rank, "MPI_Win_wait", Event::Waited { window: WINDOW })
    }

    fn lock(&mut self, rank: u32, is_exclusive: bool) -> &mut Job {
        let window = WINDOW;
        self.call(
            rank,
            "MPI_Win_lock",
            Event::Locked {
                window,
                is_exclusive,
            },
        )
    }

    #[track_caller]
    fn has(&self, count: usize) {
        let found = self.machine.conflicts();
        assert_eq!(found.len(), count, "{found:#?}");
    }
}

use Epoch::*;
use Kind::{Get, Put};

fn sum(ty: Predefined, op: Op) -> Kind {
    let fetches = false;
    Kind::Accumulate { op, ty, fetches }
}
const LONG: Predefined = Predefined::INT64_T;
const DOUBLE: Predefined = Predefined::DOUBLE;

#[test]
fn puts_of_one_fence_epoch_conflict_and_those_of_two_do_not() {
    let mut job = job();
    job.fence()
        .access(0, Put, 1, 8, Fence)
        .access(2, Put, 1, 12, Fence);
    job.has(1);
    let found = &job.machine.conflicts()[0];
    assert_eq!((found.target, found.bytes, found.window), (1, (12, 16), 0));
    assert_eq!(found.sides.each_ref().map(|side| side.rank), [0, 2]);
    job.fence()
        .access(2, Put, 1, 8, Fence)
        .access(2, Put, 1, 16, Fence);
    job.access(2, Put, 3, 8, Fence).has(1);
    // One rank is still within the fence when another has returned from it.
    job.call(2, "", Event::Fenced { window: WINDOW });
    job.access(2, Put, 1, 8, Fence).has(1);
    // Two puts of one origin have no order either.
    job.access(2, Put, 1, 8, Fence).has(2);
}

#[test]
fn gets_conflict_with_changes_alone() {
    let mut job = job();
    job.fence()
        .access(0, Get, 1, 8, Fence)
        .access(2, Get, 1, 8, Fence)
        .has(0);
    job.access(3, Put, 1, 8, Fence).has(2);
    job.fence()
        .access(3, sum(LONG, Op::Sum), 1, 8, Fence)
        .access(0, Get, 1, 8, Fence)
        .has(3);
    // MPI_NO_OP reads.
    job.fence()
        .access(3, sum(LONG, Op::NoOp), 1, 8, Fence)
        .access(0, Get, 1, 8, Fence)
        .has(3);
}

#[test]
fn accumulates_need_one_type_and_operation() {
    let mut job = job();
    job.fence().access(0, sum(LONG, Op::Sum), 1, 8, Fence);
    job.access(2, sum(LONG, Op::Sum), 1, 8, Fence)
        .access(2, sum(LONG, Op::NoOp), 1, 8, Fence)
        .has(0);
    // Those of one origin are in order.
    job.access(0, sum(LONG, Op::Max), 1, 16, Fence)
        .access(0, sum(LONG, Op::Min), 1, 16, Fence)
        .has(0);
    job.access(3, sum(LONG, Op::Sum), 1, 24, Fence)
        .access(0, sum(LONG, Op::Max), 1, 24, Fence)
        .has(1);
    job.access(3, sum(LONG, Op::Sum), 1, 40, Fence)
        .access(0, sum(DOUBLE, Op::Sum), 1, 40, Fence)
        .has(2);
    job.access(3, sum(LONG, Op::Sum), 1, 64, Fence)
        .access(0, sum(LONG, Op::Sum), 1, 68, Fence)
        .has(3);
    job.access(3, sum(LONG, Op::Sum), 1, 80, Fence)
        .access(3, Put, 1, 80, Fence)
        .has(4);
}

#[test]
fn a_flush_ends_accesses_under_a_lock() {
    let mut job = job();
    job.access(0, Put, 1, 8, Shared)
        .ends(0, false, false)
        .access(2, Put, 1, 8, Shared)
        .has(0);
    job.access(3, Get, 1, 8, Shared).has(1);
    // A local flush ends gets, as their data are there, and no puts.
    job.ends(2, true, false).access(0, Put, 1, 8, Shared).has(3);
    job.ends(0, false, false)
        .ends(2, false, true)
        .ends(3, true, false);
    job.access(0, Put, 1, 8, Shared).has(3);
}

#[test]
fn exclusive_locks_order_accesses() {
    let mut job = job();
    job.access(0, Put, 1, 8, Exclusive)
        .access(2, Put, 1, 8, Exclusive)
        .access(3, Put, 1, 8, Shared)
        .has(0);
    // But not those of one origin.
    job.access(2, Get, 1, 8, Exclusive).has(1);
    // The target takes no lock, then a shared one, then an exclusive one.
    job.ends(0, false, true)
        .ends(2, false, true)
        .ends(3, false, true);
    job.access(0, Put, 1, 8, Shared).uses(1, 8, false).has(2);
    job.lock(1, false).uses(1, 8, false).has(3);
    job.ends(1, false, true)
        .lock(1, true)
        .uses(1, 8, true)
        .has(3);
}

#[test]
fn a_target_must_not_use_its_memory_in_the_epoch_of_a_change() {
    let mut job = job();
    job.fence()
        .uses(1, 8, true)
        .access(0, Put, 1, 8, Fence)
        .has(1);
    job.fence()
        .access(0, Get, 1, 8, Fence)
        .uses(1, 8, false)
        .has(1);
    job.uses(1, 8, true).has(2);
    // A call in the epoch before, and one in a window that nobody accesses.
    job.fence()
        .uses(1, 8, true)
        .fence()
        .access(0, Put, 1, 8, Fence)
        .has(2);
    job.uses(0, 8, true).uses(2, 8, true).has(2);
    let side = &job.machine.conflicts()[0].sides[0];
    assert_eq!(
        (side.action, side.call.as_str()),
        (Action::Write, "MPI_Recv")
    );
}

#[test]
fn exposure_epochs_bind_all_accesses_until_they_end() {
    let mut job = job();
    // Both origins have completed, but the target has not waited.
    job.post(1)
        .access(0, Put, 1, 8, Start)
        .ends(0, false, false);
    job.access(2, Put, 1, 8, Start).has(1);
    job.uses(1, 8, false).has(3);
    job.wait(1)
        .uses(1, 8, true)
        .post(1)
        .access(0, Put, 1, 8, Start)
        .has(3);
    job.uses(1, 16, true).access(2, Get, 1, 16, Start).has(4);
    job.wait(1).post(3).access(0, Put, 1, 8, Start).has(4);
}

#[test]
fn a_fetch_with_a_request_ends_unseen() {
    let mut job = job();
    let mut access = Access {
        window: WINDOW,
        target: 1,
        kind: Get,
        epoch: Shared,
        runs: Runs::one(8, 8),
        has_request: true,
    };
    job.call(0, "MPI_Rget", Event::Accessed(access));
    job.access(2, Put, 1, 8, Shared).has(0);
    access.kind = Put;
    job.call(0, "MPI_Rput", Event::Accessed(access)).has(1);
}

#[test]
fn memory_of_two_windows_is_one_memory() {
    let mut job = job();
    let (window, base, len) = (9, BASE + 8, 8);
    job.call(1, "MPI_Win_create", Event::Made { window, base, len });
    let access = Access {
        window,
        target: 1,
        kind: Put,
        epoch: Shared,
        runs: Runs::one(0, 8),
        has_request: false,
    };
    job.access(0, Put, 1, 8, Shared)
        .call(2, "MPI_Put", Event::Accessed(access))
        .has(1);
    job.call(1, "", Event::Freed { window: WINDOW });
    job.call(3, "MPI_Put", Event::Accessed(access)).has(2);
}

#[test]
fn equal_conflicts_are_counted_and_described() {
    let mut job = job();
    job.fence();
    for at in 0..10 {
        job.access(0, Put, 1, at * 8, Fence)
            .access(2, sum(LONG, Op::Sum), 1, at * 8, Fence);
    }
    job.has(1);
    let text = job.machine.conflicts()[0].to_string();
    assert_eq!(
        text,
        "bytes 0 to 7 of rank 1's part of window 0 (MPI_Win_create) are accessed twice without order:\n  \
         rank 0 at 0.000 us: MPI_Put, between two fences\n  \
         rank 2 at 0.000 us: MPI_Accumulate with MPI_SUM on MPI_INT64_T, between two fences\n  \
         why: a put is not atomic with accumulates: either may be lost (MPI 5.0 §12.7)\n  \
         remedy: call MPI_Win_fence between the two; or use accumulates (MPI_REPLACE, MPI_NO_OP)\n  \
         9 more such pairs follow."
    );
}

#[test]
fn events_that_nobody_could_note_are_survived() {
    let mut job = Job {
        machine: Machine::default(),
        now: 0,
    };
    job.fence()
        .wait(1)
        .ends(0, true, true)
        .uses(1, 8, true)
        .lock(2, true);
    job.access(0, Put, 1, u64::MAX, Fence).has(0);
    for words in [
        [u64::MAX; WORDS],
        [0; WORDS],
        [8 << 56, 5, 1, u64::MAX, u64::MAX, u64::MAX],
    ] {
        if let Some((rank, event)) = Event::decode(words) {
            job.call(rank, "", event);
        }
    }
}
