//! The schedule of trials: from time to time some messages of a class take another path than the
//! chosen one, so that both can be compared again.
//!
//! Invariant: the pauses between trials double up to a bound, so a class of few messages tries
//! little, and a path that has become better is found.

use super::path_cost::{KEPT, LOSS, TRIED};

/// Number of messages by the expected path before the first trial of another one: as many as times
/// are kept.
const FIRST_PAUSE: u32 = KEPT as u32;
/// Number of messages before the next trial where the costs of all paths are known: a trial of a
/// path that takes three times as long loses the share 1 / [`LOSS`] of their time.
const PAUSE: u32 = 2 * TRIED * LOSS as u32;
/// Least number of messages between the replacement of a path and the next trial: a trial of a path
/// that takes half as long again loses the share 1 / [`LOSS`] of their time.
const PAUSE_AFTER_CHANGE: u32 = PAUSE / 4;
/// The greatest number of messages between two trials: a trial of a path that takes nine times as
/// long loses the share 1 / [`LOSS`] of their time.
pub(super) const LONGEST_PAUSE: u32 = 4 * PAUSE;

/// The trials of one class of messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trials {
    /// Number of messages by the chosen path since the last trial, or since the beginning.
    since: u32,
    /// Least number of messages between two trials. It doubles with each.
    pause: u32,
    /// Number of messages that the trial in progress still takes.
    left: u32,
}

impl Default for Trials {
    fn default() -> Trials {
        Trials::after(FIRST_PAUSE)
    }
}

impl Trials {
    fn after(pause: u32) -> Trials {
        let (since, left) = (0, 0);
        Trials { since, pause, left }
    }

    /// The trials of paths whose costs are all known.
    pub(super) fn of_known() -> Trials {
        Trials::after(PAUSE)
    }

    /// Records that a path has replaced the chosen one.
    pub(super) fn replaced(&mut self) {
        (self.since, self.left) = (0, 0);
        self.pause = self.pause.max(PAUSE_AFTER_CHANGE);
    }

    /// True if the next message takes a path on trial. `begins`: true if a trial may begin after
    /// this number of messages by the chosen path.
    pub(super) fn next(&mut self, begins: impl FnOnce(u32) -> bool) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return true;
        }
        let begins = self.since >= self.pause && begins(self.since);
        if begins {
            let pause = (2 * self.pause).min(LONGEST_PAUSE);
            (self.since, self.pause, self.left) = (0, pause, TRIED - 1);
        } else {
            self.since = self.since.saturating_add(1);
        }
        begins
    }

    /// True if the next message takes the second of two paths, neither of which is chosen yet: they
    /// take turns of [`TRIED`] messages.
    pub(super) fn next_by_turns(&mut self) -> bool {
        let turn = self.since / TRIED;
        self.since = self.since.wrapping_add(1);
        !turn.is_multiple_of(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_trials_wait_for_their_loss() {
        let mut trials = Trials::of_known();
        let mut pause = |by_loss| {
            let pause = (0..).position(|_| trials.next(|since| since >= by_loss));
            let of_trial = (1..TRIED).filter(|_| trials.next(|_| false)).count();
            (pause.unwrap() as u32, of_trial as u32 + 1)
        };
        let pauses = [0, 700, 0, 0].map(&mut pause);
        assert_eq!(pauses, [256, 700, 1024, 1024].map(|pause| (pause, TRIED)));
    }

    #[test]
    fn paths_take_turns_until_one_is_chosen() {
        let mut trials = Trials::default();
        let second = (0..8 * TRIED).filter(|_| trials.next_by_turns());
        assert_eq!(second.count() as u32, 4 * TRIED);
    }
}
