//! Reductions in two levels.
//!
//! Invariant: operands are combined in the order of ranks within each host, then in the order of
//! hosts. This is the order of ranks if the ranks of each host are consecutive.

use std::ops::Range;

use datatype::{Buffer, Elements};

use super::allgather;
use super::bcast;
use super::blocks::Blocks;
use super::both::both;
use super::call::Call;
use super::gather::scatter_linear;
use super::reduce;
use super::reduce_scatter;
use super::reduction::{Counts, Reduction};
use super::scan;
use super::two_level::{Column, Levels, inside};
use crate::Result;

/// The least bytes of a rank's part of a piece, unless the vector is one piece.
const PART: usize = 64 << 10;
/// The greatest number of pieces into which a vector is divided.
const PIECES: usize = 4;

/// Reduces to the leader of each host, then among the leaders to all, then broadcasts within each
/// host.
pub(super) async fn allreduce(call: &Call<'_>, work: &Reduction) -> Result<()> {
    let (Some(ours), Some(result)) = (work.ours(), &work.receive) else {
        return Ok(());
    };
    let levels = Levels::new(call);
    let (inside, across) = (levels.inside(call), levels.across(call));
    reduce::flat(&inside, &to_leader(work, ours, across.is_some()), 0).await?;
    if let Some(across) = across {
        reduce::allreduce_flat(&across, &in_place(work, result)).await?;
    }
    bcast::flat(&inside, &result.buffer(), 0).await
}

/// The arguments of the reduction within a host, whose leader gets the result. `leads`: this rank
/// is the leader.
fn to_leader(work: &Reduction, ours: &Elements, leads: bool) -> Reduction {
    match leads {
        true => work.clone(),
        false => Reduction {
            send: Some(ours.clone()),
            receive: None,
            op: work.op.clone(),
        },
    }
}

/// The arguments of a reduction in place of the vectors in `result`.
fn in_place(work: &Reduction, result: &Elements) -> Reduction {
    Reduction {
        send: None,
        receive: Some(result.clone()),
        op: work.op.clone(),
    }
}

/// The range of the elements of part `number` of `parts`.
fn part(count: usize, parts: usize, number: usize) -> Range<usize> {
    let number = number.min(parts);
    count * number / parts..count * (number + 1).min(parts) / parts
}

/// Each host scatters the sum of its vectors among its first ranks; each of these combines its part
/// with those of the other hosts and sends it to the other ranks of its host. The pieces of a long
/// vector overlap in the three steps.
pub(super) async fn allreduce_parts(call: &Call<'_>, work: &Reduction) -> Result<()> {
    let (Some(ours), Some(result)) = (work.ours(), &work.receive) else {
        return Ok(());
    };
    let parts = call.shape().spread().least;
    let column = Column::of(call, parts);
    let pieces = (ours.bytes() / parts / PART).clamp(1, PIECES);
    let piece = |of: &Elements, number: usize| {
        let range = part(of.count(), pieces, number);
        of.part(range.start, range.len())
    };
    let scatter = async |number: usize| {
        scatter_inside(
            call,
            work,
            &piece(ours, number),
            &piece(result, number),
            parts,
        )
        .await
    };
    let combine = async |number: usize| {
        let Some(column) = &column else { return Ok(()) };
        let across = column.across(call);
        let result = own_part(call, &piece(result, number), parts);
        reduce::allreduce_flat(&across, &in_place(work, &result)).await
    };
    let gather = async |number: usize| allgather_inside(call, &piece(result, number), parts).await;
    // While the hosts combine a piece, the ranks of a host copy the pieces before and after it.
    scatter(0).await?;
    for number in 0..=pieces {
        let beside = async {
            if number > 0 {
                gather(number - 1).await?;
            }
            match number + 1 < pieces {
                true => scatter(number + 1).await,
                false => Ok(()),
            }
        };
        match number < pieces {
            true => both(combine(number), beside).await?,
            false => beside.await?,
        }
    }
    Ok(())
}

/// This rank's part of a vector that the first `parts` ranks of its host divide.
fn own_part(call: &Call<'_>, whole: &Elements, parts: usize) -> Elements {
    let range = part(whole.count(), parts, call.shape().place(call.me()));
    whole.part(range.start, range.len())
}

/// Reduces within the host to its first `parts` ranks. Each gets its part at the part's position in
/// `result`.
async fn scatter_inside(
    call: &Call<'_>,
    work: &Reduction,
    ours: &Elements,
    result: &Elements,
    parts: usize,
) -> Result<()> {
    let inside = inside(call);
    let counts = (0..inside.size()).map(|place| part(ours.count(), parts, place).len());
    let reduction = Reduction {
        send: Some(ours.clone()),
        receive: Some(own_part(call, result, parts)),
        op: work.op.clone(),
    };
    reduce_scatter::flat(&inside, &reduction, &Counts::Each(counts.collect())).await
}

/// Collects the parts of `result` that the first `parts` ranks of the host have.
async fn allgather_inside(call: &Call<'_>, result: &Elements, parts: usize) -> Result<()> {
    let inside = inside(call);
    let count = result.count();
    let blocks = match parts == inside.size() && count.is_multiple_of(parts) {
        true => Blocks::even(result.buffer(), parts),
        false => Blocks::Each(
            (0..inside.size())
                .map(|place| {
                    let range = part(count, parts, place);
                    result.part(range.start, range.len()).buffer()
                })
                .collect(),
        ),
    };
    allgather::flat(&inside, None, &blocks).await
}

/// Reduces to the leader of each host, then among the leaders to the root.
pub(super) async fn reduce(call: &Call<'_>, work: &Reduction, root: usize) -> Result<()> {
    let Some(ours) = work.ours() else {
        return Ok(());
    };
    let levels = Levels::rooted(call, root);
    let (inside, across) = (levels.inside(call), levels.across(call));
    let leader = levels.leader();
    let Some(across) = across else {
        return reduce::flat(&inside, &to_leader(work, ours, false), leader).await;
    };
    // Memory for the sum of this host: on the root the memory for the result.
    let sum = match &work.receive {
        Some(receive) => receive.clone(),
        None => call.elements(ours.count(), ours.ty())?,
    };
    let of_host = Reduction {
        receive: Some(sum.clone()),
        ..work.clone()
    };
    reduce::flat(&inside, &of_host, leader).await?;
    let to_root = match call.me() == root {
        true => in_place(work, &sum),
        false => to_leader(work, &sum, false),
    };
    reduce::flat(&across, &to_root, levels.shape.host_of(root)).await
}

/// Reduces to the leader of each host, scatters the result among the leaders, then within each
/// host.
pub(super) async fn reduce_scatter(
    call: &Call<'_>,
    work: &Reduction,
    counts: &Counts,
) -> Result<()> {
    let Some(ours) = work.ours() else {
        return Ok(());
    };
    let levels = Levels::new(call);
    let (inside, across) = (levels.inside(call), levels.across(call));
    let of_host = |host: &Vec<u32>| {
        let (first, last) = (host[0] as usize, host[host.len() - 1] as usize);
        counts.elements(first..last + 1)
    };
    let own = counts.of(call.me());
    let place: Option<Buffer> = work
        .receive
        .as_ref()
        .map(|receive| receive.part(0, own).buffer());
    let Some(across) = across else {
        reduce::flat(&inside, &to_leader(work, ours, false), 0).await?;
        return scatter_linear(&inside, None, place.as_ref(), 0).await;
    };
    let sum = call.elements(ours.count(), ours.ty())?;
    let of_ranks = Reduction {
        send: Some(ours.clone()),
        receive: Some(sum.clone()),
        op: work.op.clone(),
    };
    reduce::flat(&inside, &of_ranks, 0).await?;
    let mine = of_host(&levels.hosts()[levels.host]);
    let kept = call.elements(mine.len(), ours.ty())?;
    let of_hosts = Reduction {
        send: Some(sum),
        receive: Some(kept.clone()),
        op: work.op.clone(),
    };
    let each = levels.hosts().iter().map(|host| of_host(host).len());
    reduce_scatter::flat(&across, &of_hosts, &Counts::Each(each.collect())).await?;
    let blocks = levels.members().iter().map(|&member| {
        let range = counts.elements(member as usize..member as usize + 1);
        kept.part(range.start - mine.start, range.len()).buffer()
    });
    let blocks = Blocks::Each(blocks.collect());
    scatter_linear(&inside, Some(&blocks), place.as_ref(), 0).await
}

/// A scan within each host, then among the last ranks of the hosts, whose result is added on each
/// host. The last rank of a host has the host's sum.
pub(super) async fn scan(call: &Call<'_>, work: &Reduction, exclusive: bool) -> Result<()> {
    let (Some(ours), Some(result)) = (work.ours(), &work.receive) else {
        return Ok(());
    };
    let levels = Levels::of_last(call);
    let (inside, across) = (levels.inside(call), levels.across(call));
    // In place, the contribution is overwritten before it is used again.
    let kept = match exclusive && work.send.is_none() {
        true => scan::copy(call, ours)?,
        false => ours.clone(),
    };
    scan::flat(&inside, work, exclusive).await?;
    let before = call.elements(ours.count(), ours.ty())?;
    if let Some(across) = across {
        let sum = match exclusive {
            true => scan::copy(call, &kept)?,
            false => result.clone(),
        };
        if exclusive && inside.me() > 0 {
            call.combine(&work.op, result, &sum)?;
        }
        let of_hosts = Reduction {
            send: Some(sum),
            receive: Some(before.clone()),
            op: work.op.clone(),
        };
        scan::flat(&across, &of_hosts, true).await?;
    }
    if levels.host == 0 {
        return Ok(());
    }
    bcast::flat(&inside, &before.buffer(), levels.leader()).await?;
    if exclusive && inside.me() == 0 {
        call.copy(&before.buffer(), &result.buffer());
        return Ok(());
    }
    call.combine(&work.op, &before, result)
}
