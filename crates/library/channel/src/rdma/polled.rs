//! The completions of the last poll, and its time.

use device::{Completed, Completion, Qp, Status};

/// Completions taken from a queue at once.
pub(super) const SOME: usize = 16;

/// The longest time between two polls of completions, in nanoseconds, for which a completion counts
/// as found when it came.
const FRESH: u64 = 2_000;

/// The longest time from an event to the poll of the rank that it wakes, in nanoseconds.
const WAKE: u64 = 100_000;

/// The completions of the last poll. Their memory stays: most polls find none, and should not have
/// to make it.
pub(super) struct PolledCompletions {
    pub found: Box<[Completion; SOME]>,
    /// The time of the last poll of completions while transfers over several rails are in flight,
    /// in nanoseconds.
    at: u64,
    /// The most by which completions were found late then, in nanoseconds, as far as it is known.
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

    /// Completions are polled at `now`. `is_polled`: of devices that work only while they are
    /// polled.
    pub(super) fn note_poll(&mut self, now: u64, is_polled: bool) {
        let gap = now.saturating_sub(self.at);
        self.late = match gap < FRESH {
            true => Some(FRESH),
            false => is_polled.then_some(gap),
        };
        self.at = now;
    }

    /// A wait has ended at `now`: nothing had completed before an event ended it.
    pub(super) fn note_wake(&mut self, now: u64) {
        self.at = self.at.max(now.saturating_sub(WAKE));
    }

    /// The time of the last poll, and the most by which it found completions late.
    pub(super) fn time(&self) -> (u64, Option<u64>) {
        (self.at, self.late)
    }
}
