//! Computing of a rank before a call, beside the progress thread of its windows.
//!
//! The rank's clock is that of whoever runs: it stands still for the program while the thread
//! works. Where the thread has a core of its own, the program computes on meanwhile, and its
//! computing ends when it would without the thread; it is only later if the thread works at that
//! moment, because the call that follows waits for it. Elsewhere the thread takes the program's
//! core, and the computing ends by as much later as the thread has worked.

use sim::Time;

/// Computing that has begun, of a rank whose progress thread may interrupt it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Computing {
    /// The moment of its end without the thread.
    end: Time,
    /// The part that the program has not computed yet.
    left: Time,
    shares_core: bool,
}

impl Computing {
    /// Begins `time` of computing at `now`.
    pub(crate) fn begin(now: Time, time: Time, shares_core: bool) -> Computing {
        Computing {
            end: now.saturating_add(time),
            left: time,
            shares_core,
        }
    }

    /// The part that is left at `now`.
    pub(crate) fn left(&self, now: Time) -> Time {
        match self.shares_core {
            true => self.left,
            false => self.end.saturating_sub(now),
        }
    }

    /// A thread that wakes up `wake` after `now` comes too late: the program has ended its
    /// computing by then, and serves what has arrived in its call.
    pub(crate) fn ends_within(&self, now: Time, wake: Time) -> bool {
        !self.shares_core && self.left(now) <= wake
    }

    /// The rank has computed for `time`.
    pub(crate) fn passed(&mut self, time: Time) {
        self.left = self.left.saturating_sub(time);
    }

    /// The time by which its end is later than without the thread, if the rest is computed from
    /// `now` on.
    pub(crate) fn delay(&self, now: Time) -> Time {
        (now + self.left(now)).saturating_sub(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computing of 100 from 1000 on, with the thread at work from 1030 to 1050.
    fn interrupted(shares_core: bool) -> Computing {
        let mut computing = Computing::begin(1000, 100, shares_core);
        assert_eq!(computing.left(1000), 100);
        computing.passed(30);
        computing
    }

    #[test]
    fn a_thread_on_the_same_core_makes_computing_longer() {
        let mut computing = interrupted(true);
        assert_eq!(computing.left(1050), 70);
        assert!(!computing.ends_within(1090, 10));
        computing.passed(70);
        assert_eq!((computing.left(1120), computing.delay(1120)), (0, 20));
    }

    #[test]
    fn a_thread_on_its_own_core_makes_nothing_longer_but_a_call_that_meets_it() {
        let computing = interrupted(false);
        assert_eq!((computing.left(1050), computing.delay(1050)), (50, 0));
        assert!(computing.ends_within(1090, 10) && !computing.ends_within(1089, 10));
        // It works from 1090 to 1104: the call waits for it.
        assert_eq!((computing.left(1104), computing.delay(1104)), (0, 4));
    }
}
