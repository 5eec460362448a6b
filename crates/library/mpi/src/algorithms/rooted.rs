//! Times of operations with a root, rank by rank: along one tree, or along one tree within each
//! host and one among leaders.
//!
//! Ranks do not begin such an operation together: those that left the previous operation last find
//! its messages there already. So each algorithm is simulated after a barrier, as in a program that
//! calls it again and again.

use super::pieces::LEVEL_PIECE;
use super::trees::Ends;
use super::{Algorithm, Case, Collective, cheapest_flat, ends};
use crate::shape::Spread;

/// The times at which the ranks end if they start at `starts`, in nanoseconds. `None`: the
/// algorithm has no cost model rank by rank.
pub(super) fn times(
    of: Collective,
    algorithm: Algorithm,
    case: &Case,
    starts: &[u64],
) -> Option<Vec<u64>> {
    use Algorithm as A;
    use Collective as C;
    let bytes = case.bytes;
    Some(match (of, algorithm) {
        (C::Bcast, A::Binomial) => case.down_from(starts, |_| bytes, false),
        (C::Bcast, A::KAry) => case.down_branches_from(starts, bytes, case.tree_arity()),
        (C::Bcast | C::Scatter, A::Linear) => case.handed_out_from(starts, bytes),
        (C::Scatter, A::Binomial) => case.down_from(starts, case.blocks(bytes), true),
        (C::Gather, A::Binomial) => case.up_from(starts, case.blocks(bytes)),
        (C::Gather, A::Linear) => case.collected_from(starts, bytes),
        (C::Reduce, A::Binomial) => case.combined_from(starts),
        (C::Reduce, A::KAry) => case.up_branches_from(starts, bytes, case.tree_arity()),
        (C::Bcast | C::Scatter, A::TwoLevel) => levels_down(of, case, starts)?,
        (C::Gather | C::Reduce, A::TwoLevel) => levels_up(of, case, starts)?,
        _ => return None,
    })
}

/// The end times of a flat (not two-level) algorithm; if it has no cost model rank by rank, the
/// mean of its formula for all ranks.
fn flat(of: Collective, algorithm: Algorithm, case: &Case, starts: &[u64]) -> Vec<u64> {
    times(of, algorithm, case, starts).unwrap_or_else(|| {
        let begun = starts.iter().copied().max().unwrap_or(0);
        vec![begun + ends(of, algorithm, case).mean; case.ranks]
    })
}

/// The end times of the operation `of` by the cheapest flat (not two-level) algorithm.
fn best(of: Collective, case: &Case, starts: &[u64]) -> Vec<u64> {
    match cheapest_flat(of, case) {
        Some(algorithm) => flat(of, algorithm, case, starts),
        None => starts.to_vec(),
    }
}

/// The case among the leaders; `None` if the two levels have no cost model rank by rank.
fn leaders(of: Collective, case: &Case) -> Option<Case> {
    let most = case.spread.most.max(1);
    let bundles = matches!(of, Collective::Gather | Collective::Scatter);
    let followed = case.spread.contiguous
        && (case.even || !bundles)
        && (of != Collective::Bcast || case.bytes <= LEVEL_PIECE);
    let bytes = if bundles {
        case.bytes * most
    } else {
        case.bytes
    };
    let hosts = case.ranks.div_ceil(most);
    followed.then(|| Case {
        ranks: hosts,
        spread: Spread::leaders(hosts, 1),
        ..case.among_leaders(bytes, 1)
    })
}

/// The case among the ranks of one host.
fn host(case: &Case, ranks: usize) -> Case {
    Case {
        ranks,
        spread: Spread::one_host(ranks),
        ..*case
    }
}

fn first_of_each(starts: &[u64], most: usize) -> Vec<u64> {
    starts.iter().copied().step_by(most).collect()
}

fn levels_down(of: Collective, case: &Case, starts: &[u64]) -> Option<Vec<u64>> {
    let (across, most) = (leaders(of, case)?, case.spread.most.max(1));
    let begun = first_of_each(starts, most);
    let mut leaders = match of {
        Collective::Scatter => across.handed_out_from(&begun, across.bytes),
        _ => best(of, &across, &begun),
    };
    // The root of a scatter sends its own host's blocks while devices move the others.
    let end = leaders[0];
    if of == Collective::Scatter {
        leaders[0] = begun[0] + across.sending_to_all();
    }
    let of_host = |(starts, leader): (&[u64], u64)| {
        let mut starts = starts.to_vec();
        starts[0] = leader;
        best(of, &host(case, starts.len()), &starts)
    };
    let hosts = starts.chunks(most).zip(leaders);
    let mut times: Vec<u64> = hosts.flat_map(of_host).collect();
    times[0] = times[0].max(end);
    Some(times)
}

fn levels_up(of: Collective, case: &Case, starts: &[u64]) -> Option<Vec<u64>> {
    let (across, most) = (leaders(of, case)?, case.spread.most.max(1));
    let of_host = |starts: &[u64]| best(of, &host(case, starts.len()), starts);
    let mut times: Vec<u64> = starts.chunks(most).flat_map(of_host).collect();
    let begun = first_of_each(&times, most);
    let leaders = match of {
        Collective::Gather => across.collected_from(&begun, across.bytes),
        _ => best(of, &across, &begun),
    };
    for (time, leader) in times.iter_mut().step_by(most).zip(leaders) {
        *time = leader;
    }
    Some(times)
}

/// The end times of an algorithm whose ranks start together. `None`: the algorithm has no cost
/// model rank by rank.
pub(super) fn together(of: Collective, algorithm: Algorithm, case: &Case) -> Option<Ends> {
    let times = times(of, algorithm, case, &case.together())?;
    Some(Ends::of(&times))
}

/// The end times of an algorithm after a barrier, each counted from the start of its rank. `None`:
/// the algorithm has no cost model rank by rank.
pub(super) fn behind_barrier(of: Collective, algorithm: Algorithm, case: &Case) -> Option<Ends> {
    // Whether there is a model does not depend on the start times.
    times(of, algorithm, case, &case.together())?;
    Some(case.behind_barrier(|starts| {
        times(of, algorithm, case, starts).unwrap_or_else(|| starts.to_vec())
    }))
}
