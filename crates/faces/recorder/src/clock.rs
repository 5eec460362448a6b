//! The time of calls, and of the computing between them.
//!
//! The wall clock is read at each call. The processor time of a gap is read only where gaps are
//! long, because a reading takes ten times as long. A gap that follows a procedure is expected to
//! be as long as the last one after it. It is read again at the end of the gap, unless a mark says
//! that the thread had its core for the whole of it.

use std::ffi::c_int;

use crate::mark::Marks;
use crate::ticks::{Ticks, nanos};

/// The length of a gap, in nanoseconds, from which on its processor time is of interest.
const LONG: u64 = 20_000;

/// The sums of the gaps of a process, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    /// The time outside calls.
    pub(crate) outside: u64,
    /// The time in long gaps whose processor time is known.
    pub(crate) known: u64,
    /// The part of it in which the process slept.
    pub(crate) slept: u64,
    /// The part of it in which the process waited for a core that another one had.
    pub(crate) interrupted: u64,
}

/// The clock of a process.
pub(crate) struct Clock {
    pub(crate) ticks: Ticks,
    marks: Marks,
    /// The ticks at the begin of the recording.
    began: u64,
    /// The ticks at the end of the last call.
    left: u64,
    /// The processor time at the end of the last call, where a long gap is expected.
    used: Option<u64>,
    /// The number of times that the system had given a core of the process to another task, when
    /// it was read last.
    switches: u64,
    /// True if the process did not compute in the whole of the last long gap. Then the switches are
    /// read before the next one, so that those inside calls do not count.
    was_idle: bool,
    /// For each procedure, true if a long gap followed its last call.
    is_long_after: Vec<bool>,
    /// The procedure of the last call.
    last: usize,
    pub(crate) sums: Gaps,
}

/// The processor time of all threads of the process, in nanoseconds.
fn used() -> u64 {
    nanos(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// The number of times that the system gave a core of the process to another task.
fn switches() -> u64 {
    // SAFETY: all bytes 0 are a valid structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    const OF_PROCESS: c_int = libc::RUSAGE_SELF;
    // SAFETY: the structure is a local variable.
    unsafe { libc::getrusage(OF_PROCESS, &raw mut usage) };
    u64::try_from(usage.ru_nivcsw).unwrap_or(0)
}

impl Clock {
    /// A clock of `procedures` procedures that begins now.
    pub(crate) fn new(procedures: usize, ticks: Ticks) -> Clock {
        let now = ticks.now();
        Clock {
            ticks,
            marks: Marks::of_process(),
            began: now,
            left: now,
            used: Some(used()),
            switches: switches(),
            was_idle: false,
            is_long_after: vec![false; procedures],
            last: 0,
            sums: Gaps::default(),
        }
    }

    /// The computing before a call that begins at tick `now`, in nanoseconds: the time since the
    /// last call, without what other processes took of it.
    pub(crate) fn enter(&mut self, now: u64) -> u64 {
        let gap = self.ticks.nanos(now.saturating_sub(self.left));
        self.sums.outside += gap;
        let is_long = gap >= LONG;
        self.is_long_after[self.last] = is_long;
        let Some(before) = self.used.take() else {
            return gap;
        };
        let had_core = self.marks.take();
        match is_long {
            true if had_core => self.long(gap, gap, switches),
            true => self.long(gap, used().saturating_sub(before), switches),
            false => gap,
        }
    }

    /// The computing in a long gap, in which all threads have used `computed` nanoseconds.
    fn long(&mut self, gap: u64, computed: u64, switches: impl Fn() -> u64) -> u64 {
        let idle = gap.saturating_sub(computed);
        self.sums.known += gap;
        // The clocks agree only to some microseconds.
        self.was_idle = idle >= LONG / 2;
        if !self.was_idle {
            return gap;
        }
        let now = switches();
        let is_interrupted = now > self.switches;
        self.switches = now;
        if is_interrupted {
            self.sums.interrupted += idle;
            return gap - idle;
        }
        self.sums.slept += idle;
        gap
    }

    /// Keeps the end of a call of a procedure.
    pub(crate) fn leave(&mut self, procedure: usize) {
        self.last = procedure;
        let is_long = self.is_long_after[procedure];
        if is_long && self.was_idle {
            self.switches = switches();
        }
        if is_long {
            self.used = Some(used());
            self.marks.set();
        }
        self.left = self.ticks.now();
    }

    /// The tick at which the last call ended.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The nanoseconds from the begin of the recording to tick `now`.
    pub(crate) fn elapsed(&self, now: u64) -> u64 {
        self.ticks.nanos(now.saturating_sub(self.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(left: u64) -> Clock {
        Clock {
            ticks: Ticks::SYSTEM,
            marks: Marks::NONE,
            began: 0,
            left,
            used: Some(0),
            switches: 3,
            was_idle: false,
            is_long_after: vec![false; 2],
            last: 1,
            sums: Gaps::default(),
        }
    }

    #[test]
    fn a_gap_without_switches_is_computing_or_sleep_and_counts_whole() {
        let mut clock = at(0);
        assert_eq!(clock.long(400_000, 100_000, || 3), 400_000);
        assert_eq!((clock.sums.slept, clock.sums.interrupted), (300_000, 0));
        assert!(clock.was_idle);
        // Threads that compute at the same time.
        assert_eq!(clock.long(400_000, 900_000, || 3), 400_000);
        assert_eq!((clock.sums.slept, clock.was_idle), (300_000, false));
    }

    #[test]
    fn a_gap_loses_what_another_process_took_of_it() {
        let mut clock = at(0);
        assert_eq!(clock.long(400_000, 100_000, || 4), 100_000);
        assert_eq!((clock.sums.slept, clock.sums.interrupted), (0, 300_000));
        assert_eq!(clock.long(400_000, 100_000, || 4), 400_000);
        assert_eq!(clock.sums.slept, 300_000);
    }

    #[test]
    fn the_processor_time_is_read_after_calls_that_a_long_gap_followed() {
        let mut clock = at(1_000);
        clock.used = None;
        assert_eq!(clock.enter(1_000 + LONG), LONG);
        assert_eq!(clock.is_long_after, [false, true]);
        clock.leave(0);
        assert_eq!(clock.used, None);
        clock.leave(1);
        assert!(clock.used.is_some());
        clock.enter(clock.left + 1);
        assert_eq!(clock.is_long_after, [false, false]);
        assert_eq!(clock.sums.outside, LONG + 1);
    }
}
