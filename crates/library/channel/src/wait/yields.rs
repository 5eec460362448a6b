//! The price of yields. A yield between ranks of one job is cheap, but to a task of another job it
//! gives a whole slice of milliseconds. So each yield is timed, and after a costly one the rank
//! sleeps instead for a number of waits, which doubles while yields stay costly. Where other ranks
//! of the job had the core meanwhile, the time may be that of their copies, and more of it is
//! cheap.
//!
//! Threads of a rank share the counts: a lost update delays a decision only.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The longest cheap yield, in nanoseconds: longer than a sleep and a wake-up.
const CHEAP: u64 = 50_000;
/// The longest cheap yield to other ranks of the job, in nanoseconds: shorter than a slice.
const CHEAP_AMONG_RANKS: u64 = 1_000_000;
/// Waits without a yield after the first costly one.
const FIRST_REST: u32 = 16;
/// Most waits without a yield: together some tens of slices, so that trying again costs little
/// beside loops, and the disturbances of the start are soon over.
const LONGEST_REST: u32 = 512;
/// Cheap yields in a row after which costly ones are forgotten.
const FORGET_AFTER: u32 = 256;

/// The yields of a rank.
#[derive(Debug)]
pub(super) struct Yields {
    /// Waits left without a yield.
    rest: AtomicU32,
    /// Waits without a yield after the next costly one.
    next_rest: AtomicU32,
    /// Cheap yields in a row.
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

    /// Yields are worth their price at this moment.
    #[inline]
    pub(super) fn are_cheap(&self) -> bool {
        self.rest.load(Relaxed) == 0
    }

    /// A wait has ended in a sleep instead of yields.
    pub(super) fn rested(&self) {
        let rest = self.rest.load(Relaxed);
        self.rest.store(rest.saturating_sub(1), Relaxed);
    }

    /// A yield has taken this many nanoseconds. `among_ranks`: other ranks of the job had the core.
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

    /// Waits until yields are tried again.
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
