//! The policies that choose links without predictions: `single`, `stripe`, `round-robin` and
//! `fixed`.

use super::assignment::Shares;
use super::links::Links;
use super::split::single;
use crate::rdma::config::RailSettings;
use crate::rdma::rail_set::MAX_RAILS;
use knobs::RailPolicy;

/// A policy that chooses links without predictions.
#[derive(Clone)]
pub(super) struct StaticPolicy {
    policy: RailPolicy,
    stripe_above: u64,
    local_rank: usize,
    /// The position among the live links of the next one that `round-robin` uses.
    turn: usize,
}

impl StaticPolicy {
    pub(super) fn new(settings: &RailSettings) -> StaticPolicy {
        StaticPolicy {
            policy: settings.policy,
            stripe_above: settings.stripe_above as u64,
            local_rank: settings.local_rank,
            turn: 0,
        }
    }

    /// The link that carries the next packet.
    #[inline]
    pub(super) fn packet(&mut self, links: &Links) -> usize {
        match self.policy {
            RailPolicy::RoundRobin => self.next_in_turn(links),
            RailPolicy::Fixed => self.fixed(links),
            _ => links.home(),
        }
    }

    /// The bytes that each link gets of a transfer of `len` bytes.
    pub(super) fn shares(&mut self, links: &Links, len: u64) -> Shares {
        let cuts = matches!(self.policy, RailPolicy::Stripe | RailPolicy::RoundRobin);
        if cuts && len > self.stripe_above {
            return equal_shares(links, len);
        }
        single(self.packet(links), len)
    }

    fn next_in_turn(&mut self, links: &Links) -> usize {
        let link = nth_live(links, self.turn);
        self.turn = (self.turn + 1) % links.live().max(1);
        link
    }

    /// The link that the rank's number on its host selects. If that link is dead: one of the
    /// others.
    fn fixed(&self, links: &Links) -> usize {
        let dealt = self.local_rank % links.all.len();
        match links.alive.contains(dealt) {
            true => dealt,
            false => nth_live(links, self.local_rank),
        }
    }
}

/// The live link at position `turn`, modulo the number of live links.
fn nth_live(links: &Links, turn: usize) -> usize {
    let live = links.live().max(1);
    links.alive.iter().nth(turn % live).unwrap_or(links.home())
}

/// Shares whose lengths differ by a byte at most, the longer ones first.
pub(super) fn equal_shares(links: &Links, len: u64) -> Shares {
    let live = links.live().max(1) as u64;
    let mut shares = [0; MAX_RAILS];
    for (position, link) in links.alive.iter().enumerate() {
        shares[link] = len / live + u64::from((position as u64) < len % live);
    }
    shares
}
