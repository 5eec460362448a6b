//! Costs of algorithms: pure functions of a [`Case`], in nanoseconds.
//!
//! An algorithm is a series of steps whose costs are in `pattern_costs`.
//!
//! Combining operands takes the time of a copy: recursive doubling combines the whole vector in
//! each step, the algorithms that divide the vector combine it once.

use super::pieces::LEVEL_PIECE;
use super::trees::Ends;
use super::{Algorithm, Case, Collective};

/// Bytes of the message that carries the length of a block.
const LENGTH: usize = 8;

impl Case {
    /// The end times of the operation `of` in this case, by the cheapest flat (not two-level)
    /// algorithm.
    fn best(&self, of: Collective) -> Ends {
        let Some(algorithm) = super::cheapest_flat(of, self) else {
            return Ends::default();
        };
        let followed = super::rooted::together(of, algorithm, self);
        followed.unwrap_or_else(|| super::ends(of, algorithm, self))
    }

    /// The end times of a step within each host for which only the leader waits, followed by a step
    /// among the leaders.
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
            // While the last piece is broadcast within hosts, all others already have been.
            let pieces = bytes.div_ceil(LEVEL_PIECE).max(1) as u64;
            let inside = case
                .inside_hosts(bytes.min(LEVEL_PIECE))
                .best(Collective::Bcast);
            let across = case.among_leaders(bytes, 1).best(Collective::Bcast);
            let behind = ((pieces - 1) * inside.last).saturating_sub(across.last);
            // Long messages occupy the first leaders while they are sent on.
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
    // The time of combining the parts that the other ranks send.
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

/// The end times of MPI_Scan or MPI_Exscan. `of` is that collective: the two-level algorithm
/// performs it within each host and among the leaders.
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
