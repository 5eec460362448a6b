//! Costs of patterns of messages, in nanoseconds: steps in which all ranks send, chains, rings,
//! trees and exchanges of halves.
//!
//! In a step, the ranks of a host that send to other hosts share its rails, those that send within
//! the host share its memory, and the step lasts as long as the longer of the two. The costs of
//! steps assume hosts with equal numbers of consecutive ranks; with any other distribution, all
//! messages of a step are assumed to leave their hosts.

use super::Case;
use super::branches::depth;
use super::pieces::{CACHED_PIECE, CHAIN_PIECE};
use super::trees::Ends;
use crate::shape::Spread;

/// The numbers of branches of a tree among which the costs choose.
const ARITIES: [usize; 9] = [2, 3, 4, 6, 8, 12, 16, 24, 32];

/// The powers of two below `ranks`, in ascending order.
fn distances(ranks: usize) -> impl DoubleEndedIterator<Item = usize> {
    (0..ranks.next_power_of_two().trailing_zeros()).map(|step| 1 << step)
}

impl Case {
    fn case_of(&self, bytes: usize, ranks: usize, spread: Spread) -> Case {
        Case {
            bytes,
            ranks,
            spread,
            ..*self
        }
    }

    /// The case of the same operation with `bytes` bytes among the ranks of each host.
    pub fn inside_hosts(&self, bytes: usize) -> Case {
        let most = self.spread.most;
        self.case_of(bytes, most, Spread::one_host(most))
    }

    /// The case of the same operation with `bytes` bytes among one rank of each host, performed by
    /// `sharing` such groups at the same time.
    pub fn among_leaders(&self, bytes: usize, sharing: usize) -> Case {
        let hosts = self.spread.hosts;
        self.case_of(bytes, hosts, Spread::leaders(hosts, sharing))
    }

    /// The number of parts that a vector has in the two-level algorithms with several leaders.
    pub fn parts(&self) -> usize {
        self.spread.least
    }

    /// The number of branches of each rank in a k-ary tree for a vector of this case's bytes: the
    /// user's setting, or the number with which ranks wait least on average. A rank waits for one
    /// message on each level above it, and there for half of the other branches.
    pub(crate) fn tree_arity(&self) -> usize {
        if let Some(arity) = self.arity {
            return arity;
        }
        let piece = self.bytes.min(CHAIN_PIECE) as u64;
        let message = self.network.message(piece, self.spread.hosts > 1);
        let effort = message.sending.max(message.receiving);
        // The part of a piece's time that branches spend one after another.
        let (step, each) = match message.is_short {
            true => (message.flight + 2 * effort, effort),
            false => (message.flight + message.moving, message.moving),
        };
        let pieces = self.bytes.div_ceil(CHAIN_PIECE).max(1) as u64;
        let time = |arity: usize| {
            let (depth, beside) = (depth(self.ranks, arity) as u64, arity as u64 - 1);
            depth * (2 * step + beside * each) + 2 * (pieces - 1) * arity as u64 * each
        };
        let best = ARITIES.into_iter().min_by_key(|&arity| time(arity));
        best.unwrap_or(2)
    }

    /// The time of a step in which `across` ranks of each host send `bytes` bytes to other hosts,
    /// and `inside` ranks within the host.
    fn round(&self, bytes: usize, across: usize, inside: usize) -> u64 {
        let (bytes, sharing) = (bytes as u64, self.spread.sharing);
        let across = self.network.across(bytes, (across * sharing) as u64);
        across.max(self.network.inside(bytes, (inside * sharing) as u64))
    }

    /// The time of a step in which each rank sends `bytes` bytes to the rank at this distance.
    pub(super) fn shift(&self, distance: usize, bytes: usize) -> u64 {
        let most = self.spread.most;
        let across = match (self.spread.hosts, self.spread.contiguous) {
            (0 | 1, _) => 0,
            (_, true) => distance.min(self.ranks - distance).min(most),
            (_, false) => most,
        };
        self.round(bytes, across, most - across)
    }

    /// The time of a step in which ranks at this distance, a power of two, exchange `bytes` bytes.
    pub(super) fn swap(&self, distance: usize, bytes: usize) -> u64 {
        let most = self.spread.most;
        let across = match (self.spread.hosts, self.spread.contiguous) {
            (0 | 1, _) => 0,
            (_, true) if most.is_multiple_of(2 * distance) => 0,
            (_, true) if 2 * distance <= most => distance,
            _ => most,
        };
        self.round(bytes, across, most - across)
    }

    pub(super) fn chain(&self, bytes: usize) -> Ends {
        let pieces = bytes.div_ceil(CHAIN_PIECE).max(1);
        let piece = bytes.min(CHAIN_PIECE);
        let first = self.chain_of_whole(piece);
        // Within a host a rank copies a piece, and its successor copies the piece from there.
        let most = self.spread.most;
        let (across, inside) = match (self.spread.hosts, self.spread.contiguous) {
            (0 | 1, _) => (0, most),
            (_, true) => (1, most - 1),
            (_, false) => (most, 0),
        };
        let step = self
            .round(piece, across, 0)
            .max(2 * self.round(piece, 0, inside));
        let rest = (pieces as u64 - 1) * step;
        // The root waits until its successor has received a long piece.
        let ranks = self.ranks as u64;
        let hops = ranks * ranks.saturating_sub(1) / 2 + 1;
        Ends {
            mean: first * hops / (ranks * ranks.saturating_sub(1)).max(1) + rest,
            last: first + rest,
        }
    }

    /// The bytes of messages on the edges of a binomial tree, by their distance: a block for each
    /// rank below.
    pub(super) fn blocks(&self, block: usize) -> impl Fn(usize) -> usize + use<> {
        let ranks = self.ranks;
        move |distance| block * distance.min(ranks - distance)
    }

    /// The time of a message that goes from rank to rank, in one piece.
    pub(super) fn chain_of_whole(&self, bytes: usize) -> u64 {
        let across = match self.spread.contiguous {
            true => self.spread.hosts - 1,
            false => self.ranks - 1,
        };
        let [near, far] = [false, true].map(|across| self.network.message(bytes as u64, across));
        across as u64 * far.total() + (self.ranks - 1 - across) as u64 * near.total()
    }

    /// The time in which blocks of `bytes` bytes go `steps` steps around a ring.
    pub(super) fn ring(&self, steps: usize, bytes: usize) -> u64 {
        let step = self.shift(1, bytes);
        let message = self.network.message(bytes as u64, self.spread.hosts > 1);
        if !message.is_short || !self.spread.contiguous || self.spread.hosts <= 1 {
            return steps as u64 * step;
        }
        // A short block waits for a link to another host only where it crosses one.
        let most = self.spread.most;
        let crossings = steps.div_ceil(most).min(steps) as u64;
        let inside = self.round(bytes, 0, most);
        let path = crossings * step + (steps as u64 - crossings) * inside.min(step);
        path.max(steps as u64 * (message.sending + message.receiving))
    }

    /// The time in which blocks of `bytes` bytes go around a ring, in pieces that stay in caches.
    pub(super) fn cached_ring(&self, bytes: usize) -> u64 {
        let pieces = bytes.div_ceil(CACHED_PIECE).max(1) as u64;
        let piece = self.network.message(bytes.min(CACHED_PIECE) as u64, false);
        let steps = self.ranks as u64 - 1;
        // A rank also waits for pieces, and notices their arrival.
        let each = (piece.sending + piece.receiving) * 6 / 5;
        steps * (pieces * each + piece.flight)
    }

    /// The time of steps in which all ranks send `bytes` bytes to ranks at the distances 1, 2, 4…
    pub(super) fn shifts(&self, bytes: impl Fn(usize) -> usize) -> u64 {
        let most = self.spread.most;
        let is_inside = |distance: &usize| {
            self.spread.contiguous && *distance < most && bytes(*distance) <= 1024
        };
        // A path by the short distances leaves hosts only this number of times.
        let reach: usize = distances(self.ranks).filter(is_inside).sum();
        let mut crossings = match self.spread.hosts > 1 {
            true => reach.div_ceil(most),
            false => 0,
        };
        let round = |distance: usize| {
            let bytes = bytes(distance);
            if !is_inside(&distance) {
                return self.shift(distance, bytes);
            }
            match crossings.checked_sub(1) {
                Some(left) => {
                    crossings = left;
                    self.shift(distance, bytes)
                }
                None => self.round(bytes, 0, most),
            }
        };
        distances(self.ranks).map(round).sum()
    }

    pub(super) fn doubling(&self, bytes: impl Fn(usize) -> usize) -> u64 {
        distances(self.ranks)
            .map(|distance| self.swap(distance, bytes(distance)))
            .sum()
    }

    /// The time in which each surplus rank sends its vector to a neighbour, which represents it in
    /// an algorithm for a power of two of ranks.
    pub(super) fn fold(&self, bytes: usize) -> u64 {
        match self.ranks.is_power_of_two() {
            true => 0,
            false if self.spread.most == 1 => self.round(bytes, 1, 0),
            false => self.round(bytes, 0, self.spread.most.div_ceil(2)),
        }
    }

    /// The time in which surplus ranks send their vectors before an algorithm for a power of two of
    /// ranks, and get the results after it. They alone wait for the results.
    pub(super) fn fold_and_unfold(&self, bytes: usize) -> u64 {
        let represented = (self.ranks - self.folded().ranks) as u64;
        let fold = self.fold(bytes);
        // The other ranks exchange short messages meanwhile.
        let before = if bytes > self.network.longest_packet(true) {
            fold
        } else {
            fold / 2
        };
        before + fold * represented / self.ranks as u64
    }

    /// The case with the greatest power of two of ranks that it contains.
    pub(super) fn folded(&self) -> Case {
        Case {
            ranks: 1 << self.ranks.ilog2(),
            ..*self
        }
    }

    /// The time of exchanges of halves between ranks, the nearest partners first.
    pub(super) fn halving(&self, bytes: usize) -> u64 {
        self.folded().doubling(|distance| bytes / (2 * distance))
    }

    /// The time in which a rank of an algorithm for a power of two of ranks combines the vector of
    /// `bytes` bytes of a surplus rank, if there are any, and `others` bytes.
    pub(super) fn combining(&self, bytes: usize, others: usize) -> u64 {
        let represented = (self.ranks - self.folded().ranks).min(1);
        self.network.combining(represented * bytes + others)
    }

    pub(super) fn alltoall_at_once(&self, block: usize) -> u64 {
        let Spread { hosts, most, .. } = self.spread;
        let there = if hosts > 1 { self.ranks - most } else { 0 };
        let here = (self.ranks - 1 - there) as u64;
        let (there, most) = (there as u64, (most * self.spread.sharing) as u64);
        let size = block as u64;
        let [near, far] = [false, true].map(|across| self.network.message(size, across));
        let flight = if there > 0 { far.flight } else { near.flight };
        let link = most * there * far.moving;
        if near.is_short {
            // Messages arrive while the rank sends; one poll finds several of them.
            let poll = self.network.poll();
            let sending = here * near.sending + there * far.sending;
            let receiving = here * (near.receiving - poll) + there * (far.receiving - poll);
            let last = if there > 0 {
                far.receiving
            } else {
                near.receiving
            };
            let own = sending + (receiving + poll).max(flight + last);
            let memory = 3 * self.network.memory(size, most * here)
                + 2 * self.network.memory(size, most * there);
            return own.max(flight + memory.max(link));
        }
        let effort = here * near.busy() + there * far.busy();
        let copies = here * near.moving;
        let memory = self.network.memory(size, most * here);
        let report = if far.is_short {
            near.report
        } else {
            far.report
        };
        if there > 0 && far.is_short {
            // Processors copy all messages; those of other hosts travel through packets.
            let memory = memory + 2 * self.network.memory(size, most * there);
            return flight + report + (effort + copies).max(memory).max(link);
        }
        // Half of the ranks first serve requests of their neighbours, and copy before devices
        // begin.
        let own = effort + copies.max(memory);
        flight + link.max(own) + link.min(own) / 2 + report
    }
}
