//! The buffer for the completions of one poll, and the bound of the delay with which the poll found
//! them, from which schedules learn bandwidths.

use device::{Completed, Completion, Qp, Status};

/// The most completions that one poll of a queue takes.
pub(super) const SOME: usize = 16;

/// A completion counts as found on time if less than this time, in nanoseconds, has passed since
/// the last poll.
const FRESH: u64 = 2_000;

/// The longest time from an event to the poll of the rank that it wakes, in nanoseconds.
const WAKE: u64 = 100_000;

/// The completions of the last poll. Their memory is kept, so that the many polls that find none do
/// not allocate it.
pub(super) struct PolledCompletions {
    pub found: Box<[Completion; SOME]>,
    /// The time of the last poll of completions while transfers over several rails are in flight,
    /// in nanoseconds.
    at: u64,
    /// The greatest delay with which the last poll found completions, in nanoseconds. `None`: it is
    /// unknown.
    late: Option<u64>,
}

impl PolledCompletions {
    pub(super) fn none() -> PolledCompletions {
        let none = Completion {
            id: 0,
            qp: Qp(0),
            status: Status::Success,
            of: Completed::Write,
            bytes: 0,
            immediate: None,
        };
        PolledCompletions {
            found: Box::new([none; SOME]),
            at: 0,
            late: None,
        }
    }

    /// Records a poll of completions at `now`. `is_polled`: some device works only while it is
    /// polled.
    pub(super) fn note_poll(&mut self, now: u64, is_polled: bool) {
        let gap = now.saturating_sub(self.at);
        self.late = match gap < FRESH {
            true => Some(FRESH),
            false => is_polled.then_some(gap),
        };
        self.at = now;
    }

    /// Records the end of a wait at `now`: nothing had completed before an event ended it.
    pub(super) fn note_wake(&mut self, now: u64) {
        self.at = self.at.max(now.saturating_sub(WAKE));
    }

    /// The time of the last poll, and the greatest delay with which it found completions, in
    /// nanoseconds.
    pub(super) fn time(&self) -> (u64, Option<u64>) {
        (self.at, self.late)
    }
}
