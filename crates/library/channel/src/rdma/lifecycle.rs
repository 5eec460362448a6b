//! The lifecycle of a link: from its first use to its failure, and back.
//!
//! ```text
//!         a request fails, or          own queue pairs        the peer's fence has
//!         the peer's fence comes       are drained            come, all is replayed
//! Live ------------------> Draining -------------> Fenced ------------------> Dead
//!  ^                     ^                                                     |
//!  |  three probes of    | a probe        queue pairs                          |  back-off
//!  |  either end         | fails         are connected                         v
//!  +------------------- Probing <---------------------------------------- Joining
//! ```
//!
//! Both ends of a link fence it together. The *epoch* counts how often the link has been connected;
//! messages about another epoch than the present one are stale and change nothing. The end with the
//! lower rank tries to take a dead link back. Its probes come first; then the other end probes,
//! because the answers may be lost in one direction only.
//!
//! Invariants:
//! - nothing is posted on a link that is not live, except the marker that shows that a queue pair
//!   is drained, and probes;
//! - what a dead link carried is posted on another one only after both ends have been drained: no
//!   write of the earlier epoch can arrive behind a replay.

use super::fence::Fence;

/// The number of probes that must succeed before a link is used again.
const PROBES: u32 = 3;
/// The time from the death of a link to the first attempt to connect it again, in nanoseconds.
const FIRST_RETRY: u64 = 50_000_000;
/// The longest time between two attempts to connect a dead link while other links work, in
/// nanoseconds.
const LAST_RETRY: u64 = 6_400_000_000;
/// The longest time between two attempts to connect a dead link while no link works, in
/// nanoseconds.
const LAST_PATH_RETRY: u64 = 400_000_000;
/// A link that was live for longer than this time starts with the shortest back-off again, in
/// nanoseconds.
const STABLE: u64 = 10_000_000_000;

/// The stage of a link in its lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifeStage {
    /// The link carries what the schedule gives it.
    Live,
    /// The queue pairs are in ERROR, and their last completions are being polled.
    Draining,
    /// This end is drained and has sent the peer its fence.
    Fenced,
    /// The link is dead: both ends are drained.
    Dead,
    /// The link is being revived: the peer has been asked to connect again.
    Joining,
    /// The queue pairs are connected again. Counts the probes that have succeeded.
    Probing(u32),
    /// The peer is lost, and the queue pairs are gone.
    Ended,
}

/// The stage of one link at this end, with its epoch and the fence of the peer.
#[derive(Debug)]
pub(super) struct Lifecycle {
    stage: LifeStage,
    epoch: u32,
    /// The peer's fence of this epoch, if it has arrived.
    fence: Option<Fence>,
    /// The time at which the link became live, or at which it is tried again, in nanoseconds.
    since: u64,
    backoff: u64,
    /// True if this end, and not the peer, began the present epoch.
    asked: bool,
}

/// The next step of a link after a probe of this end has arrived, or the peer's have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeStep {
    /// Send the probes of this end.
    Probe,
    /// All probes of this end have arrived: report this to the peer, whose probes follow.
    PeersTurn,
    /// The probes of both ends have arrived: the link is live.
    Live,
    /// No step: the message or probe belongs to an earlier epoch.
    Stale,
}

impl Lifecycle {
    /// A link in its first epoch, which is live.
    pub(super) fn new() -> Lifecycle {
        Lifecycle {
            stage: LifeStage::Live,
            epoch: 0,
            fence: None,
            since: 0,
            backoff: FIRST_RETRY,
            asked: false,
        }
    }

    pub(super) fn stage(&self) -> LifeStage {
        self.stage
    }

    #[inline(always)]
    pub(super) fn is_live(&self) -> bool {
        self.stage == LifeStage::Live
    }

    /// True if both ends are drained and the link does not work again yet.
    pub(super) fn is_dead(&self) -> bool {
        matches!(
            self.stage,
            LifeStage::Dead | LifeStage::Joining | LifeStage::Probing(_)
        )
    }

    /// True if the queue pairs of the link are connected, so that the peer may use it.
    pub(super) fn is_connected(&self) -> bool {
        matches!(self.stage, LifeStage::Live | LifeStage::Probing(_))
    }

    /// The number of the link's present epoch.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Records that a request has failed. True: the link is to be drained now.
    pub(super) fn fail(&mut self) -> bool {
        let begins = matches!(
            self.stage,
            LifeStage::Live | LifeStage::Joining | LifeStage::Probing(_)
        );
        if begins {
            self.stage = LifeStage::Draining;
        }
        begins
    }

    /// Records the peer's fence. True: it belongs to this epoch, and is kept.
    pub(super) fn on_fence(&mut self, fence: Fence) -> bool {
        let is_over = matches!(self.stage, LifeStage::Dead | LifeStage::Ended);
        let is_current = fence.epoch == self.epoch && !is_over;
        if is_current {
            self.fence = Some(fence);
        }
        is_current
    }

    /// Records that this end is drained and sends its fence.
    pub(super) fn drained(&mut self) {
        debug_assert_eq!(self.stage, LifeStage::Draining);
        self.stage = LifeStage::Fenced;
    }

    /// Makes the link dead if both ends are drained, and returns the peer's fence. Attempts to
    /// connect it again follow from `now` on, sooner if the link is the `last` one.
    pub(super) fn bury(&mut self, now: u64, last: bool) -> Option<Fence> {
        if self.stage != LifeStage::Fenced {
            return None;
        }
        let fence = self.fence.take()?;
        if now.saturating_sub(self.since) > STABLE {
            self.backoff = FIRST_RETRY;
        }
        if last {
            self.backoff = self.backoff.min(LAST_PATH_RETRY);
        }
        self.rest(now);
        Some(fence)
    }

    /// Records that the peer is lost and the queue pairs are gone.
    pub(super) fn end(&mut self) {
        self.stage = LifeStage::Ended;
        self.fence = None;
    }

    /// Makes the link dead until the next attempt, and doubles the time to the one after it.
    fn rest(&mut self, now: u64) {
        self.stage = LifeStage::Dead;
        self.since = now.saturating_add(self.backoff);
        self.backoff = (2 * self.backoff).min(LAST_RETRY);
    }

    /// The time of the next attempt to connect the link again. `None`: the link is not dead, or an
    /// attempt is in progress.
    pub(super) fn retry_at(&self) -> Option<u64> {
        // Out-of-band messages are not lost: the answer to an attempt is certain to come.
        (self.stage == LifeStage::Dead).then_some(self.since)
    }

    /// Makes the next attempt to connect due at once, because the port works again.
    pub(super) fn hurry(&mut self, now: u64) {
        if self.stage == LifeStage::Dead {
            self.since = self.since.min(now);
            self.backoff = FIRST_RETRY;
        }
    }

    /// Begins a new epoch: this end asks the peer to connect the link again.
    pub(super) fn join(&mut self) {
        self.stage = LifeStage::Joining;
        self.asked = true;
        self.epoch += 1;
    }

    /// Handles the peer's request to connect the link again in epoch `epoch`. True: this end
    /// connects again.
    pub(super) fn on_join(&mut self, epoch: u32) -> bool {
        let accepted = self.stage == LifeStage::Dead && epoch > self.epoch;
        if accepted {
            self.epoch = epoch;
            self.asked = false;
            self.stage = LifeStage::Probing(0);
        }
        accepted
    }

    /// Records that the peer has connected its end for epoch `epoch`. True: this end connects too,
    /// and probes.
    pub(super) fn on_joined(&mut self, epoch: u32) -> bool {
        let accepted = self.stage == LifeStage::Joining && epoch == self.epoch;
        if accepted {
            self.stage = LifeStage::Probing(0);
        }
        accepted
    }

    /// Records that a probe of this end has arrived. Returns the next step.
    pub(super) fn probed(&mut self, now: u64) -> ProbeStep {
        let LifeStage::Probing(probes) = self.stage else {
            return ProbeStep::Stale;
        };
        self.stage = LifeStage::Probing(probes + 1);
        match (probes + 1 == PROBES, self.asked) {
            (false, _) => ProbeStep::Probe,
            (true, true) => ProbeStep::PeersTurn,
            (true, false) => {
                self.revive(now);
                ProbeStep::Live
            }
        }
    }

    /// Records that the peer's probes in epoch `epoch` have arrived. Returns the next step.
    pub(super) fn on_alive(&mut self, epoch: u32, now: u64) -> ProbeStep {
        match self.stage {
            LifeStage::Probing(0) if epoch == self.epoch && !self.asked => ProbeStep::Probe,
            LifeStage::Probing(PROBES) if epoch == self.epoch && self.asked => {
                self.revive(now);
                ProbeStep::Live
            }
            _ => ProbeStep::Stale,
        }
    }

    fn revive(&mut self, now: u64) {
        self.stage = LifeStage::Live;
        self.fence = None;
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(epoch: u32) -> Fence {
        Fence {
            epoch,
            ..Fence::default()
        }
    }

    #[test]
    fn a_link_is_dead_only_when_both_ends_are_drained() {
        let mut link = Lifecycle::new();
        assert!(link.fail() && !link.fail());
        assert!(!link.on_fence(fence(1)), "of another life");
        assert!(link.bury(5, false).is_none());
        assert!(link.on_fence(fence(0)));
        assert!(link.bury(5, false).is_none(), "this end is not drained");
        link.drained();
        assert!(link.bury(5, false).is_some());
        assert_eq!(link.stage(), LifeStage::Dead);
        assert!(!link.on_fence(fence(0)), "a repetition");
    }

    #[test]
    fn a_dead_link_comes_back_after_three_probes_in_a_new_life() {
        let dead = |now| {
            let mut link = Lifecycle::new();
            link.fail();
            link.drained();
            link.on_fence(fence(0));
            link.bury(now, false).unwrap();
            link
        };
        let (mut a, mut b) = (dead(0), dead(0));
        assert_eq!(a.retry_at(), Some(FIRST_RETRY));
        a.join();
        assert_eq!(a.retry_at(), None, "the answer comes");
        assert!(b.on_join(a.epoch()) && !b.on_join(a.epoch()));
        assert!(a.on_joined(b.epoch()));
        use ProbeStep::{Live, PeersTurn, Probe, Stale};
        let probes = [0; 3].map(|now| a.probed(now));
        assert_eq!(probes, [Probe, Probe, PeersTurn]);
        assert_eq!(b.on_alive(0, 0), Stale, "of the earlier life");
        assert_eq!(b.on_alive(1, 0), Probe);
        assert!(!a.is_live() && !b.is_live(), "one direction may be dead");
        assert_eq!([0; 3].map(|now| b.probed(now)), [Probe, Probe, Live]);
        assert_eq!((a.on_alive(1, 0), b.probed(0)), (Live, Stale));
        assert!(a.is_live() && b.is_live());
        assert!(!b.on_fence(fence(0)), "a stale fence");
        assert!(b.on_fence(fence(1)));
    }

    #[test]
    fn attempts_become_rare_and_a_working_port_hurries_them() {
        let mut link = Lifecycle::new();
        link.fail();
        link.drained();
        link.on_fence(fence(0));
        link.bury(0, false).unwrap();
        let mut now = link.retry_at().unwrap();
        let mut gap = FIRST_RETRY;
        for _ in 0..12 {
            link.join();
            assert!(link.on_joined(link.epoch()) && link.fail());
            link.drained();
            assert!(link.on_fence(fence(link.epoch())));
            link.bury(now, false).unwrap();
            let next = link.retry_at().unwrap();
            assert!(next - now >= gap && next - now <= LAST_RETRY);
            (gap, now) = (next - now, next);
        }
        assert_eq!(gap, LAST_RETRY);
        link.hurry(now);
        assert_eq!(link.retry_at(), Some(now));
    }

    #[test]
    fn the_last_link_is_tried_often_and_that_of_a_lost_peer_never() {
        let mut link = Lifecycle::new();
        let mut now = 0;
        for _ in 0..12 {
            assert!(link.fail());
            link.drained();
            assert!(link.on_fence(fence(link.epoch())));
            link.bury(now, true).unwrap();
            let next = link.retry_at().unwrap();
            assert!(next - now <= LAST_PATH_RETRY);
            now = next;
            link.join();
            assert!(link.on_joined(link.epoch()));
        }
        link.end();
        link.hurry(now);
        assert!(link.retry_at().is_none() && !link.fail() && !link.on_fence(fence(link.epoch())));
        assert!(!link.on_join(link.epoch() + 1) && !link.is_connected());
    }
}
