//! Costs of algorithms: pure functions of a [`Case`], in nanoseconds.
//!
//! An algorithm is a series of rounds. The ranks of a host that send to other hosts in a round share
//! its rails, those that send within the host share its memory, and the round lasts as long as the
//! longer of the two. Rounds are costed for hosts of equal numbers of ranks with consecutive ranks;
//! with any other placement all messages of a round are taken to leave their hosts.
//!
//! Combining the operands of a reduction is not costed: all algorithms for long vectors combine
//! about as many bytes.

use super::{Algorithm, Case, Collective};
use crate::shape::Spread;

/// Bytes of a piece in a chain.
pub(crate) const CHAIN_PIECE: usize = 64 << 10;

/// The powers of two below `ranks`, the least first.
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

    /// The case of the same operation with `bytes` bytes among one rank of each host, in `sharing`
    /// groups at once.
    pub fn among_leaders(&self, bytes: usize, sharing: usize) -> Case {
        let hosts = self.spread.hosts;
        self.case_of(bytes, hosts, Spread::leaders(hosts, sharing))
    }

    /// The number of parts that a vector has in the two-level algorithms with several leaders.
    pub fn parts(&self) -> usize {
        self.spread.least
    }

    /// A round in which `across` ranks of each host send `bytes` bytes to other hosts, and `inside`
    /// ranks within it.
    fn round(&self, bytes: usize, across: usize, inside: usize) -> u64 {
        let (bytes, sharing) = (bytes as u64, self.spread.sharing);
        let across = self.network.across(bytes, (across * sharing) as u64);
        across.max(self.network.inside(bytes, (inside * sharing) as u64))
    }

    /// A round in which each rank sends `bytes` bytes to the one at this distance.
    pub(super) fn shift(&self, distance: usize, bytes: usize) -> u64 {
        let most = self.spread.most;
        let across = match (self.spread.hosts, self.spread.contiguous) {
            (0 | 1, _) => 0,
            (_, true) => distance.min(self.ranks - distance).min(most),
            (_, false) => most,
        };
        self.round(bytes, across, most - across)
    }

    /// A round in which ranks at this distance, a power of two, exchange `bytes` bytes.
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

    /// A round of a binomial tree, in which ranks at this distance from their parents send or
    /// receive `bytes` bytes.
    pub(super) fn branch(&self, distance: usize, bytes: usize) -> u64 {
        let Spread {
            hosts,
            most,
            contiguous,
            ..
        } = self.spread;
        let edges = (self.ranks / (2 * distance)).max(1);
        let of_host = edges.div_ceil(hosts.max(1));
        match hosts <= 1 || contiguous && distance < most {
            true => self.round(bytes, 0, of_host),
            false => self.round(bytes, of_host, 0),
        }
    }

    /// One rank exchanges a message of `bytes` bytes with each of the others.
    fn star(&self, bytes: usize) -> u64 {
        let here = self.spread.most - 1;
        let there = self.ranks.saturating_sub(self.spread.most);
        let network = &self.network;
        let size = bytes as u64;
        let copies = match size {
            0..=16384 => network.copy(size) * (self.ranks as u64 - 1),
            _ => network.copy(size) * here as u64,
        };
        let each = (self.ranks as u64 - 1) * network.effort();
        let across = network.across(size, (there * self.spread.sharing) as u64);
        network.inside(size, 1).max(across) + each + copies
    }

    fn tree(&self, bytes: usize) -> u64 {
        distances(self.ranks)
            .map(|distance| self.branch(distance, bytes))
            .sum()
    }

    /// A tree whose edges at each distance carry that many blocks.
    fn growing_tree(&self, block: usize) -> u64 {
        let blocks = |distance: usize| distance.min(self.ranks - distance);
        distances(self.ranks)
            .map(|distance| self.branch(distance, block * blocks(distance)))
            .sum()
    }

    fn chain(&self, bytes: usize) -> u64 {
        let pieces = bytes.div_ceil(CHAIN_PIECE).max(1);
        let piece = bytes.min(CHAIN_PIECE);
        let hosts = self.spread.hosts;
        let across = match self.spread.contiguous {
            true => hosts - 1,
            false => self.ranks - 1,
        };
        let first = across as u64 * self.round(piece, 1.min(across), 0)
            + (self.ranks - 1 - across) as u64 * self.round(piece, 0, 1);
        first + (pieces as u64 - 1) * self.shift(1, piece)
    }

    fn ring(&self, steps: usize, bytes: usize) -> u64 {
        steps as u64 * self.shift(1, bytes)
    }

    fn doubling(&self, bytes: impl Fn(usize) -> usize) -> u64 {
        distances(self.ranks)
            .map(|distance| self.swap(distance, bytes(distance)))
            .sum()
    }

    /// Before and after an algorithm for a power of two of ranks: the part of the ranks that their
    /// neighbours represent.
    fn fold(&self, bytes: usize) -> u64 {
        match self.ranks.is_power_of_two() {
            true => 0,
            false => self.round(bytes, 0, self.spread.most / 2),
        }
    }

    /// The greatest power of two of ranks.
    fn folded(&self) -> Case {
        Case {
            ranks: 1 << self.ranks.ilog2(),
            ..*self
        }
    }

    /// Ranks in order exchange halves, the nearest first.
    fn halving(&self, bytes: usize) -> u64 {
        self.folded().doubling(|distance| bytes / (2 * distance))
    }

    fn alltoall_at_once(&self, block: usize) -> u64 {
        let Spread { hosts, most, .. } = self.spread;
        let there = if hosts > 1 { self.ranks - most } else { 0 };
        let here = self.ranks - 1 - there;
        let each = 2 * (self.ranks as u64 - 1) * self.network.effort();
        let copies = match block {
            0..=16384 => 2 * self.network.copy((block * (self.ranks - 1)) as u64),
            _ => self.network.copy((block * here) as u64),
        };
        let across = self
            .network
            .across(block as u64, (most * there * self.spread.sharing) as u64);
        let inside = self
            .network
            .inside(block as u64, (most * here * self.spread.sharing) as u64);
        across.max(inside).max(copies) + each
    }

    /// The least cost of the operation `of` in this case, by algorithms without levels.
    fn best(&self, of: Collective) -> u64 {
        super::flat_costs(of, self)
            .map(|(_, cost)| cost)
            .min()
            .unwrap_or(0)
    }
}

pub(super) fn barrier(algorithm: Algorithm, case: &Case) -> u64 {
    match algorithm {
        Algorithm::Tree => 2 * case.tree(0),
        Algorithm::TwoLevel => {
            let inside = case.inside_hosts(0);
            2 * inside.tree(0) + case.among_leaders(0, 1).best(Collective::Barrier)
        }
        _ => distances(case.ranks)
            .map(|distance| case.shift(distance, 0))
            .sum(),
    }
}

pub(super) fn bcast(algorithm: Algorithm, case: &Case) -> u64 {
    let bytes = case.bytes;
    let part = bytes.div_ceil(case.ranks.max(1));
    match algorithm {
        Algorithm::Chain => case.chain(bytes),
        Algorithm::Linear => case.star(bytes),
        Algorithm::ScatterAllgather => case.growing_tree(part) + case.ring(case.ranks - 1, part),
        Algorithm::TwoLevel => {
            case.among_leaders(bytes, 1).best(Collective::Bcast)
                + case.inside_hosts(bytes).best(Collective::Bcast)
        }
        Algorithm::TwoLevelParts => {
            let part = bytes.div_ceil(case.parts());
            case.inside_hosts(part).growing_tree(part)
                + case
                    .among_leaders(part, case.parts())
                    .best(Collective::Bcast)
                + case.inside_hosts(bytes).best(Collective::Allgather)
        }
        _ => case.tree(bytes),
    }
}

pub(super) fn gather(algorithm: Algorithm, case: &Case) -> u64 {
    match algorithm {
        Algorithm::Binomial => case.growing_tree(case.bytes),
        Algorithm::TwoLevel => {
            let bundle = case.bytes * case.spread.most;
            case.inside_hosts(case.bytes).best(Collective::Gather)
                + case.among_leaders(bundle, 1).best(Collective::Gather)
                + case.network.copy((bundle * case.spread.hosts) as u64)
        }
        _ => case.star(case.bytes),
    }
}

pub(super) fn allgather(algorithm: Algorithm, case: &Case) -> u64 {
    let block = case.bytes.div_ceil(case.ranks.max(1));
    match algorithm {
        Algorithm::Bruck => {
            let blocks = |distance: usize| distance.min(case.ranks - distance);
            let rounds = distances(case.ranks)
                .map(|distance| case.shift(distance, block * blocks(distance)));
            rounds.sum::<u64>() + case.network.copy(case.bytes as u64)
        }
        Algorithm::RecursiveDoubling => case.doubling(|distance| distance * block),
        Algorithm::Linear => case.alltoall_at_once(block),
        Algorithm::TwoLevel => {
            let bundle = block * case.spread.most;
            case.inside_hosts(block).best(Collective::Gather)
                + case
                    .among_leaders(case.bytes, 1)
                    .best(Collective::Allgather)
                + case.inside_hosts(case.bytes).best(Collective::Bcast)
                + case.network.copy(bundle as u64)
        }
        Algorithm::TwoLevelParts => {
            let column = block * case.spread.hosts;
            case.among_leaders(column, case.parts())
                .best(Collective::Allgather)
                + case.inside_hosts(case.bytes).best(Collective::Allgather)
        }
        _ => case.ring(case.ranks - 1, block),
    }
}

pub(super) fn alltoall(algorithm: Algorithm, case: &Case) -> u64 {
    let block = case.bytes;
    match algorithm {
        Algorithm::Pairwise => (1..case.ranks)
            .map(|distance| case.shift(distance, block))
            .sum(),
        Algorithm::Bruck => {
            let half = block * case.ranks.div_ceil(2);
            let rounds = distances(case.ranks)
                .map(|distance| case.shift(distance, half) + 2 * case.network.copy(half as u64));
            rounds.sum::<u64>() + 2 * case.network.copy((block * case.ranks) as u64)
        }
        Algorithm::TwoLevel => {
            let most = case.spread.most;
            let of_rank = block * case.ranks;
            2 * case.inside_hosts(of_rank).best(Collective::Gather)
                + case
                    .among_leaders(block * most * most, 1)
                    .best(Collective::Alltoall)
                + 2 * case.network.copy((of_rank * most) as u64)
        }
        _ => case.alltoall_at_once(block),
    }
}

pub(super) fn reduce(algorithm: Algorithm, case: &Case) -> u64 {
    let bytes = case.bytes;
    match algorithm {
        Algorithm::Rabenseifner => {
            let part = bytes.div_ceil(case.ranks.max(1));
            case.fold(bytes) + case.halving(bytes) + case.star(part)
        }
        Algorithm::TwoLevel => {
            case.inside_hosts(bytes).best(Collective::Reduce)
                + case.among_leaders(bytes, 1).best(Collective::Reduce)
        }
        _ => case.tree(bytes),
    }
}

pub(super) fn allreduce(algorithm: Algorithm, case: &Case) -> u64 {
    let bytes = case.bytes;
    match algorithm {
        Algorithm::Ring => {
            let part = bytes.div_ceil(case.ranks.max(1));
            case.ring(2 * (case.ranks - 1), part)
        }
        Algorithm::ReduceBcast => 2 * case.tree(bytes),
        Algorithm::Rabenseifner => 2 * (case.fold(bytes) + case.halving(bytes)),
        Algorithm::TwoLevel => {
            case.inside_hosts(bytes).best(Collective::Reduce)
                + case.among_leaders(bytes, 1).best(Collective::Allreduce)
                + case.inside_hosts(bytes).best(Collective::Bcast)
        }
        Algorithm::TwoLevelParts => {
            let part = bytes.div_ceil(case.parts());
            case.inside_hosts(bytes).best(Collective::ReduceScatter)
                + case
                    .among_leaders(part, case.parts())
                    .best(Collective::Allreduce)
                + case.inside_hosts(bytes).best(Collective::Allgather)
        }
        _ => 2 * case.fold(bytes) + case.folded().doubling(|_| bytes),
    }
}

pub(super) fn reduce_scatter(algorithm: Algorithm, case: &Case) -> u64 {
    let bytes = case.bytes;
    let part = bytes.div_ceil(case.ranks.max(1));
    match algorithm {
        Algorithm::RecursiveHalving => {
            let folded = case.folded();
            let halving = folded.doubling(|distance| bytes * distance / folded.ranks);
            case.fold(bytes) + halving + case.fold(part)
        }
        Algorithm::Pairwise => (1..case.ranks)
            .map(|distance| case.shift(distance, part))
            .sum(),
        Algorithm::Linear => case.alltoall_at_once(part),
        Algorithm::TwoLevel => {
            case.inside_hosts(bytes).best(Collective::Reduce)
                + case.among_leaders(bytes, 1).best(Collective::ReduceScatter)
                + case.inside_hosts(part).star(part)
        }
        _ => case.tree(bytes) + case.star(part),
    }
}

pub(super) fn scan(algorithm: Algorithm, case: &Case) -> u64 {
    let bytes = case.bytes;
    match algorithm {
        Algorithm::Chain => {
            let hosts = case.spread.hosts;
            let across = match case.spread.contiguous {
                true => hosts - 1,
                false => case.ranks - 1,
            };
            across as u64 * case.round(bytes, 1.min(across), 0)
                + (case.ranks - 1 - across) as u64 * case.round(bytes, 0, 1)
        }
        Algorithm::TwoLevel => {
            2 * case.inside_hosts(bytes).best(Collective::Scan)
                + case.among_leaders(bytes, 1).best(Collective::Scan)
        }
        _ => case.doubling(|_| bytes),
    }
}
