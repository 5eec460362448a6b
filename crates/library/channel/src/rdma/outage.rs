//! The time without any live link to a peer, and the decision that the peer is lost.
//!
//! Two clocks run. The peer is *silent* since its last sign ([`Signs`]): a host whose process
//! computes gives signs. Links *fail* while the peer answers and connections to it are made in
//! vain, as behind a firewall that passes datagrams only. The peer is lost when either exceeds the
//! user's patience. The module knows no device, and time is an argument.

use device::Signs;

/// The longest time before the peer's answer that counts as time of an attempt to connect a link
/// again, in nanoseconds: before that the peer may have computed.
const ATTEMPT: u64 = 2_000_000_000;
/// The longest time between two checks that counts as silence of the peer, in nanoseconds. In a
/// longer one this rank computed, or was stopped, and received nothing.
const BETWEEN_CHECKS: u64 = 2_000_000_000;
/// The time after which an outage is reported to the user, in nanoseconds. A shorter one is noise.
const REPORT_AFTER: u64 = 1_000_000_000;
/// The silence after which a peer that gives no sign is reported to the user, though no link has
/// failed, in nanoseconds. Its host is probed meanwhile.
const REPORT_SILENCE: u64 = 5_000_000_000;
/// The time for which the peer's host must refuse datagrams before the peer counts as dead, in
/// nanoseconds. A program that restarts a firewall refuses them for a short time.
const DEATH: u64 = 3_000_000_000;

/// The longest silence of a peer that does not count as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The longest silence in nanoseconds. `None`: there is no limit.
    pub silence: Option<u64>,
    /// True if a refusal by the peer's host is the death of the peer, because nobody else reports
    /// deaths.
    pub refusal_is_death: bool,
}

impl Patience {
    /// No patience: a peer is lost at once when no link to it works.
    pub const NONE: Patience = Patience {
        silence: Some(0),
        refusal_is_death: false,
    };
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            silence: Some(120_000_000_000),
            refusal_is_death: false,
        }
    }
}

/// The reason why a peer is given up as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The peer gave no sign of activity for longer than the patience.
    Silent,
    /// The peer answered, but no link to it worked for longer than the patience.
    Unusable,
    /// The peer's host reports that the process has ended.
    Dead,
}

/// A time in which no link to one peer works.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    began: u64,
    silent_since: u64,
    /// The time spent on attempts that the peer answered and that failed, in nanoseconds.
    failing: u64,
    /// The time at which the last attempt failed; before that, the beginning of the outage.
    attempted: u64,
    /// The time of the peer's answer to the present attempt to connect.
    answered: Option<u64>,
    /// The time of this rank's last check for the peer's signs of activity.
    checked: u64,
    /// The time since which the peer's host reports that the process has ended, if the patience
    /// accepts that as its death.
    refused: Option<u64>,
    reported: bool,
    answers_reported: bool,
}

impl Outage {
    /// An outage that begins at `now`.
    pub(super) fn begin(now: u64) -> Outage {
        Outage {
            began: now,
            silent_since: now,
            failing: 0,
            attempted: now,
            answered: None,
            checked: now,
            refused: None,
            reported: false,
            answers_reported: false,
        }
    }

    /// Records that the peer or its host gave a sign of activity at this time.
    pub(super) fn sign(&mut self, at: u64) {
        self.silent_since = self.silent_since.max(at);
    }

    /// Records that this rank checks for signs of the peer. A long time without a check is no
    /// silence of the peer.
    pub(super) fn check_signs(&mut self, now: u64) {
        let away = now
            .saturating_sub(self.checked)
            .saturating_sub(BETWEEN_CHECKS);
        self.silent_since = self.silent_since.saturating_add(away).min(now);
        self.checked = now;
    }

    /// Sets the time from which on no path has carried anything.
    pub(super) fn silent_from(&mut self, at: u64) {
        self.silent_since = at;
    }

    /// Records that the peer has answered an attempt to connect a link again.
    pub(super) fn answered(&mut self, now: u64) {
        self.sign(now);
        self.answered = Some(now);
    }

    /// Records that an attempt to connect a link again has failed. Its time counts if the peer had
    /// answered it.
    pub(super) fn attempt_failed(&mut self, now: u64) {
        if let Some(answered) = self.answered.take() {
            let from = self.attempted.max(answered.saturating_sub(ATTEMPT));
            self.failing += now.saturating_sub(from);
        }
        self.attempted = now;
    }

    /// The time at which the peer is lost unless it gives a sign before. `None`: never.
    pub(super) fn deadline(&self, patience: Patience) -> Option<u64> {
        let silence = |longest| self.silent_since.saturating_add(longest);
        [self.verdict_at(), patience.silence.map(silence)]
            .into_iter()
            .flatten()
            .min()
    }

    /// The time at which a peer whose host refuses datagrams counts as dead.
    fn verdict_at(&self) -> Option<u64> {
        self.refused.map(|since| since.saturating_add(DEATH))
    }

    /// The reason why the peer is lost at `now`, if it is.
    pub(super) fn loss(&mut self, signs: &Signs, patience: Patience, now: u64) -> Option<Loss> {
        if let Some(last) = signs.last {
            self.sign(last);
        }
        self.refused = signs.refused.filter(|_| patience.refusal_is_death);
        if self.verdict_at().is_some_and(|at| now >= at) {
            return Some(Loss::Dead);
        }
        let longest = patience.silence?;
        if self.failing >= longest && self.failing > 0 {
            return Some(Loss::Unusable);
        }
        let silent = now.saturating_sub(self.silent_since);
        (silent >= longest).then_some(Loss::Silent)
    }

    /// The time since the beginning of the outage, in nanoseconds.
    pub(super) fn lasts(&self, now: u64) -> u64 {
        now.saturating_sub(self.began)
    }

    /// True if a report to the user is due now; true only once. `is_cut_off`: no link works;
    /// otherwise the peer only gives no sign.
    pub(super) fn report_is_due(&mut self, is_cut_off: bool, now: u64) -> bool {
        let is_due = self.report_at(is_cut_off).is_some_and(|at| now >= at);
        self.reported |= is_due;
        is_due
    }

    /// True if the outage lasts longer than the patience, though the peer's host answers; true only
    /// once.
    pub(super) fn outlasts(&mut self, patience: Patience, now: u64) -> bool {
        let longest = patience.silence.unwrap_or(u64::MAX);
        let is_due = !self.answers_reported && self.lasts(now) >= longest;
        self.answers_reported |= is_due;
        is_due
    }

    /// True if the outage has been reported to the user.
    pub(super) fn was_reported(&self) -> bool {
        self.reported
    }

    /// The time at which a report to the user is due. `None`: it has been made. While the peer's
    /// host reports that the process has ended, the verdict comes first: a report about the paths
    /// would blame the network.
    pub(super) fn report_at(&self, is_cut_off: bool) -> Option<u64> {
        let at = match is_cut_off {
            true => self.began.saturating_add(REPORT_AFTER),
            false => self.silent_since.saturating_add(REPORT_SILENCE),
        };
        let at = self.verdict_at().map_or(at, |verdict| at.max(verdict));
        (!self.reported).then_some(at)
    }
}

/// The outages of a rank that have ended: their number and times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    /// The number of outages that have ended.
    pub count: u64,
    /// The total duration of the outages that have ended, in nanoseconds.
    pub nanos: u64,
}

impl Outages {
    /// Adds an outage that has ended after `nanos` nanoseconds.
    pub(super) fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.nanos += nanos;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn patience(seconds: u64) -> Patience {
        Patience {
            silence: Some(seconds * SECOND),
            ..Patience::default()
        }
    }

    fn signs(last: u64) -> Signs {
        Signs {
            last: Some(last),
            ..Signs::default()
        }
    }

    #[test]
    fn a_silent_peer_is_lost_after_the_patience_and_a_sign_restarts_it() {
        let mut outage = Outage::begin(SECOND);
        let none = Signs::default();
        let ten = patience(10);
        assert_eq!(outage.deadline(ten), Some(11 * SECOND));
        assert_eq!(outage.loss(&none, ten, 11 * SECOND - 1), None);
        assert_eq!(outage.loss(&signs(9 * SECOND), ten, 11 * SECOND), None);
        assert_eq!(outage.deadline(ten), Some(19 * SECOND));
        assert_eq!(outage.loss(&signs(2), ten, 19 * SECOND - 1), None);
        assert_eq!(outage.loss(&none, ten, 19 * SECOND), Some(Loss::Silent));
    }

    #[test]
    fn a_peer_that_computes_for_hours_is_not_lost() {
        let mut outage = Outage::begin(0);
        for hour in 1..5 {
            let now = hour * 3600 * SECOND;
            assert_eq!(outage.loss(&signs(now - SECOND), patience(2), now), None);
        }
    }

    #[test]
    fn the_time_of_a_rank_that_computes_is_no_silence_of_its_peer() {
        let none = Signs::default();
        let mut outage = Outage::begin(0);
        outage.check_signs(SECOND);
        // It makes no check for five minutes.
        outage.check_signs(301 * SECOND);
        assert_eq!(outage.loss(&none, patience(10), 301 * SECOND), None);
        let mut now = 301 * SECOND;
        while outage.loss(&none, patience(10), now).is_none() {
            now += SECOND;
            outage.check_signs(now);
        }
        assert_eq!(now, 308 * SECOND);
    }

    #[test]
    fn links_that_fail_though_the_peer_answers_end_the_patience() {
        let mut outage = Outage::begin(0);
        let mut now = 0;
        let mut found = None;
        while found.is_none() && now < 100 * SECOND {
            now += SECOND;
            outage.answered(now);
            outage.attempt_failed(now + SECOND / 2);
            found = outage.loss(&signs(now), patience(10), now + SECOND / 2);
        }
        assert_eq!(found, Some(Loss::Unusable));
        assert!((9 * SECOND..=11 * SECOND).contains(&now), "{now}");
    }

    #[test]
    fn the_time_before_an_answer_does_not_count_as_failing() {
        let mut outage = Outage::begin(0);
        // The peer computed for a minute; then the connection was made in vain once.
        outage.answered(60 * SECOND);
        outage.attempt_failed(61 * SECOND);
        assert_eq!(
            outage.loss(&Signs::default(), patience(10), 62 * SECOND),
            None
        );
        // Nobody has answered these.
        (62..70).for_each(|at| outage.attempt_failed(at * SECOND));
        assert_eq!(outage.failing, 3 * SECOND);
    }

    #[test]
    fn no_patience_gives_up_at_once_and_endless_patience_never() {
        let mut outage = Outage::begin(5);
        assert_eq!(
            outage.loss(&Signs::default(), patience(0), 5),
            Some(Loss::Silent)
        );
        let endless = Patience {
            silence: None,
            refusal_is_death: false,
        };
        assert_eq!(outage.deadline(endless), None);
        assert_eq!(outage.loss(&Signs::default(), endless, u64::MAX), None);
    }

    #[test]
    fn a_cut_that_is_known_counts_from_its_beginning() {
        let mut outage = Outage::begin(3 * SECOND);
        outage.silent_from(SECOND);
        assert_eq!(outage.deadline(patience(10)), Some(11 * SECOND));
    }

    #[test]
    fn a_refusal_is_a_death_only_where_nobody_else_reports_deaths() {
        let refused = Signs {
            refused: Some(SECOND),
            ..Signs::default()
        };
        let mut outage = Outage::begin(0);
        let now = SECOND + DEATH;
        assert_eq!(outage.loss(&refused, patience(60), now), None);
        let alone = Patience {
            refusal_is_death: true,
            ..patience(60)
        };
        assert_eq!(outage.loss(&refused, alone, now - 1), None);
        assert_eq!(outage.loss(&refused, alone, now), Some(Loss::Dead));
    }

    #[test]
    fn a_verdict_that_is_due_soon_delays_the_report_and_ends_the_sleep() {
        let alone = Patience {
            refusal_is_death: true,
            ..patience(60)
        };
        let refused = Signs {
            refused: Some(SECOND / 2),
            ..Signs::default()
        };
        let mut outage = Outage::begin(0);
        assert_eq!(outage.loss(&refused, alone, SECOND), None);
        assert!(!outage.report_is_due(true, REPORT_AFTER));
        assert_eq!(outage.deadline(alone), Some(SECOND / 2 + DEATH));
        // The host refused for a short time only: the paths are reported after all.
        assert_eq!(outage.loss(&Signs::default(), alone, 2 * SECOND), None);
        assert!(outage.report_is_due(true, 2 * SECOND));
        assert_eq!(outage.deadline(alone), Some(60 * SECOND));
    }

    #[test]
    fn the_user_is_told_once_and_not_of_a_hiccup() {
        let mut outage = Outage::begin(0);
        assert!(!outage.report_is_due(true, REPORT_AFTER - 1) && !outage.was_reported());
        assert_eq!(outage.report_at(true), Some(REPORT_AFTER));
        assert!(outage.report_is_due(true, REPORT_AFTER) && outage.was_reported());
        assert!(!outage.report_is_due(true, 2 * REPORT_AFTER));
        assert_eq!((outage.report_at(true), outage.lasts(7)), (None, 7));
    }

    #[test]
    fn the_user_is_told_of_a_peer_that_is_silent_and_not_of_one_that_computes() {
        let mut outage = Outage::begin(0);
        outage.sign(SECOND);
        assert!(!outage.report_is_due(false, SECOND + REPORT_SILENCE - 1));
        outage.sign(3 * SECOND);
        assert!(!outage.report_is_due(false, SECOND + REPORT_SILENCE));
        assert!(outage.report_is_due(false, 3 * SECOND + REPORT_SILENCE));
    }
}
