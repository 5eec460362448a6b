//! The time that a polling thread loses while it is ready to run and another task has its core.
//!
//! The counts of cores show other ranks of this job. They do not show processes of other jobs and
//! containers, and claims of cores do not reach everywhere, so a rank that polls checks its loss,
//! which the kernel counts for each thread. A check costs a few system calls, so checks are rare.
//!
//! Threads of a rank share one record: a check by another thread than the last one starts anew.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::read;

/// Time from one check to the next, in nanoseconds: several time slices of the scheduler.
const PERIOD: u64 = 10_000_000;
/// Time until the next check after a thread has first been found to lose time, in nanoseconds. A
/// thread that yields to tasks that are still there would lose time again if it polled.
const FIRST_REST: u64 = 100_000_000;
/// The greatest time until the next check of a thread that loses time, in nanoseconds.
const LONGEST_REST: u64 = 1_600_000_000;
/// A thread loses time if it waits for a core for more than one part in this many of its time.
const MAY_LOSE: u64 = 10;

/// The record of the processor time that the threads of a rank lose to other processes.
#[derive(Debug)]
pub(super) struct LostTime {
    /// True if the rank lost processor time at the last check.
    losing: AtomicBool,
    /// The time of the next check for lost processor time, in nanoseconds.
    next: AtomicU64,
    /// The thread that made the last check.
    thread: AtomicI32,
    /// The time of the last check for lost processor time, in nanoseconds.
    since: AtomicU64,
    /// The total time that the thread had waited for a core at the last check, in nanoseconds.
    waited: AtomicU64,
    /// The time from a check that finds a loss to the next check, in nanoseconds.
    rest: AtomicU64,
}

impl LostTime {
    pub(super) fn new() -> LostTime {
        LostTime {
            losing: false.into(),
            next: 0.into(),
            thread: 0.into(),
            since: 0.into(),
            waited: 0.into(),
            rest: FIRST_REST.into(),
        }
    }

    /// True if the rank lost processor time at the last check.
    #[inline]
    pub(super) fn is_losing(&self) -> bool {
        self.losing.load(Relaxed)
    }

    /// Checks whether the calling thread loses time, if a check is due at the time `now`.
    pub(super) fn check(&self, now: u64) {
        if now < self.next.load(Relaxed) {
            return;
        }
        match waited() {
            // SAFETY: the function has no precondition.
            Some(waited) => self.note(now, unsafe { libc::gettid() }, waited),
            None => self.next.store(u64::MAX, Relaxed),
        }
    }

    /// Records a check at the time `now`: until then `thread` has waited `waited` nanoseconds for a
    /// core.
    fn note(&self, now: u64, thread: i32, waited: u64) {
        let same = self.thread.swap(thread, Relaxed) == thread;
        let elapsed = now.saturating_sub(self.since.swap(now, Relaxed));
        let lost = waited.saturating_sub(self.waited.swap(waited, Relaxed));
        let was_losing = self.is_losing();
        let is_losing = same && lost.saturating_mul(MAY_LOSE) > elapsed;
        self.losing.store(is_losing, Relaxed);
        let rest = self.rest.load(Relaxed);
        let pause = match (was_losing, is_losing) {
            (_, true) => rest,
            (true, false) => {
                // The thread may have yielded to tasks that are still there.
                self.rest.store((2 * rest).min(LONGEST_REST), Relaxed);
                PERIOD
            }
            (false, false) => PERIOD,
        };
        self.next.store(now.saturating_add(pause), Relaxed);
    }
}

/// The total time for which the calling thread has waited for a core, in nanoseconds. `None`: the
/// kernel does not report it.
fn waited() -> Option<u64> {
    if datatype::double::ask(|_| ()).is_some() {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = open(c"/proc/thread-self/schedstat", flags, Mode::empty()).ok()?;
    let mut text = [0; 64];
    let len = read(&file, &mut text).ok()?;
    second_number(&text[..len])
}

/// The second number of a line, which is the time spent waiting for a core in `schedstat`.
fn second_number(text: &[u8]) -> Option<u64> {
    let word = text.split(|byte| *byte == b' ').nth(1)?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the next check of a thread that loses `share` thousandths of its time.
    fn lose(lost: &LostTime, now: &mut u64, waited: &mut u64, share: u64) {
        let pause = lost.next.load(Relaxed).saturating_sub(*now).max(1);
        *now += pause;
        *waited += pause * share / 1000;
        lost.note(*now, 7, *waited);
    }

    #[test]
    fn a_thread_that_loses_a_tenth_loses_time() {
        let (lost, mut now, mut waited) = (LostTime::new(), 0, 5_000_000_000);
        lose(&lost, &mut now, &mut waited, 0);
        for (share, losing) in [
            (0, false),
            (99, false),
            (110, true),
            (500, true),
            (0, false),
        ] {
            lose(&lost, &mut now, &mut waited, share);
            assert_eq!(lost.is_losing(), losing, "{share}");
        }
    }

    #[test]
    fn the_rest_doubles_while_time_is_lost_again() {
        let (lost, mut now, mut waited) = (LostTime::new(), 0, 0);
        lose(&lost, &mut now, &mut waited, 0);
        let mut rests = vec![];
        for _ in 0..7 {
            lose(&lost, &mut now, &mut waited, 500);
            rests.push(lost.next.load(Relaxed) - now);
            lose(&lost, &mut now, &mut waited, 0);
        }
        let doubled: Vec<u64> = (0..7)
            .map(|at| (FIRST_REST << at).min(LONGEST_REST))
            .collect();
        assert_eq!(rests, doubled);
    }

    #[test]
    fn the_kernel_says_what_a_thread_waits() {
        assert_eq!(
            second_number(b"835475384 1166870062 303\n"),
            Some(1166870062)
        );
        assert_eq!(second_number(b"7"), None);
        // If the kernel does not count this, there is no file.
        let before = waited();
        assert!(waited() >= before);
    }

    #[test]
    fn another_thread_begins_anew() {
        let lost = LostTime::new();
        lost.note(0, 1, 0);
        lost.note(PERIOD, 2, 10 * PERIOD);
        assert!(!lost.is_losing());
        lost.note(2 * PERIOD, 2, 11 * PERIOD);
        assert!(lost.is_losing());
    }
}
