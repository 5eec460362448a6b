//! Reductions in which each rank gets a part of the vectors from all others.
//!
//! Invariant: operands are combined from the last rank down.

use std::ops::Range;

use datatype::Elements;

use super::allgather;
use super::blocks::Blocks;
use super::call::Call;
use super::gather::gather_linear;
use super::reduction::{Counts, Reduction};
use crate::Result;

/// Each rank combines a part of the vectors, from the last rank down, and sends it to the root or
/// to all others.
pub(super) async fn whole(call: &Call<'_>, work: &Reduction, root: Option<usize>) -> Result<()> {
    let Some(ours) = work.ours() else {
        return Ok(());
    };
    let (me, size, count) = (call.me(), call.size(), ours.count());
    let start = |member: usize| count * member / size;
    let lens = (0..size).map(|member| start(member + 1) - start(member));
    let counts = Counts::Each(lens.collect());
    let gets = root.is_none_or(|root| root == me);
    let all = work.receive.as_ref().filter(|_| gets);
    let own = match all {
        Some(all) => part(all, counts.elements(me..me + 1)),
        None => call.elements(counts.of(me), ours.ty())?,
    };
    let scattered = Reduction {
        send: Some(ours.clone()),
        receive: Some(own.clone()),
        op: work.op.clone(),
    };
    parts(call, &scattered, &counts).await?;
    let all = all.map(|all| {
        let part = |member| part(all, counts.elements(member..member + 1)).buffer();
        Blocks::Each((0..size).map(part).collect())
    });
    match (root, all) {
        (None, Some(all)) => allgather::linear(call, &all).await,
        (Some(root), all) => {
            let own = own.buffer();
            gather_linear(call, (me != root).then_some(&own), all.as_ref(), root).await
        }
        (None, None) => Ok(()),
    }
}

/// Each rank receives its part from all others at once, and combines the parts in the order of
/// ranks.
pub(super) async fn parts(call: &Call<'_>, work: &Reduction, counts: &Counts) -> Result<()> {
    let Some(ours) = work.ours() else {
        return Ok(());
    };
    let of = |rank: usize| part(ours, counts.elements(rank..rank + 1));
    let own = of(call.me());
    let mut receives = Vec::with_capacity(call.size());
    for from in (0..call.size()).rev().filter(|&from| from != call.me()) {
        let theirs = call.elements(own.count(), own.ty())?;
        let receiving = match own.count() {
            0 => None,
            _ => Some(call.receive(from, theirs.buffer())?),
        };
        receives.push((from, theirs, receiving));
    }
    let mut sends = Vec::with_capacity(call.size());
    for to in (1..call.size()).map(|steps| call.after(steps)) {
        if counts.of(to) > 0 {
            sends.push(call.send(to, of(to).buffer())?);
        }
    }
    // From the last rank to the first: the operand of the lower rank is the first one. The sum
    // starts in memory of its own, since contributions in place are still being sent.
    let mut sum: Option<Elements> = None;
    let mut add = |theirs: Elements| match &sum {
        Some(sum) => call.combine(&work.op, &theirs, sum),
        None => {
            sum = Some(theirs);
            Ok(())
        }
    };
    let mut own_is_due = true;
    for (from, theirs, receiving) in receives {
        if own_is_due && from < call.me() {
            add(copy_of(call, &own)?)?;
            own_is_due = false;
        }
        if let Some(receiving) = receiving {
            receiving.await?;
            add(theirs)?;
        }
    }
    if own_is_due {
        add(copy_of(call, &own)?)?;
    }
    for sending in sends {
        sending.await?;
    }
    if let (Some(sum), Some(place)) = (sum, place(work, own.count())) {
        call.copy(&sum.buffer(), &place.buffer());
    }
    Ok(())
}

pub(super) fn part(of: &Elements, range: Range<usize>) -> Elements {
    of.part(range.start, range.len())
}

/// The memory for this rank's part of the result.
pub(super) fn place(work: &Reduction, count: usize) -> Option<Elements> {
    work.receive.as_ref().map(|receive| receive.part(0, count))
}

pub(super) fn copy_of(call: &Call<'_>, elements: &Elements) -> Result<Elements> {
    let copy = call.elements(elements.count(), elements.ty())?;
    call.copy(&elements.buffer(), &copy.buffer());
    Ok(copy)
}
