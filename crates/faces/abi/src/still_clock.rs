//! Detection of programs that run until their clock has advanced by a fixed span, on a modelled
//! machine that charges no computing. The clock hardly advances, so they run for hours or for ever,
//! and their user should learn why.

use std::sync::{Mutex, PoisonError};

/// The longest virtual time between two readings of the clock, in nanoseconds, for which the clock
/// stands still: a few short calls.
const NONE: u64 = 100;
/// The number of consecutive readings of a still clock after which the program is reported.
const STILL: u32 = 1_000_000;
/// The least processor time after which a program is reported because its clock hardly advances, in
/// nanoseconds.
const LONG: u64 = 60_000_000_000;
/// The quotient processor time / virtual time from which on the clock hardly advances.
const SLOW: u64 = 100;
/// The processor time is compared once in this number of readings, to save system calls.
const READINGS: u32 = 64;

/// The readings of the clock by one rank whose computing takes no virtual time.
#[derive(Default)]
pub struct StillClock(Mutex<Readings>);

#[derive(Default)]
struct Readings {
    /// The number of readings of the clock until now.
    all: u32,
    /// The number of the latest consecutive readings between which the clock stood still.
    still: u32,
    /// The virtual time of the latest reading of the clock, in nanoseconds.
    last: u64,
    reported: bool,
}

impl StillClock {
    /// Counts a reading at virtual time `now`. Returns a text for the user, once, if the clock
    /// stands still or advances much slower than `processor_time`. All times are in nanoseconds.
    pub fn read(&self, now: u64, processor_time: impl FnOnce() -> u64) -> Option<String> {
        let mut readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if readings.reported {
            return None;
        }
        let found = readings.count(now, processor_time)?;
        readings.reported = true;
        Some(format!(
            "{found}, because computing takes no virtual time here (--compute none): a program that runs for a fixed span of \
             MPI_Wtime hardly ends; give it a number of steps, or use --compute measured (docs/user/faq.md)"
        ))
    }
}

impl Readings {
    fn count(&mut self, now: u64, processor_time: impl FnOnce() -> u64) -> Option<String> {
        self.all = self.all.wrapping_add(1);
        self.still = match now.saturating_sub(self.last) <= NONE {
            true => self.still + 1,
            false => 0,
        };
        self.last = now;
        if self.still >= STILL {
            let still = self.still;
            return Some(format!(
                "the clock was read {still} times in a row and stands almost still"
            ));
        }
        if !self.all.is_multiple_of(READINGS) {
            return None;
        }
        let computed = processor_time();
        let is_slow = computed >= LONG && computed / SLOW >= now;
        is_slow.then(|| {
            format!(
                "after {} s of processor time the clock is at {:.3} s",
                computed / 1_000_000_000,
                now as f64 * 1e-9
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The text after this number of readings at intervals of `step`, with this processor time.
    fn after(readings: u32, step: u64, processor_time: u64) -> Option<String> {
        let clock = StillClock::default();
        let text =
            (1..=readings).find_map(|at| clock.read(u64::from(at) * step, || processor_time));
        // The text is returned only once.
        assert!(text.is_none() || clock.read(u64::MAX, || 0).is_none());
        text
    }

    #[test]
    fn a_clock_that_stands_still_is_reported_once() {
        assert_eq!(after(STILL - 1, 20, SECOND), None);
        let text = after(STILL, 20, SECOND).unwrap();
        assert!(text.starts_with(
            "the clock was read 1000000 times in a row and stands almost still, because"
        ));
    }

    #[test]
    fn a_clock_that_moves_is_not_reported() {
        assert_eq!(after(2 * STILL, 1000, SECOND), None);
    }

    #[test]
    fn a_message_now_and_then_makes_the_clock_move() {
        let clock = StillClock::default();
        for at in 0..4 * u64::from(STILL) {
            let messages = at / 1000 * 10_000;
            assert_eq!(clock.read(messages + at * 20, || 0), None);
        }
    }

    #[test]
    fn a_clock_that_is_much_slower_than_the_processor_is_reported() {
        let text = after(READINGS, 10_000, 61 * SECOND).unwrap();
        assert!(text.starts_with("after 61 s of processor time the clock is at 0.001 s, because"));
        assert_eq!(after(READINGS - 1, 10_000, 61 * SECOND), None);
        assert_eq!(after(READINGS, 10_000, 59 * SECOND), None);
        assert_eq!(after(READINGS, SECOND, 61 * SECOND), None);
    }
}
