//! The cost of yields. A yield to a rank of the same job is cheap, but one to a process of another
//! job gives away a whole time slice of milliseconds. So each yield is timed, and after a costly
//! one the rank sleeps instead of yielding for a number of waits, which doubles while yields stay
//! costly. Where other ranks of the job had the core meanwhile, the time may be that of their
//! copies, so the limit is higher.
//!
//! Threads of a rank share the counts: a lost update only delays a decision.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The longest cheap yield, in nanoseconds: longer than a sleep and a wake-up.
const CHEAP: u64 = 50_000;
/// The longest cheap yield to other ranks of the job, in nanoseconds: shorter than a slice.
const CHEAP_AMONG_RANKS: u64 = 1_000_000;
/// Number of waits without a yield after the first costly yield.
const FIRST_REST: u32 = 16;
/// Greatest number of waits without a yield: together some tens of time slices, so that another
/// attempt costs little compared with loops, and the disturbances of the start are over soon.
const LONGEST_REST: u32 = 512;
/// Number of consecutive cheap yields after which the doubling starts again.
const FORGET_AFTER: u32 = 256;

/// The recent yields of a rank, and the waits in which it sleeps instead.
#[derive(Debug)]
pub(super) struct Yields {
    /// The number of waits that must still do without a yield.
    rest: AtomicU32,
    /// The number of waits that do without a yield after the next costly yield.
    next_rest: AtomicU32,
    /// The number of consecutive yields that took little time.
    cheap: AtomicU32,
}

impl Yields {
    pub(super) fn new() -> Yields {
        Yields {
            rest: 0.into(),
            next_rest: FIRST_REST.into(),
            cheap: 0.into(),
        }
    }

    /// True if the rank should yield, since no costly yield was recent.
    #[inline]
    pub(super) fn are_cheap(&self) -> bool {
        self.rest.load(Relaxed) == 0
    }

    /// Records that a wait has slept instead of yielding.
    pub(super) fn rested(&self) {
        let rest = self.rest.load(Relaxed);
        self.rest.store(rest.saturating_sub(1), Relaxed);
    }

    /// Records a yield that has taken `nanos` nanoseconds. `among_ranks`: other ranks of the job
    /// had the core.
    pub(super) fn took(&self, nanos: u64, among_ranks: bool) {
        let cheap = match among_ranks {
            true => CHEAP_AMONG_RANKS,
            false => CHEAP,
        };
        if nanos > cheap {
            let rest = self.next_rest.load(Relaxed);
            self.rest.store(rest, Relaxed);
            self.next_rest.store((2 * rest).min(LONGEST_REST), Relaxed);
            self.cheap.store(0, Relaxed);
            return;
        }
        let cheap = self.cheap.load(Relaxed) + 1;
        self.cheap.store(cheap % FORGET_AFTER, Relaxed);
        if cheap == FORGET_AFTER {
            self.next_rest.store(FIRST_REST, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of waits until yields are tried again.
    fn rest(yields: &Yields) -> u32 {
        let mut waits = 0;
        while !yields.are_cheap() {
            yields.rested();
            waits += 1;
        }
        waits
    }

    #[test]
    fn cheap_yields_stay() {
        let yields = Yields::new();
        for _ in 0..1000 {
            yields.took(CHEAP, false);
            yields.took(CHEAP_AMONG_RANKS, true);
            assert!(yields.are_cheap());
        }
    }

    #[test]
    fn the_rest_doubles_up_to_a_limit() {
        let yields = Yields::new();
        let mut rests = Vec::new();
        for _ in 0..13 {
            yields.took(CHEAP + 1, false);
            rests.push(rest(&yields));
            yields.took(0, false);
        }
        let doubled: Vec<u32> = (0..13)
            .map(|at| (FIRST_REST << at).min(LONGEST_REST))
            .collect();
        assert_eq!(rests, doubled);
    }

    #[test]
    fn cheap_yields_make_dear_ones_forgotten() {
        let yields = Yields::new();
        for _ in 0..5 {
            yields.took(CHEAP + 1, false);
        }
        rest(&yields);
        for _ in 0..FORGET_AFTER {
            yields.took(0, false);
        }
        yields.took(CHEAP + 1, false);
        assert_eq!(rest(&yields), FIRST_REST);
    }
}
