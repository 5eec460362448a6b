//! The computing of a rank before a call, beside the progress thread of its windows.
//!
//! The rank's clock is that of the thread that runs: it stands still for the program while the
//! progress thread works. If that thread has a core of its own, the program computes on meanwhile,
//! and its computing ends when it would without the thread; it is later only if the thread works at
//! that time, because the following call waits for it. Otherwise the thread takes the program's
//! core, and the computing ends later by as much as the thread has worked.

use sim::Time;

/// Computing that has begun, and that the rank's progress thread may interrupt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Computing {
    /// The time at which the computing would end without the thread.
    end: Time,
    /// The computing time that the program has left.
    left: Time,
    shares_core: bool,
}

impl Computing {
    /// Begins computing of the duration `time` at the moment `now`.
    pub(crate) fn begin(now: Time, time: Time, shares_core: bool) -> Computing {
        Computing {
            end: now.saturating_add(time),
            left: time,
            shares_core,
        }
    }

    /// The time that the program still has to compute at `now`.
    pub(crate) fn left(&self, now: Time) -> Time {
        match self.shares_core {
            true => self.left,
            false => self.end.saturating_sub(now),
        }
    }

    /// True if a thread that wakes up `wake` after `now` is too late: the program has then ended
    /// its computing, and its call handles what has arrived.
    pub(crate) fn ends_within(&self, now: Time, wake: Time) -> bool {
        !self.shares_core && self.left(now) <= wake
    }

    /// Records that the rank has computed for the time `time`.
    pub(crate) fn passed(&mut self, time: Time) {
        self.left = self.left.saturating_sub(time);
    }

    /// The delay of the end of the computing by the thread, if the rest is computed from `now` on.
    pub(crate) fn delay(&self, now: Time) -> Time {
        (now + self.left(now)).saturating_sub(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computing of 100 ps from 1000 ps on, of which 30 ps have passed when the thread works from
    /// 1030 to 1050 ps.
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
        // The thread works from 1090 to 1104 ps, and the call waits for it.
        assert_eq!((computing.left(1104), computing.delay(1104)), (0, 4));
    }
}
