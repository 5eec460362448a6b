//! The `adaptive` policy, which chooses links by predicted arrival.

use super::assignment::{Assignment, SHORTEST_PIECE};
use super::estimate::duration;
use super::links::Links;
use super::pace::Pace;
use super::split::{self, NEXT_LINK, Split};
use crate::rdma::rail_set::RailSet;
use knobs::QueuePairs;

/// A packet that leaves the home link in less than this time always takes it, in nanoseconds: a
/// processor needs about as long for each packet, so such packets never wait for one another.
const SHORT: u64 = 500;
/// Processor time to post on another queue pair than the last one, in nanoseconds.
const SWITCH: u64 = 30;
/// The gain that another link must offer a packet over the last link and the home link.
#[derive(Clone, Copy)]
struct Gain {
    /// The least gain that justifies another link than the one in use, in nanoseconds.
    switch: u64,
    /// The additional time on the wire of a slower link, divided by this number, is a further
    /// required gain.
    slower: u64,
}

const PACKET: Gain = Gain {
    switch: SWITCH,
    slower: 8,
};
/// The gain required for coalesced packets, a great one: their stream is usually limited by
/// processors, and not by a link.
const COALESCED: Gain = Gain {
    switch: 1_000,
    slower: 1,
};
/// The least length of a piece in bytes, on a link whose horizon holds two such pieces.
const PIECE: u64 = 16 << 10;
/// The number of pieces of a horizon.
const PIECES: u64 = 8;
/// The time without use after which a link is probed, in nanoseconds.
const PROBE_AFTER: u64 = 10_000_000;
/// The time of the post of a probe is at most the transfer's time divided by this number.
const PROBE_COST: f64 = 100.0;

/// The state of the adaptive policy, apart from that of the links.
pub(super) struct Adaptive {
    queue_pairs: QueuePairs,
    /// The link that carried the last packet.
    last: usize,
    /// The predicted time of the last packet's arrival, in nanoseconds.
    arrival: u64,
    /// True if a packet or piece has been posted since the rank waited.
    is_busy: bool,
    /// The bytes of packets that were posted on the home link without reading the clock.
    untimed: u64,
    pace: Pace,
}

impl Adaptive {
    pub(super) fn new(queue_pairs: QueuePairs) -> Adaptive {
        Adaptive {
            queue_pairs,
            last: 0,
            arrival: 0,
            is_busy: false,
            untimed: 0,
            pace: Pace::default(),
        }
    }

    /// The link of the next packet. The clock is not read for short packets, nor for the first one
    /// after a wait: the latency of a single message is that of one link.
    #[inline]
    pub(super) fn packet(
        &mut self,
        links: &mut Links,
        len: usize,
        now: impl FnOnce() -> u64,
    ) -> usize {
        let is_short = is_short(links, len);
        let is_alone = !self.is_busy && links.all.iter().all(|link| link.outstanding() == 0);
        if is_short || is_alone || links.live() < 2 {
            self.is_busy |= !is_short;
            self.untimed = self.untimed.saturating_add(len as u64);
            self.last = links.home();
            return self.last;
        }
        let now = self.pace.now(len as u64, now);
        self.backlogged(links, len as u64, now, PACKET)
    }

    /// The link for `len` bytes of coalesced packets, which are behind other packets.
    pub(super) fn coalesced(
        &mut self,
        links: &mut Links,
        len: usize,
        now: impl FnOnce() -> u64,
    ) -> usize {
        let now = self.pace.now(len as u64, now);
        self.backlogged(links, len as u64, now, COALESCED)
    }

    /// The link for a packet while earlier packets still wait for a link.
    fn backlogged(&mut self, links: &mut Links, len: u64, now: u64, gain: Gain) -> usize {
        self.account_untimed(links, now);
        let home = links.home();
        let mut best = (u64::MAX, u64::MAX, false, home);
        let usual = duration(len, links.all[home].estimate.bandwidth());
        for link in links.alive.iter() {
            let own = self.predict(links, link, len, now);
            // Packets are consumed in order: none arrives before its predecessor.
            let arrival = own.max(self.arrival);
            // All packets behind a late one wait, so a slower link must win by a margin.
            let time = duration(len, links.all[link].estimate.bandwidth());
            let margin = time.saturating_sub(usual) / gain.slower;
            let arrival = arrival.saturating_add(margin);
            // The home link carries tails and announcements: going back to it costs nothing.
            let preferred = match link == self.last || link == home {
                true => arrival.saturating_sub(gain.switch),
                false => arrival,
            };
            best = best.min((preferred, own, link != home, link));
        }
        let (_, own, _, link) = best;
        let state = &mut links.all[link];
        let until = own.saturating_sub(state.latency);
        state.packets_until = state.packets_until.max(until);
        self.arrival = own.max(self.arrival);
        self.last = link;
        link
    }

    /// Adds the packets that were posted without reading the clock, as if posted now.
    fn account_untimed(&mut self, links: &mut Links, now: u64) {
        let home = links.home();
        let state = &mut links.all[home];
        let time = duration(self.untimed, state.estimate.bandwidth());
        if self.untimed > 0 {
            state.packets_until = state.packets_until.max(now).saturating_add(time);
            let arrival = state.packets_until.saturating_add(state.latency);
            self.arrival = self.arrival.max(arrival);
        }
        self.untimed = 0;
    }

    /// The predicted arrival of a packet on `link`. In one queue pair with bulk work the packet
    /// waits for that work. In a queue pair of its own it shares the wire with that work, packet by
    /// packet.
    fn predict(&self, links: &Links, link: usize, len: u64, now: u64) -> u64 {
        let state = &links.all[link];
        let packets = state.packets_until.max(now);
        let bulk = state.bulk_ready(now);
        let time = duration(len, state.estimate.bandwidth());
        let until = match self.queue_pairs {
            QueuePairs::Shared => packets.saturating_add(bulk - now).saturating_add(time),
            QueuePairs::Separate if bulk > packets => {
                packets.saturating_add(time.saturating_mul(2))
            }
            QueuePairs::Separate => packets.saturating_add(time),
        };
        until.saturating_add(state.latency)
    }

    pub(super) fn idle(&mut self) {
        self.is_busy = false;
        self.untimed = 0;
        self.pace.rest();
    }

    pub(super) fn links_changed(&mut self, links: &Links) {
        self.last = links.home();
        // Packets of a dead link are posted again: their arrival is unknown.
        self.arrival = 0;
        self.untimed = 0;
        self.pace.rest();
    }

    /// The links that get the next bytes of a transfer.
    pub(super) fn assign(&mut self, links: &Links, left: u64, now: u64) -> Assignment {
        self.is_busy = true;
        if links.live() < 2 {
            return Assignment::Final(split::single(links.home(), left));
        }
        let split = split::best(links, left, now);
        if let Some(link) = to_probe(links, &split, left, now) {
            let len = SHORTEST_PIECE;
            return Assignment::Piece { link, len };
        }
        let fits = |link: usize| split.shares[link] <= links.room(link);
        match split.used.iter().all(fits) {
            true => Assignment::Final(split.shares),
            false => next_piece(links, &split, left, now),
        }
    }
}

/// True if a packet of `len` bytes leaves the home link in less time than a processor needs for it.
fn is_short(links: &Links, len: usize) -> bool {
    let bandwidth = links.all[links.home()].estimate.bandwidth();
    (len as u64).saturating_mul(1_000_000_000 / SHORT) < bandwidth
}

/// The next piece of a transfer that is longer than the horizons: on the link where it ends first.
fn next_piece(links: &Links, split: &Split, left: u64, now: u64) -> Assignment {
    let mut best: Option<(u64, u64, usize, u64)> = None;
    for link in with_slot_mates(links, split.used).iter() {
        let state = &links.all[link];
        // No more than its share of the rest: all links end together.
        let share = match split.shares[link] {
            0 => left,
            share => share.max(SHORTEST_PIECE),
        };
        let most = piece_len(state.horizon()).min(links.longest_piece(link));
        let len = most.min(share).min(left);
        let is_first = links.is_idle(link);
        if !is_first && links.room(link) < len {
            continue;
        }
        let time = duration(len, state.estimate.bandwidth());
        let end = links.ready(link, now).saturating_add(time);
        // Links of one slot are ready at one time: they take pieces in turn.
        let choice = (end, state.outstanding(), link, len);
        best = Some(best.map_or(choice, |best| best.min(choice)));
    }
    match best {
        Some((_, _, link, len)) => Assignment::Piece { link, len },
        None => Assignment::Wait,
    }
}

/// The links of `used`, and those on the slot of one of these that are at least half as fast. They
/// cost a long transfer nothing, and only their use shows the total bandwidth of the slot.
fn with_slot_mates(links: &Links, used: RailSet) -> RailSet {
    let bandwidth = |link: usize| links.all[link].estimate.bandwidth();
    used.iter().fold(used, |all, link| {
        let Some(slot) = links.all[link].slot else {
            return all;
        };
        let mates = links.slots[slot].links().iter();
        let is_useful =
            |mate: &usize| links.alive.contains(*mate) && bandwidth(*mate) >= bandwidth(link) / 2;
        mates.filter(is_useful).fold(all, RailSet::with)
    })
}

/// The length of a piece on a link whose horizon is `horizon` bytes, in bytes.
fn piece_len(horizon: u64) -> u64 {
    let len = (horizon / PIECES).max(PIECE).min(horizon / 2);
    (len / SHORTEST_PIECE * SHORTEST_PIECE).max(SHORTEST_PIECE)
}

/// An unused link to be probed. `None` unless the transfer takes at least twice as long as the
/// probe, and so long that the post of the probe is negligible.
fn to_probe(links: &Links, split: &Split, left: u64, now: u64) -> Option<usize> {
    if split.end < PROBE_COST * NEXT_LINK || left < 8 * SHORTEST_PIECE {
        return None;
    }
    let is_due = |link: &usize| {
        let state = &links.all[*link];
        let time = duration(SHORTEST_PIECE, state.estimate.bandwidth());
        let ready = links.ready(*link, now) - now;
        let until = ready.saturating_add(state.latency).saturating_add(time);
        !split.used.contains(*link)
            && state.outstanding() == 0
            && now.saturating_sub(state.last_used) >= PROBE_AFTER
            && 2.0 * until as f64 <= split.end
    };
    links.alive.iter().find(is_due)
}
