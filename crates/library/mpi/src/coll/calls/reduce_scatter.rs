//! Reductions whose result is scattered (MPI 5.0 §6.10).

use std::ops::Range;

use super::blocks::Blocks;
use super::call::Call;
use super::gather::scatter_linear;
use super::halves::Halves;
use super::linear_reduce::{self, copy_of, part, place};
use super::reduce::binomial;
use super::reduction::{Counts, Reduction};
use crate::Result;
use crate::algorithms::{Algorithm, Collective};

/// A flat (not two-level) reduction whose result is scattered.
pub(super) async fn flat(call: &Call<'_>, work: &Reduction, counts: &Counts) -> Result<()> {
    if work.is_empty() {
        return Ok(());
    }
    let algorithm = work.choose(call, Collective::ReduceScatter);
    run(call, algorithm, work, counts).await
}

/// Runs a flat (not two-level) algorithm for a reduction whose result is scattered.
pub(super) async fn run(
    call: &Call<'_>,
    algorithm: Algorithm,
    work: &Reduction,
    counts: &Counts,
) -> Result<()> {
    match algorithm {
        Algorithm::Linear => linear_reduce::parts(call, work, counts).await,
        Algorithm::CachedRing => cached_ring(&call.in_cache(), work, counts).await,
        Algorithm::RecursiveHalving => recursive_halving(call, work, counts).await,
        Algorithm::Pairwise => pairwise(call, work, counts).await,
        _ => through_one(call, work, counts).await,
    }
}

/// Reduces to rank 0, which scatters the result.
async fn through_one(call: &Call<'_>, work: &Reduction, counts: &Counts) -> Result<()> {
    let Some(ours) = work.ours() else {
        return Ok(());
    };
    let all = (call.me() == 0)
        .then(|| call.elements(ours.count(), ours.ty()))
        .transpose()?;
    let whole = Reduction {
        send: Some(ours.clone()),
        receive: all.clone(),
        op: work.op.clone(),
    };
    binomial(call, &whole, 0, 0).await?;
    let parts = all.map(|all| {
        Blocks::Each(
            (0..call.size())
                .map(|rank| part(&all, counts.elements(rank..rank + 1)).buffer())
                .collect(),
        )
    });
    let place = place(work, counts.of(call.me())).map(|place| place.buffer());
    scatter_linear(call, parts.as_ref(), place.as_ref(), 0).await
}

/// Partners exchange the halves that they do not need; each step halves the distance.
async fn recursive_halving(call: &Call<'_>, work: &Reduction, counts: &Counts) -> Result<()> {
    let Some(ours) = work.ours() else {
        return Ok(());
    };
    // The contribution must not change, even in place: only the result's part may be written.
    let sum = call.elements(ours.count(), ours.ty())?;
    call.copy(&ours.buffer(), &sum.buffer());
    let halves = Halves::of(call);
    let place = place(work, counts.of(call.me())).unwrap_or_else(|| sum.part(0, 0));
    if !halves.fold(call, &sum, &work.op).await? {
        return call.receive(call.me() + 1, place.buffer())?.await;
    }
    let me = halves.me.unwrap_or_default();
    let mut mine = 0..halves.size;
    while mine.len() > 1 {
        let middle = mine.start + mine.len() / 2;
        let lower = me < middle;
        let partner = halves.rank(if lower {
            me + mine.len() / 2
        } else {
            me - mine.len() / 2
        });
        let (keep, give) = if lower {
            (mine.start..middle, middle..mine.end)
        } else {
            (middle..mine.end, mine.start..middle)
        };
        let elements = |places: Range<usize>| part(&sum, counts.elements(halves.ranks(places)));
        call.exchange_and_combine(
            (partner, elements(give)),
            (partner, elements(keep.clone())),
            &work.op,
            !lower,
        )
        .await?;
        mine = keep;
    }
    if let Some(client) = halves.client(call) {
        call.send(
            client,
            part(&sum, counts.elements(client..client + 1)).buffer(),
        )?
        .await?;
    }
    call.copy(
        &part(&sum, counts.elements(call.me()..call.me() + 1)).buffer(),
        &place.buffer(),
    );
    Ok(())
}

/// Combines parts, in pieces, while they travel around a ring of all ranks.
async fn cached_ring(call: &Call<'_>, work: &Reduction, counts: &Counts) -> Result<()> {
    let Some(ours) = work.ours() else {
        return Ok(());
    };
    let sum = copy_of(call, ours)?;
    let of = |rank: usize| part(&sum, counts.elements(rank..rank + 1));
    for step in 1..call.size() {
        let (give, keep) = (of(call.before(step)), of(call.before(step + 1)));
        let (next, previous) = ((call.after(1), give), (call.before(1), keep));
        call.exchange_and_combine(next, previous, &work.op, true)
            .await?;
    }
    if let Some(place) = place(work, counts.of(call.me())) {
        call.copy(&of(call.me()).buffer(), &place.buffer());
    }
    Ok(())
}

/// Each rank receives its part of the result from one other rank after another.
async fn pairwise(call: &Call<'_>, work: &Reduction, counts: &Counts) -> Result<()> {
    let Some(ours) = work.ours() else {
        return Ok(());
    };
    let of = |rank: usize| part(ours, counts.elements(rank..rank + 1));
    let place = place(work, counts.of(call.me())).unwrap_or_else(|| ours.part(0, 0));
    // In place, the memory for the result still has contributions.
    let sum = if work.send.is_some() {
        place.clone()
    } else {
        call.elements(place.count(), place.ty())?
    };
    if !sum.is(&of(call.me())) {
        call.copy(&of(call.me()).buffer(), &sum.buffer());
    }
    for step in 1..call.size() {
        let (to, from) = (call.after(step), call.before(step));
        call.exchange_and_combine((to, of(to)), (from, sum.clone()), &work.op, true)
            .await?;
    }
    if !sum.is(&place) {
        call.copy(&sum.buffer(), &place.buffer());
    }
    Ok(())
}
