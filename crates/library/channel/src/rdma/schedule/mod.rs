//! The choice of links for the packets and bulk transfers of an endpoint with several links.
//!
//! Each flow has a [`Schedule`], which is pure: it knows no device, and time is an argument. The
//! same calls give the same choices.
//! - `static_policy`: `single`, `stripe`, `round-robin` and `fixed`, which never read the clock;
//! - `adaptive`: the choice by predicted arrival; `split`: the shares of one transfer;
//! - `links`: the links of an endpoint; `link_state`: the work posted on one of them;
//!   `estimate`: the bandwidth learned from completions; `slot`: the total of links that share a
//!   card;
//! - `assignment`: the links of the next bytes of a transfer;
//! - `pace`: the time of packets with few readings of the clock;
//! - `explain`: predictions for the user.
//!
//! Invariants:
//! - shares sum to the bytes to be assigned, and only live links get any;
//! - a link is given at most `HORIZON` of predicted work, or that of some round trips, beyond one
//!   shortest piece, so that a slow link can be left;
//! - [`Assignment::Wait`] is given only while a live link has bulk work, whose completion ends the
//!   wait.

mod adaptive;
mod assignment;
mod estimate;
mod explain;
mod link_state;
mod links;
mod pace;
mod slot;
mod split;
mod static_policy;
#[cfg(test)]
mod tests;

pub(super) use explain::{Choice, Prediction};

use super::config::RailSettings;
use super::flow::Flow;
use adaptive::Adaptive;
use assignment::SHORTEST_PIECE;
pub(super) use assignment::{Assignment, Shares};
use knobs::RailPolicy;
pub(super) use link_state::LinkTraits;
use links::Links;
use static_policy::StaticPolicy;

/// The schedules of an endpoint: one for each flow. Writes and reads of this rank do not share the
/// bandwidth of a link, so neither counts as work of the other.
pub(super) struct Schedules {
    /// The schedule of packets and writes.
    pub out: Schedule,
    /// The schedule of reads.
    incoming: Schedule,
}

impl Schedules {
    /// The schedules over `links`.
    pub(super) fn new(settings: &RailSettings, links: &[LinkTraits]) -> Schedules {
        Schedules {
            out: Schedule::new(settings, links),
            incoming: Schedule::new(settings, links),
        }
    }

    /// The schedule for the transfers of a flow: writes or reads.
    #[inline]
    pub(super) fn of(&mut self, flow: Flow) -> &mut Schedule {
        match flow {
            Flow::Out => &mut self.out,
            Flow::In => &mut self.incoming,
        }
    }

    /// Adds a link to those in use, or removes it together with all work posted on it.
    pub(super) fn set_alive(&mut self, link: usize, alive: bool) {
        self.out.set_alive(link, alive);
        self.incoming.set_alive(link, alive);
    }
}

/// The schedule of one flow of an endpoint: for the bytes that this rank writes, or for those that
/// it reads.
pub(super) struct Schedule {
    links: Links,
    policy: Policy,
}

/// The policy of a schedule, with the state of the policy.
enum Policy {
    Static(StaticPolicy),
    Adaptive(Adaptive),
}

impl Schedule {
    /// The schedule over `links`. One of them is the home link: the link of control messages. It is
    /// the first one, or with `adaptive` the one on which a short packet arrives first.
    pub(super) fn new(settings: &RailSettings, links: &[LinkTraits]) -> Schedule {
        let mut links = Links::new(links);
        let policy = match settings.policy {
            RailPolicy::Adaptive => {
                links.home_by_arrival();
                Policy::Adaptive(Adaptive::new(settings.queue_pairs))
            }
            _ => Policy::Static(StaticPolicy::new(settings)),
        };
        Schedule { links, policy }
    }

    /// The link for the next packet, of `len` bytes. `now` is called only if the policy needs the
    /// time, in nanoseconds.
    #[inline]
    pub(super) fn packet(&mut self, len: usize, now: impl FnOnce() -> u64) -> usize {
        match &mut self.policy {
            Policy::Static(policy) => policy.packet(&self.links),
            Policy::Adaptive(policy) => policy.packet(&mut self.links, len, now),
        }
    }

    /// The link for `len` bytes of coalesced packets. `now` as for [`packet`](Schedule::packet).
    pub(super) fn coalesced(&mut self, len: usize, now: impl FnOnce() -> u64) -> usize {
        match &mut self.policy {
            Policy::Static(policy) => policy.packet(&self.links),
            Policy::Adaptive(policy) => policy.coalesced(&mut self.links, len, now),
        }
    }

    /// Records that the rank has waited, or has polled in vain: packets posted earlier are no
    /// backlog.
    #[inline]
    pub(super) fn idle(&mut self) {
        if let Policy::Adaptive(policy) = &mut self.policy {
            policy.idle();
        }
    }

    /// The links for the next bytes of a bulk transfer of which `left` bytes are not assigned yet.
    pub(super) fn assign(&mut self, left: u64, now: u64) -> Assignment {
        match &mut self.policy {
            Policy::Static(policy) => Assignment::Final(policy.shares(&self.links, left)),
            Policy::Adaptive(policy) => policy.assign(&self.links, left, now),
        }
    }

    /// Records that `bytes` of bulk work have been posted on `link`.
    pub(super) fn posted(&mut self, link: usize, bytes: u64, now: u64) {
        self.links.all[link].posted(bytes, now);
    }

    /// Records that `bytes` of bulk work on `link` have completed, at most `late` nanoseconds
    /// before `now`. `None`: at an unknown time.
    pub(super) fn completed(&mut self, link: usize, bytes: u64, now: u64, late: Option<u64>) {
        self.links.completed(link, bytes, now, late);
        if let Policy::Adaptive(_) = self.policy {
            self.links.learn();
        }
    }

    /// The number of bytes of bulk work that `link` may be given now.
    pub(super) fn room(&self, link: usize) -> u64 {
        match self.links.all.len() {
            1 => u64::MAX,
            _ => self.links.room(link),
        }
    }

    /// The longest piece, of `left` bytes assigned to `link`, that may be posted now. 0: none.
    /// Bytes that exceed the link's room are cut into several pieces, so that the link never idles
    /// between two of them.
    pub(super) fn piece(&self, link: usize, left: u64) -> u64 {
        let room = self.room(link);
        let part = (self.links.all[link].horizon() / 4).max(SHORTEST_PIECE);
        match left <= room {
            true => left,
            false if room >= part => part,
            false => 0,
        }
    }

    /// Adds a link to those in use, or removes it together with all work posted on it.
    pub(super) fn set_alive(&mut self, link: usize, alive: bool) {
        self.links.set_alive(link, alive);
        if let Policy::Adaptive(policy) = &mut self.policy {
            policy.links_changed(&self.links);
        }
    }

    /// The home link, which control messages use and which is live.
    #[inline]
    pub(super) fn home(&self) -> usize {
        self.links.home()
    }

    /// Predictions for a message of `len` bytes on an idle endpoint. The choice of the policy comes
    /// first.
    pub(super) fn explain(&self, len: u64) -> Vec<Prediction> {
        let links = self.links.idle();
        let taken = match &self.policy {
            Policy::Static(policy) => Some(policy.clone().shares(&links, len)),
            Policy::Adaptive(_) => None,
        };
        explain::predictions(&links, taken, len)
    }

    /// The resource that bounds long messages with these shares, if the schedule can name it.
    pub(super) fn limit(&self, shares: &Shares) -> Option<&'static str> {
        explain::limit(&self.links, shares)
    }
}
