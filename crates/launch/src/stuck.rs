//! Noticing that no rank gets anything done.
//!
//! The launcher asks from time to time. A rank that answers waits in MPI, and says how far it has come; one that does not
//! is outside MPI, which is neither progress nor the lack of it.

use std::time::{Duration, Instant};

use crate::rank::Rank;

/// How often to ask, whatever the patience is.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(5);

pub(crate) struct Stuck {
    patience: Duration,
    /// When to ask next.
    pub next: Instant,
    since: Instant,
    /// What each rank last answered: its operation and its count.
    last: Vec<Option<(String, u64)>>,
    told: bool,
}

impl Stuck {
    pub fn new(patience: Duration, ranks: usize, now: Instant) -> Self {
        let mut stuck = Stuck {
            patience,
            next: now,
            since: now,
            last: vec![None; ranks],
            told: false,
        };
        stuck.plan(now);
        stuck
    }

    fn plan(&mut self, now: Instant) {
        self.next = now + (self.patience / 4).clamp(SHORTEST, LONGEST);
    }

    /// Takes the answers. If the job has been stuck for long enough, and has not been called so before, for how long.
    pub fn judge(&mut self, ranks: &[Rank], now: Instant) -> Option<Duration> {
        self.plan(now);
        let mut waiting = false;
        for (rank, last) in ranks.iter().zip(&mut self.last) {
            let Some(status) = &rank.answer else { continue };
            waiting = true;
            let answer = (status.operation.clone(), status.progress);
            if last.as_ref() != Some(&answer) {
                *last = Some(answer);
                self.since = now;
                self.told = false;
            }
        }
        let time = now - self.since;
        if !waiting || self.told || time < self.patience {
            return None;
        }
        self.told = true;
        Some(time)
    }
}
