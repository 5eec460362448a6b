//! Predictions for the user: the choice of a policy, and the choices not taken.

use super::assignment::Shares;
use super::links::Links;
use super::split;
use super::static_policy::equal_shares;
use crate::rdma::rail_set::{MAX_RAILS, RailSet};

/// A choice of links for one message, of several possible ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rdma) enum Choice {
    /// The whole message on one link.
    Link(usize),
    /// Equal parts over all links.
    EvenStripe,
    /// Parts of unequal length, which arrive at the same time.
    Split,
}

/// A choice of links, with the arrival of the message that it leads to.
#[derive(Clone, Copy, Debug)]
pub(in crate::rdma) struct Prediction {
    pub choice: Choice,
    /// The bytes of each link.
    pub shares: Shares,
    /// The time from the post to the arrival of the last byte, in nanoseconds.
    pub arrival_ns: u64,
}

/// The predictions for a message of `len` bytes on idle links, the choice of the policy first.
/// `taken`: the choice of a static policy. `None`: the policy is adaptive, and takes the split that
/// ends first.
pub(super) fn predictions(links: &Links, taken: Option<Shares>, len: u64) -> Vec<Prediction> {
    let split = split::best(links, len, 0);
    let mut choices: Vec<Shares> = vec![taken.unwrap_or(split.shares)];
    let singles = links.alive.iter().map(|link| split::single(link, len));
    for shares in singles.chain([equal_shares(links, len), split.shares]) {
        if !choices.contains(&shares) {
            choices.push(shares);
        }
    }
    let prediction = |shares: Shares| Prediction {
        choice: name(links, &shares, len),
        shares,
        arrival_ns: arrival(links, &shares),
    };
    choices.into_iter().map(prediction).collect()
}

fn name(links: &Links, shares: &Shares, len: u64) -> Choice {
    let mut used = (0..MAX_RAILS).filter(|&link| shares[link] > 0);
    match (used.next(), used.next()) {
        (None, _) => Choice::Link(links.home()),
        (Some(link), None) => Choice::Link(link),
        _ if *shares == equal_shares(links, len) => Choice::EvenStripe,
        _ => Choice::Split,
    }
}

/// The time until the last of `shares` arrives if they are posted one after the other, in
/// nanoseconds.
fn arrival(links: &Links, shares: &Shares) -> u64 {
    let used = links.alive.iter().filter(|&link| shares[link] > 0);
    let used = used.fold(RailSet::default(), RailSet::with);
    let bandwidths = links.bandwidths(used);
    let arrives = |(position, link): (usize, usize)| {
        let time = shares[link] as f64 / bandwidths[link] * 1e9;
        let sent = position as f64 * split::NEXT_LINK + time;
        (sent as u64).saturating_add(links.all[link].latency)
    };
    let last = used.iter().enumerate().map(arrives).max();
    last.unwrap_or(links.all[links.home()].latency)
}

/// The resource that bounds long messages with these shares: a card's slot that several links share
/// and fill, or a link that carries less than its device states, so that something else bounds it.
pub(super) fn limit(links: &Links, shares: &Shares) -> Option<&'static str> {
    let used = links.alive.iter().filter(|&link| shares[link] > 0);
    let used = used.fold(RailSet::default(), RailSet::with);
    let bandwidths = links.bandwidths(used);
    let alone = |link: usize| links.all[link].estimate.bandwidth() as f64;
    if used
        .iter()
        .any(|link| bandwidths[link] < 0.95 * alone(link))
    {
        return Some("slot");
    }
    let is_slow = |link: usize| alone(link) < 0.9 * links.all[link].stated as f64;
    let slow = used.iter().filter(|&link| is_slow(link)).count();
    let used = used.iter().count();
    match slow {
        0 => Some("link"),
        _ if used == 1 => Some("a rail below its stated rate"),
        // All links are slow: what they share is the host.
        _ if slow == used => Some("memory or bus"),
        // Rails behind one bus may take unequal parts of it.
        _ => Some("a rail below its stated rate, or memory or bus"),
    }
}
