//! Costs of algorithms: pure functions of a [`Case`], in nanoseconds.
//!
//! An algorithm is a series of rounds. The ranks of a host that send to other hosts in a round
//! share its rails, those that send within the host share its memory, and the round lasts as long
//! as the longer of the two. Rounds are costed for hosts of equal numbers of ranks with consecutive
//! ranks; with any other placement all messages of a round are taken to leave their hosts.
//!
//! Combining the operands of a reduction takes the time of a copy: recursive doubling combines the
//! whole vector in each round, the algorithms of parts once.

use super::branches::depth;
use super::pieces::{CACHED_PIECE, CHAIN_PIECE, LEVEL_PIECE};
use super::trees::Ends;
use super::{Algorithm, Case, Collective};
use crate::shape::Spread;

/// Numbers of branches among which the costs choose.
const ARITIES: [usize; 9] = [2, 3, 4, 6, 8, 12, 16, 24, 32];

/// Bytes of the length of a block that only its owner and the root know.
const LENGTH: usize = 8;

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

    /// The number of branches of each rank in a k-ary tree for a vector of this case's bytes: the
    /// user's, or the one of the tree whose ranks wait least on average. A place waits for one
    /// message on each step to it, and there for half of the branches beside its own.
    pub(crate) fn tree_arity(&self) -> usize {
        if let Some(arity) = self.arity {
            return arity;
        }
        let piece = self.bytes.min(CHAIN_PIECE) as u64;
        let message = self.network.message(piece, self.spread.hosts > 1);
        let effort = message.sending.max(message.receiving);
        // The parts of a piece that one branch after the other takes.
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

    fn chain(&self, bytes: usize) -> Ends {
        let pieces = bytes.div_ceil(CHAIN_PIECE).max(1);
        let piece = bytes.min(CHAIN_PIECE);
        let first = self.chain_of_whole(piece);
        // Within a host a rank copies a piece, and its successor copies it from there.
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
        // The root waits for its successor to take a long piece.
        let ranks = self.ranks as u64;
        let hops = ranks * ranks.saturating_sub(1) / 2 + 1;
        Ends {
            mean: first * hops / (ranks * ranks.saturating_sub(1)).max(1) + rest,
            last: first + rest,
        }
    }

    /// A binomial tree whose edges at each distance carry that many blocks.
    pub(super) fn blocks(&self, block: usize) -> impl Fn(usize) -> usize + use<> {
        let ranks = self.ranks;
        move |distance| block * distance.min(ranks - distance)
    }

    /// A message that goes from rank to rank.
    fn chain_of_whole(&self, bytes: usize) -> u64 {
        let across = match self.spread.contiguous {
            true => self.spread.hosts - 1,
            false => self.ranks - 1,
        };
        let [near, far] = [false, true].map(|across| self.network.message(bytes as u64, across));
        across as u64 * far.total() + (self.ranks - 1 - across) as u64 * near.total()
    }

    /// Blocks of `bytes` bytes that go `steps` steps round a circle.
    fn ring(&self, steps: usize, bytes: usize) -> u64 {
        let step = self.shift(1, bytes);
        let message = self.network.message(bytes as u64, self.spread.hosts > 1);
        if !message.is_short || !self.spread.contiguous || self.spread.hosts <= 1 {
            return steps as u64 * step;
        }
        // A short block waits for a link to another host only where it passes one.
        let most = self.spread.most;
        let crossings = steps.div_ceil(most).min(steps) as u64;
        let inside = self.round(bytes, 0, most);
        let path = crossings * step + (steps as u64 - crossings) * inside.min(step);
        path.max(steps as u64 * (message.sending + message.receiving))
    }

    /// Blocks of `bytes` bytes round a circle, in pieces that stay in caches.
    fn cached_ring(&self, bytes: usize) -> u64 {
        let pieces = bytes.div_ceil(CACHED_PIECE).max(1) as u64;
        let piece = self.network.message(bytes.min(CACHED_PIECE) as u64, false);
        let steps = self.ranks as u64 - 1;
        // A rank also waits for pieces, and takes them up.
        let each = (piece.sending + piece.receiving) * 6 / 5;
        steps * (pieces * each + piece.flight)
    }

    /// Rounds in which all ranks send `bytes` bytes to ranks at the distances 1, 2, 4...
    fn shifts(&self, bytes: impl Fn(usize) -> usize) -> u64 {
        let most = self.spread.most;
        let is_inside = |distance: &usize| {
            self.spread.contiguous && *distance < most && bytes(*distance) <= 1024
        };
        // The path to a rank leaves hosts only so often by short distances.
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

    fn doubling(&self, bytes: impl Fn(usize) -> usize) -> u64 {
        distances(self.ranks)
            .map(|distance| self.swap(distance, bytes(distance)))
            .sum()
    }

    /// Before an algorithm for a power of two of ranks: some ranks' neighbours represent them.
    fn fold(&self, bytes: usize) -> u64 {
        match self.ranks.is_power_of_two() {
            true => 0,
            false if self.spread.most == 1 => self.round(bytes, 1, 0),
            false => self.round(bytes, 0, self.spread.most.div_ceil(2)),
        }
    }

    /// The time of folding, and of the results for the represented ranks, which alone wait for
    /// them.
    fn fold_and_unfold(&self, bytes: usize) -> u64 {
        let represented = (self.ranks - self.folded().ranks) as u64;
        let fold = self.fold(bytes);
        // The others exchange short messages meanwhile.
        let before = if bytes > self.network.longest_packet(true) {
            fold
        } else {
            fold / 2
        };
        before + fold * represented / self.ranks as u64
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

    /// The time of combining what a rank that is not represented receives: the vector of `bytes`
    /// bytes that a represented rank sends, and `others` bytes.
    fn combining(&self, bytes: usize, others: usize) -> u64 {
        let represented = (self.ranks - self.folded().ranks).min(1);
        self.network.combining(represented * bytes + others)
    }

    fn alltoall_at_once(&self, block: usize) -> u64 {
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
            // Processors copy all messages, those of other hosts through packets.
            let memory = memory + 2 * self.network.memory(size, most * there);
            return flight + report + (effort + copies).max(memory).max(link);
        }
        // Half of the ranks are asked by their neighbours first, and copy before devices begin.
        let own = effort + copies.max(memory);
        flight + link.max(own) + link.min(own) / 2 + report
    }

    /// The operation `of` in this case, by the best algorithm without levels.
    fn best(&self, of: Collective) -> Ends {
        let Some(algorithm) = super::cheapest_flat(of, self) else {
            return Ends::default();
        };
        let followed = super::rooted::together(of, algorithm, self);
        followed.unwrap_or_else(|| super::ends(of, algorithm, self))
    }

    /// A step within each host that only its leader waits for, then one among the leaders.
    fn collect(&self, inside: Ends, across: Ends) -> Ends {
        let (ranks, leaders) = (self.ranks as u64, self.spread.hosts as u64);
        let others = ranks.saturating_sub(leaders);
        let waits = others * inside.mean + leaders * (inside.last + across.mean);
        Ends {
            mean: waits / ranks.max(1),
            last: inside.last + across.last,
        }
    }
}

pub(super) fn barrier(algorithm: Algorithm, case: &Case) -> Ends {
    let tree = |case: &Case| Ends::all(case.up(|_| 0).last * 2);
    match algorithm {
        Algorithm::TwoLevel => {
            let across = case.among_leaders(0, 1).best(Collective::Barrier);
            tree(&case.inside_hosts(0)).then(across)
        }
        _ => Ends::all(case.shifts(|_| 0)),
    }
}

pub(super) fn bcast(algorithm: Algorithm, case: &Case) -> Ends {
    let bytes = case.bytes;
    let part = bytes.div_ceil(case.ranks.max(1));
    match algorithm {
        Algorithm::Chain => case.chain(bytes),
        Algorithm::KAry => case.down_branches(bytes, case.tree_arity()),
        Algorithm::Linear => case.handed_out(bytes),
        Algorithm::ScatterAllgather => {
            let scatter = case.down(case.blocks(part), true);
            Ends::all(scatter.last + case.ring(case.ranks - 1, part))
        }
        Algorithm::TwoLevel => {
            // While the last piece spreads, all others have.
            let pieces = bytes.div_ceil(LEVEL_PIECE).max(1) as u64;
            let inside = case
                .inside_hosts(bytes.min(LEVEL_PIECE))
                .best(Collective::Bcast);
            let across = case.among_leaders(bytes, 1).best(Collective::Bcast);
            let behind = ((pieces - 1) * inside.last).saturating_sub(across.last);
            // Long messages occupy the first leaders while they pass on.
            let across = match bytes > case.network.longest_packet(true) {
                true => Ends::all(across.last),
                false => across,
            };
            across.then(inside).then(Ends::all(behind))
        }
        Algorithm::TwoLevelParts => {
            let part = bytes.div_ceil(case.parts());
            let across = case
                .among_leaders(part, case.parts())
                .best(Collective::Bcast);
            // The columns' long messages delay each other.
            let delay = if part > case.network.longest_packet(true) {
                across
            } else {
                Ends::default()
            };
            let scatter = case.inside_hosts(part).handed_out(part);
            Ends::all(scatter.last / 2 + scatter.mean / 2)
                .then(across)
                .then(delay)
                .then(case.inside_hosts(bytes).best(Collective::Allgather))
        }
        _ => case.down(|_| bytes, false),
    }
}

pub(super) fn gather(algorithm: Algorithm, case: &Case) -> Ends {
    let block = case.bytes;
    match algorithm {
        Algorithm::Binomial => case.up(case.blocks(block)),
        Algorithm::TwoLevel => {
            let bundle = block * case.spread.most;
            let inside = case.inside_hosts(block);
            let collected = match case.even {
                true => inside.best(Collective::Gather),
                false => inside.collected(LENGTH).then(inside.collected(block)),
            };
            case.collect(collected, case.among_leaders(bundle, 1).collected(bundle))
        }
        _ => case.collected(block),
    }
}

pub(super) fn scatter(algorithm: Algorithm, case: &Case) -> Ends {
    let block = case.bytes;
    match algorithm {
        Algorithm::Binomial => case.down(case.blocks(block), true),
        Algorithm::TwoLevel => {
            let bundle = block * case.spread.most;
            let (leaders, inside) = (case.among_leaders(bundle, 1), case.inside_hosts(block));
            let across = leaders.handed_out(bundle);
            match case.even {
                true => across.then(inside.best(Collective::Scatter)),
                // The lengths arrive just before the blocks.
                false => {
                    let lengths = Ends::all(leaders.network.message(LENGTH as u64, true).receiving);
                    across.then(lengths).then(inside.handed_out(block))
                }
            }
        }
        _ => case.handed_out(block),
    }
}

pub(super) fn allgather(algorithm: Algorithm, case: &Case) -> Ends {
    let block = case.bytes.div_ceil(case.ranks.max(1));
    match algorithm {
        Algorithm::Bruck => {
            let blocks = case.blocks(block);
            Ends::all(case.shifts(blocks))
        }
        Algorithm::RecursiveDoubling => Ends::all(case.doubling(|distance| distance * block)),
        Algorithm::Linear => Ends::all(case.alltoall_at_once(block)),
        Algorithm::CachedRing => Ends::all(case.cached_ring(block)),
        Algorithm::TwoLevel => {
            let inside = Ends::all(case.inside_hosts(block).collected(block).last);
            inside
                .then(
                    case.among_leaders(case.bytes, 1)
                        .best(Collective::Allgather),
                )
                .then(case.inside_hosts(case.bytes).best(Collective::Bcast))
        }
        Algorithm::TwoLevelParts => {
            let column = block * case.spread.hosts;
            let across = case
                .among_leaders(column, case.parts())
                .best(Collective::Allgather);
            across.then(case.inside_hosts(case.bytes).best(Collective::Allgather))
        }
        _ => Ends::all(case.ring(case.ranks - 1, block)),
    }
}

pub(super) fn alltoall(algorithm: Algorithm, case: &Case) -> Ends {
    let block = case.bytes;
    match algorithm {
        Algorithm::Pairwise => Ends::all(
            (1..case.ranks)
                .map(|distance| case.shift(distance, block))
                .sum(),
        ),
        Algorithm::Bruck => {
            let half = block * case.ranks.div_ceil(2);
            Ends::all(case.shifts(|_| half))
        }
        Algorithm::TwoLevel => {
            let most = case.spread.most;
            let inside = case.inside_hosts(block * case.ranks);
            let across = case.among_leaders(block * most * most, 1);
            Ends::all(inside.best(Collective::Gather).last)
                .then(across.best(Collective::Alltoall))
                .then(inside.best(Collective::Scatter))
        }
        _ => Ends::all(case.alltoall_at_once(block)),
    }
}

pub(super) fn reduce(algorithm: Algorithm, case: &Case) -> Ends {
    let bytes = case.bytes;
    match algorithm {
        Algorithm::Rabenseifner => {
            let part = bytes.div_ceil(case.ranks.max(1));
            let halving = case.fold(bytes) + case.halving(bytes);
            // A rank combines into a copy of its vector.
            let own = case.network.copy(bytes as u64) + case.combining(bytes, bytes - part);
            Ends::all(halving + own).then(case.collected(part))
        }
        Algorithm::KAry => case.up_branches(bytes, case.tree_arity()),
        Algorithm::TwoLevel => {
            let inside = case.inside_hosts(bytes).best(Collective::Reduce);
            case.collect(
                inside,
                case.among_leaders(bytes, 1).best(Collective::Reduce),
            )
        }
        _ => case.combined(),
    }
}

pub(super) fn allreduce(algorithm: Algorithm, case: &Case) -> Ends {
    let bytes = case.bytes;
    match algorithm {
        Algorithm::Ring => {
            let part = bytes.div_ceil(case.ranks.max(1));
            let combining = case.network.combining(bytes - part);
            Ends::all(case.ring(2 * (case.ranks - 1), part) + combining)
        }
        Algorithm::ReduceBcast => Ends::all(case.combined().last).then(case.down(|_| bytes, false)),
        Algorithm::Rabenseifner => {
            let combining = case.combining(bytes, bytes - bytes / case.folded().ranks);
            Ends::all(case.fold_and_unfold(bytes) + 2 * case.halving(bytes) + combining)
        }
        Algorithm::TwoLevel => {
            let inside = case.inside_hosts(bytes);
            Ends::all(inside.best(Collective::Reduce).last)
                .then(case.among_leaders(bytes, 1).best(Collective::Allreduce))
                .then(inside.best(Collective::Bcast))
        }
        Algorithm::TwoLevelParts => {
            let part = bytes.div_ceil(case.parts());
            let inside = case.inside_hosts(bytes);
            inside
                .best(Collective::ReduceScatter)
                .then(
                    case.among_leaders(part, case.parts())
                        .best(Collective::Allreduce),
                )
                .then(inside.best(Collective::Allgather))
        }
        _ => {
            let folded = case.folded();
            let rounds = folded.ranks.ilog2() as usize;
            let combining = case.combining(bytes, rounds * bytes);
            Ends::all(case.fold_and_unfold(bytes) + folded.doubling(|_| bytes) + combining)
        }
    }
}

pub(super) fn reduce_scatter(algorithm: Algorithm, case: &Case) -> Ends {
    let bytes = case.bytes;
    let part = bytes.div_ceil(case.ranks.max(1));
    // Of the parts that the other ranks send.
    let others = case.network.combining((case.ranks - 1) * part);
    match algorithm {
        Algorithm::RecursiveHalving => {
            let folded = case.folded();
            let halving = folded.doubling(|distance| bytes * distance / folded.ranks);
            let combining = case.combining(bytes, bytes - bytes / folded.ranks);
            Ends::all(case.fold(bytes) + halving + case.fold(part) + combining)
        }
        Algorithm::Pairwise => Ends::all(
            (1..case.ranks)
                .map(|distance| case.shift(distance, part))
                .sum::<u64>()
                + others,
        ),
        Algorithm::Linear => Ends::all(case.alltoall_at_once(part) + others),
        Algorithm::CachedRing => Ends::all(case.cached_ring(part) + others),
        Algorithm::TwoLevel => {
            let inside = Ends::all(case.inside_hosts(bytes).best(Collective::Reduce).last);
            inside
                .then(case.among_leaders(bytes, 1).best(Collective::ReduceScatter))
                .then(case.inside_hosts(part).handed_out(part))
        }
        _ => Ends::all(case.combined().last).then(case.handed_out(part)),
    }
}

/// `of`: the operation itself, which also takes place on each level.
pub(super) fn scan(of: Collective, algorithm: Algorithm, case: &Case) -> Ends {
    let bytes = case.bytes;
    match algorithm {
        Algorithm::Chain => {
            let combining = (case.ranks as u64 - 1) * case.network.combining(bytes);
            let chain = case.chain_of_whole(bytes) + combining;
            Ends {
                mean: chain / 2,
                last: chain,
            }
        }
        Algorithm::TwoLevel => {
            let inside = case.inside_hosts(bytes);
            Ends::all(inside.best(of).last)
                .then(case.among_leaders(bytes, 1).best(of))
                .then(inside.best(Collective::Bcast))
        }
        _ => {
            let rounds = case.ranks.next_power_of_two().ilog2() as usize;
            Ends::all(case.doubling(|_| bytes) + case.network.combining(rounds * bytes))
        }
    }
}
