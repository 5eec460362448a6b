//! The split of one transfer over links, such that all of them end together.

use super::assignment::{SHORTEST_PIECE, Shares};
use super::links::Links;
use crate::rdma::rail_set::{MAX_RAILS, RailSet};

/// The time from the post on one link to the post on the next, in nanoseconds: 300 of processor
/// time for a request and its completion, and 30 for another queue pair.
pub(super) const NEXT_LINK: f64 = 330.0;
/// The time from a post on the home link to the next one there, with a post on another link between
/// them, in nanoseconds.
const THERE_AND_BACK: f64 = 2.0 * NEXT_LINK;
/// A further link must end the transfer sooner by at least the transfer's time divided by this
/// number: a smaller gain is within the error of the estimates.
const LEAST_GAIN: f64 = 64.0;

/// A split of a transfer over links, and its predicted end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    pub used: RailSet,
    pub shares: Shares,
    /// The predicted time until the last byte arrives, in nanoseconds.
    pub end: f64,
}

/// For each link: the time until it is free plus its latency, in nanoseconds. Infinite: it takes no
/// part.
struct Starts([f64; MAX_RAILS]);

/// The split of `len` bytes over the links that ends first.
pub(super) fn best(links: &Links, len: u64, now: u64) -> Split {
    let starts = Starts(std::array::from_fn(|link| {
        match links.alive.contains(link) {
            true => {
                links.ready(link, now).saturating_sub(now) as f64 + links.all[link].latency as f64
            }
            false => f64::INFINITY,
        }
    }));
    let alone = |link: usize| on(links, &starts, RailSet::only(link), len);
    let mut order = [(f64::INFINITY, 0); MAX_RAILS];
    for link in links.alive.iter() {
        order[link] = (alone(link).map_or(f64::MAX, |split| split.end), link);
    }
    // Ties go to the lower number.
    order.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let fastest = order[0].1;
    let mut best = alone(fastest).unwrap_or(Split {
        used: RailSet::only(fastest),
        shares: single(fastest, len),
        end: f64::MAX,
    });
    if len < 2 * SHORTEST_PIECE {
        return at_home(links, &starts, best, len, now);
    }
    let earliest = starts.0.iter().copied().fold(f64::INFINITY, f64::min);
    for &(_, link) in &order[1..links.live().max(1)] {
        let gain = NEXT_LINK.max((best.end - earliest) / LEAST_GAIN);
        match on(links, &starts, best.used.with(link), len) {
            Some(split) if split.end + gain <= best.end => best = split,
            _ => {}
        }
    }
    best
}

/// The split of a transfer that is too short to be cut: `best`, or the home link.
///
/// Packets use the home link, so a transfer elsewhere moves the processor to another card and back.
/// The processor needs [`THERE_AND_BACK`] for that, in which time the home link works off as much.
fn at_home(links: &Links, starts: &Starts, best: Split, len: u64, now: u64) -> Split {
    let home = links.home();
    let backlog = links.ready(home, now).saturating_sub(now) as f64;
    match on(links, starts, RailSet::only(home), len) {
        Some(split) if split.end - backlog.min(THERE_AND_BACK) < best.end + 1.0 => split,
        _ => best,
    }
}

/// The split over exactly the links of `used`. `None`: one of them would get less than the shortest
/// piece.
fn on(links: &Links, starts: &Starts, used: RailSet, len: u64) -> Option<Split> {
    let bandwidths = links.bandwidths(used);
    let start = |position: usize, link: usize| starts.0[link] + position as f64 * NEXT_LINK;
    // Nanoseconds and bytes per nanosecond.
    let rate = |link: usize| bandwidths[link] / 1e9;
    let (mut bytes, mut rates) = (len as f64, 0.0);
    for (position, link) in used.iter().enumerate() {
        bytes += rate(link) * start(position, link);
        rates += rate(link);
    }
    let end = bytes / rates;
    let mut shares = [0; MAX_RAILS];
    let mut left = len;
    let count = used.iter().count();
    for (position, link) in used.iter().enumerate() {
        let share = match position + 1 == count {
            true => left,
            false => round((end - start(position, link)) * rate(link)).min(left),
        };
        if count > 1 && share < SHORTEST_PIECE {
            return None;
        }
        shares[link] = share;
        left -= share;
    }
    Some(Split { used, shares, end })
}

/// Rounds `share` (a number of bytes) down to whole cache lines.
fn round(share: f64) -> u64 {
    share.max(0.0) as u64 / 64 * 64
}

/// The shares of a transfer whose `len` bytes all go over `link`.
pub(super) fn single(link: usize, len: u64) -> Shares {
    let mut shares = [0; MAX_RAILS];
    shares[link] = len;
    shares
}
