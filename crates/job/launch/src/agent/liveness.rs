//! The times at which heartbeats between launcher and agent are due, and the decision that the
//! other end is dead.
//!
//! Each end sends a heartbeat several times within its patience, and declares the other dead if no
//! byte arrives for that time. Time is an argument, so tests do not wait.
//!
//! Invariant: a process that was itself stopped does not count that time as silence of the other.

use std::time::{Duration, Instant};

/// The number of heartbeats that are sent within the patience.
pub(super) const BEATS: u32 = 4;

/// The state of heartbeats at one end of a connection: when bytes last arrived and left, and
/// whether the other end has announced its silence.
#[derive(Debug, Clone)]
pub(crate) struct Liveness {
    /// The longest silence before the other end is declared dead. Zero: no limit.
    patience: Duration,
    heard: Instant,
    spoken: Instant,
    looked: Instant,
    /// True if the other end has announced that it will be silent.
    is_suspended: bool,
}

/// The state of the other end, as [`Liveness::check`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Outlook {
    /// True if this end must send a heartbeat now.
    pub beat: bool,
    /// True if the other end has been silent for too long.
    pub is_dead: bool,
}

impl Liveness {
    pub(crate) fn new(patience: Duration, now: Instant) -> Self {
        Liveness {
            patience,
            heard: now,
            spoken: now,
            looked: now,
            is_suspended: false,
        }
    }

    /// The longest silence before the other end is declared dead.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Records that bytes from the other end have arrived.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard = now;
        self.is_suspended = false;
    }

    /// Records that the other end has announced its silence until its next byte.
    pub(crate) fn suspend(&mut self) {
        self.is_suspended = true;
    }

    /// The next time at which [`Liveness::check`] has something to do.
    pub(crate) fn next(&self) -> Option<Instant> {
        let beat = self.spoken + self.patience / BEATS;
        let end = self.heard + self.patience;
        match (self.patience.is_zero(), self.is_suspended) {
            (true, _) => None,
            (false, true) => Some(beat),
            (false, false) => Some(beat.min(end)),
        }
    }

    /// Checks at the time `now` if a heartbeat is due, and if the other end is dead.
    pub(crate) fn check(&mut self, now: Instant) -> Outlook {
        if self.patience.is_zero() {
            return Outlook::default();
        }
        // This function is called at every heartbeat. After a longer gap this process was stopped,
        // and bytes that the other end has sent meanwhile may be unread.
        if now.saturating_duration_since(self.looked) > self.patience / 2 {
            self.heard = now;
        }
        self.looked = now;
        let beat = now >= self.spoken + self.patience / BEATS;
        if beat {
            self.spoken = now;
        }
        Outlook {
            beat,
            is_dead: !self.is_suspended && now >= self.heard + self.patience,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    /// Calls [`Liveness::check`] at each time that [`Liveness::next`] returns, up to `end`. Returns
    /// the number of heartbeats, and the time of death in seconds.
    fn looks(liveness: &mut Liveness, start: Instant, end: u64) -> (usize, Option<u64>) {
        let mut beats = 0;
        while let Some(next) = liveness.next().filter(|&next| next <= after(start, end)) {
            let outlook = liveness.check(next);
            beats += usize::from(outlook.beat);
            if outlook.is_dead {
                return (beats, Some((next - start).as_secs()));
            }
        }
        (beats, None)
    }

    #[test]
    fn silence_is_noticed_in_time_and_beats_are_sent() {
        let start = Instant::now();
        let mut liveness = Liveness::new(PATIENCE, start);
        assert_eq!(looks(&mut liveness, start, 100), (4, Some(30)));
    }

    #[test]
    fn any_byte_is_a_sign_of_life() {
        let start = Instant::now();
        let mut liveness = Liveness::new(PATIENCE, start);
        for second in 1..=50 {
            liveness.heard(after(start, second));
            assert_eq!(looks(&mut liveness, start, second).1, None);
        }
        assert_eq!(looks(&mut liveness, start, 100).1, Some(80));
    }

    #[test]
    fn an_announced_silence_has_no_end_but_beats_go_on() {
        let start = Instant::now();
        let mut liveness = Liveness::new(PATIENCE, start);
        liveness.suspend();
        let (beats, dead) = looks(&mut liveness, start, 3600);
        assert!(beats > 400 && dead.is_none(), "{beats} {dead:?}");
        liveness.heard(after(start, 3600));
        assert_eq!(looks(&mut liveness, start, 4000).1, Some(3630));
    }

    #[test]
    fn who_was_stopped_listens_again_before_it_judges() {
        let start = Instant::now();
        let mut liveness = Liveness::new(PATIENCE, start);
        let later = after(start, 500);
        assert_eq!(
            liveness.check(later),
            Outlook {
                beat: true,
                is_dead: false
            }
        );
        assert_eq!(looks(&mut liveness, later, 100).1, Some(30));
    }

    #[test]
    fn without_patience_nothing_is_due() {
        let start = Instant::now();
        let mut liveness = Liveness::new(Duration::ZERO, start);
        assert_eq!(liveness.next(), None);
        assert_eq!(liveness.check(after(start, 1000)), Outlook::default());
    }
}
