//! The detection of a stuck job: one in which no rank makes progress.
//!
//! The launcher requests the status of all ranks at intervals. A rank that answers waits in MPI,
//! and reports its progress count. A rank that does not answer is outside MPI, or busy within a
//! call; it counts neither as making progress nor as stuck.

use std::time::{Duration, Instant};

use crate::rank_state::{RankState, states};

/// The shortest interval between requests for the status of all ranks.
const SHORTEST: Duration = Duration::from_millis(20);
/// The longest interval between requests for the status of all ranks.
const LONGEST: Duration = Duration::from_secs(5);

/// The progress of all ranks, as far as they have reported it.
pub(crate) struct StuckDetector {
    /// The time without progress after which the job is regarded as stuck.
    patience: Duration,
    /// The time of the next status request to the ranks.
    pub next: Instant,
    /// The last time at which a rank's progress was detected.
    since: Instant,
    /// The last answer of each rank: its operation and its progress count.
    last: Vec<Option<(String, u64)>>,
    /// True if the present standstill has been reported.
    reported: bool,
}

impl StuckDetector {
    pub(crate) fn new(patience: Duration, ranks: usize, now: Instant) -> Self {
        let mut stuck = StuckDetector {
            patience,
            next: now,
            since: now,
            last: vec![None; ranks],
            reported: false,
        };
        stuck.plan(now);
        stuck
    }

    fn plan(&mut self, now: Instant) {
        self.next = now + (self.patience / 4).clamp(SHORTEST, LONGEST);
    }

    /// Evaluates the ranks' answers. Returns the duration of a standstill if it exceeds the
    /// patience and has not been reported yet.
    pub(crate) fn judge(
        &mut self,
        ranks: &[impl AsRef<RankState>],
        now: Instant,
    ) -> Option<Duration> {
        self.plan(now);
        let mut waiting = false;
        for (rank, last) in states(ranks).zip(&mut self.last) {
            let Some(status) = &rank.answer else { continue };
            waiting = true;
            let answer = (status.operation.clone(), status.progress);
            if last.as_ref() != Some(&answer) {
                *last = Some(answer);
                self.since = now;
                self.reported = false;
            }
        }
        let time = now - self.since;
        if !waiting || self.reported || time < self.patience {
            return None;
        }
        self.reported = true;
        Some(time)
    }
}
