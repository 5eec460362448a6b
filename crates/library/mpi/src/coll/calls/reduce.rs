//! Reductions to one and to all (MPI 5.0 §6.9.1, §6.9.6).
//!
//! Invariants:
//! - operands are combined in the order of ranks unless the operation is commutative;
//! - all ranks of an allreduce get the same bits, because each pair combines in one order, or each
//!   part is computed once.

use std::ops::Range;

use datatype::Elements;

use super::call::Call;
use super::halves::Halves;
use super::reduction::Reduction;
use super::{bcast, linear_reduce, reduce_tree};
use crate::Result;
use crate::algorithms::{Algorithm, Collective};
use crate::op::Operation;

/// A flat (not two-level) reduction to one rank.
pub(super) async fn flat(call: &Call<'_>, work: &Reduction, root: usize) -> Result<()> {
    if work.is_empty() {
        return Ok(());
    }
    let algorithm = work.choose(call, Collective::Reduce);
    run_reduce(call, algorithm, work, root).await
}

/// Runs a flat (not two-level) algorithm for a reduction to one rank.
pub(super) async fn run_reduce(
    call: &Call<'_>,
    algorithm: Algorithm,
    work: &Reduction,
    root: usize,
) -> Result<()> {
    // A reduction in the order of ranks is collected at rank 0.
    let top = if work.op.is_commutative() { root } else { 0 };
    match algorithm {
        Algorithm::Rabenseifner => rabenseifner_to_one(call, work, root).await,
        Algorithm::Linear => Box::pin(linear_reduce::whole(call, work, Some(root))).await,
        Algorithm::KAry => Box::pin(reduce_tree::reduce(call, work, (root, top))).await,
        _ => binomial(call, work, root, top).await,
    }
}

/// Combines up a binomial tree whose root is `top`, and sends the result to `root`.
pub(super) async fn binomial(
    call: &Call<'_>,
    work: &Reduction,
    root: usize,
    top: usize,
) -> Result<()> {
    let Some(mut sum) = work.ours().cloned() else {
        return Ok(());
    };
    let place = call.before(top);
    // Memory that may be overwritten; never the user's send buffer.
    let mut spare = work.receive.clone().filter(|receive| !receive.is(&sum));
    let mut distance = 1;
    while distance < call.size() && place & distance == 0 {
        if place + distance < call.size() {
            let theirs = match spare.take() {
                Some(spare) => spare,
                None => call.elements(sum.count(), sum.ty())?,
            };
            call.receive(call.after(distance), theirs.buffer())?.await?;
            call.combine(&work.op, &sum, &theirs)?;
            spare = Some(std::mem::replace(&mut sum, theirs))
                .filter(|used| !work.send.as_ref().is_some_and(|s| s.is(used)));
        }
        distance *= 2;
    }
    if place > 0 {
        call.send(call.before(distance), sum.buffer())?.await?;
        if call.me() == root {
            let receive = work.receive.as_ref().unwrap_or(&sum);
            call.receive(top, receive.buffer())?.await?;
        }
    } else if call.me() == root {
        work.deliver(call, &sum);
    } else {
        call.send(root, sum.buffer())?.await?;
    }
    Ok(())
}

/// A flat (not two-level) reduction to all ranks.
pub(super) async fn allreduce_flat(call: &Call<'_>, work: &Reduction) -> Result<()> {
    if work.is_empty() {
        return Ok(());
    }
    let algorithm = work.choose(call, Collective::Allreduce);
    run_allreduce(call, algorithm, work).await
}

/// Runs a flat (not two-level) algorithm for a reduction to all ranks.
pub(super) async fn run_allreduce(
    call: &Call<'_>,
    algorithm: Algorithm,
    work: &Reduction,
) -> Result<()> {
    match algorithm {
        Algorithm::Rabenseifner => rabenseifner(call, work).await,
        Algorithm::Ring => ring(call, work).await,
        Algorithm::Linear => Box::pin(linear_reduce::whole(call, work, None)).await,
        Algorithm::ReduceBcast => {
            let (own, rest) = (
                call.me() == 0,
                Reduction {
                    receive: None,
                    send: work.ours().cloned(),
                    ..work.clone()
                },
            );
            binomial(call, if own { work } else { &rest }, 0, 0).await?;
            match &work.receive {
                Some(receive) => bcast::binomial(call, &receive.buffer(), 0).await,
                None => Ok(()),
            }
        }
        _ => recursive_doubling(call, work).await,
    }
}

/// Partners at distance 1, 2, 4… exchange their whole sums, and both compute the new sum.
pub(super) async fn recursive_doubling(call: &Call<'_>, work: &Reduction) -> Result<()> {
    let mut sum = work.accumulator(call)?;
    let halves = Halves::of(call);
    if !halves.fold(call, &sum, &work.op).await? {
        return halves.unfold(call, &sum).await;
    }
    let mut theirs = call.elements(sum.count(), sum.ty())?;
    let me = halves.me.unwrap_or_default();
    let mut distance = 1;
    while distance < halves.size {
        let partner = halves.rank(me ^ distance);
        call.exchange(partner, sum.buffer(), partner, theirs.buffer())
            .await?;
        // The lower ranks' operand comes first on both sides, so both compute the same bits.
        if me & distance == 0 {
            call.combine(&work.op, &sum, &theirs)?;
            std::mem::swap(&mut sum, &mut theirs);
        } else {
            call.combine(&work.op, &theirs, &sum)?;
        }
        distance *= 2;
    }
    work.deliver(call, &sum);
    halves.unfold(call, &sum).await
}

/// The range of elements that participant `me` still has after `steps` halvings.
fn half(me: usize, steps: u32, count: usize) -> Range<usize> {
    let mut range = 0..count;
    for step in 0..steps {
        let middle = range.start + range.len() / 2;
        range = if me >> step & 1 == 0 {
            range.start..middle
        } else {
            middle..range.end
        };
    }
    range
}

fn part(of: &Elements, range: Range<usize>) -> Elements {
    of.part(range.start, range.len())
}

/// Exchanges halves with each partner, the nearest first, so that sums of neighbours are combined
/// in the order of ranks.
async fn halve(
    call: &Call<'_>,
    halves: &Halves,
    me: usize,
    sum: &Elements,
    op: &Operation,
) -> Result<()> {
    for step in 0..halves.size.ilog2() {
        let (ours, theirs) = (
            half(me, step + 1, sum.count()),
            half(me ^ 1 << step, step + 1, sum.count()),
        );
        let partner = halves.rank(me ^ 1 << step);
        let (give, keep) = (part(sum, theirs), part(sum, ours));
        call.exchange_and_combine((partner, give), (partner, keep), op, me >> step & 1 == 1)
            .await?;
    }
    Ok(())
}

async fn rabenseifner(call: &Call<'_>, work: &Reduction) -> Result<()> {
    let sum = work.accumulator(call)?;
    let halves = Halves::of(call);
    if halves.fold(call, &sum, &work.op).await? {
        let me = halves.me.unwrap_or_default();
        halve(call, &halves, me, &sum, &work.op).await?;
        for step in (0..halves.size.ilog2()).rev() {
            let (ours, theirs) = (
                half(me, step + 1, sum.count()),
                half(me ^ 1 << step, step + 1, sum.count()),
            );
            let partner = halves.rank(me ^ 1 << step);
            call.exchange(
                partner,
                part(&sum, ours).buffer(),
                partner,
                part(&sum, theirs).buffer(),
            )
            .await?;
        }
    }
    halves.unfold(call, &sum).await
}

async fn rabenseifner_to_one(call: &Call<'_>, work: &Reduction, root: usize) -> Result<()> {
    let sum = work.accumulator(call)?;
    let halves = Halves::of(call);
    let steps = halves.size.ilog2();
    if halves.fold(call, &sum, &work.op).await? {
        halve(call, &halves, halves.me.unwrap_or_default(), &sum, &work.op).await?;
    }
    if call.me() != root {
        let Some(me) = halves.me else { return Ok(()) };
        return call
            .send(root, part(&sum, half(me, steps, sum.count())).buffer())?
            .await;
    }
    let others = (0..halves.size).filter(|&place| Some(place) != halves.me);
    let receives: Result<Vec<_>> = others
        .map(|place| {
            call.receive(
                halves.rank(place),
                part(&sum, half(place, steps, sum.count())).buffer(),
            )
        })
        .collect();
    for receiving in receives? {
        receiving.await?;
    }
    work.deliver(call, &sum);
    Ok(())
}

/// Reduces by a ring of all ranks: blocks are combined while they travel around it once, and the
/// results travel around it once more.
async fn ring(call: &Call<'_>, work: &Reduction) -> Result<()> {
    let sum = work.accumulator(call)?;
    let size = call.size();
    // Block p is complete at rank p - 1.
    let block = |part: usize| {
        let (start, end) = (sum.count() * part / size, sum.count() * (part + 1) / size);
        sum.part(start, end - start)
    };
    let (next, previous) = (call.after(1), call.before(1));
    for step in 0..size - 1 {
        let (give, keep) = (block(call.before(step)), block(call.before(step + 1)));
        call.exchange_and_combine((next, give), (previous, keep), &work.op, true)
            .await?;
    }
    for step in 0..size - 1 {
        let (ours, theirs) = (
            block((call.before(step) + 1) % size),
            block(call.before(step)),
        );
        call.exchange(next, ours.buffer(), previous, theirs.buffer())
            .await?;
    }
    Ok(())
}
