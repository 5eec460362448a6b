//! Signs of life between launcher and agent.
//!
//! Each end sends a beat several times within its patience, and declares the other dead after this
//! time without a byte. Time is an argument, so tests do not wait.
//!
//! Invariant: a process that was itself stopped judges nobody by the time it missed.

use std::time::{Duration, Instant};

/// The beats within the patience.
pub(super) const BEATS: u32 = 4;

/// The view that one end has of the other.
#[derive(Debug, Clone)]
pub(crate) struct Liveness {
    /// The longest silence. Zero: for ever.
    patience: Duration,
    heard: Instant,
    spoken: Instant,
    looked: Instant,
    /// Whether the other end has announced its silence.
    is_suspended: bool,
}

/// The result of a look at the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Outlook {
    /// Whether a beat is due.
    pub beat: bool,
    /// Whether the other end has been silent for too long.
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

    /// The longest silence.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Bytes of the other end have arrived.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard = now;
        self.is_suspended = false;
    }

    /// The other end has announced that it will be silent until it speaks again.
    pub(crate) fn suspend(&mut self) {
        self.is_suspended = true;
    }

    /// The time of the next look.
    pub(crate) fn next(&self) -> Option<Instant> {
        let beat = self.spoken + self.patience / BEATS;
        let end = self.heard + self.patience;
        match (self.patience.is_zero(), self.is_suspended) {
            (true, _) => None,
            (false, true) => Some(beat),
            (false, false) => Some(beat.min(end)),
        }
    }

    /// What is due at `now`.
    pub(crate) fn look(&mut self, now: Instant) -> Outlook {
        if self.patience.is_zero() {
            return Outlook::default();
        }
        // Looks come at every beat. After a longer gap this process was stopped, and what the other
        // end has sent meanwhile may not have been read yet.
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

    /// Looks at each time that `liveness` asks for, up to `end`. Returns the beats, and the time of
    /// death in seconds.
    fn looks(liveness: &mut Liveness, start: Instant, end: u64) -> (usize, Option<u64>) {
        let mut beats = 0;
        while let Some(next) = liveness.next().filter(|&next| next <= after(start, end)) {
            let outlook = liveness.look(next);
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
            liveness.look(later),
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
        assert_eq!(liveness.look(after(start, 1000)), Outlook::default());
    }
}
