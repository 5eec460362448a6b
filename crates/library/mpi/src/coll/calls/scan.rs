//! Prefix reductions (MPI 5.0 §6.11).

use datatype::Elements;

use super::call::Call;
use super::reduction::Reduction;
use crate::Result;
use crate::algorithms::{Algorithm, Collective};

/// A flat (not two-level) scan.
pub(super) async fn flat(call: &Call<'_>, work: &Reduction, exclusive: bool) -> Result<()> {
    if work.is_empty() {
        return Ok(());
    }
    let algorithm = work.choose(call, Collective::Scan);
    run(call, algorithm, work, exclusive).await
}

/// Runs a flat (not two-level) algorithm. `exclusive`: the result leaves out this rank's
/// contribution, and rank 0 gets none.
pub(super) async fn run(
    call: &Call<'_>,
    algorithm: Algorithm,
    work: &Reduction,
    exclusive: bool,
) -> Result<()> {
    let (Some(ours), Some(receive)) = (work.ours(), &work.receive) else {
        return Ok(());
    };
    match algorithm {
        Algorithm::Chain => chain(call, work, ours, receive, exclusive).await,
        _ => recursive_doubling(call, work, ours, receive, exclusive).await,
    }
}

pub(super) fn copy(call: &Call<'_>, of: &Elements) -> Result<Elements> {
    let copy = call.elements(of.count(), of.ty())?;
    call.copy(&of.buffer(), &copy.buffer());
    Ok(copy)
}

/// After the exchange at distance d a rank has the sum of its block of 2d ranks, and the sum of the
/// ranks of that block up to itself.
async fn recursive_doubling(
    call: &Call<'_>,
    work: &Reduction,
    ours: &Elements,
    receive: &Elements,
    exclusive: bool,
) -> Result<()> {
    let mut block = copy(call, ours)?;
    let mut theirs = call.elements(ours.count(), ours.ty())?;
    // True once `receive` has a sum of earlier ranks.
    let mut begun = !exclusive;
    if begun && !receive.is(ours) {
        call.copy(&ours.buffer(), &receive.buffer());
    }
    let mut distance = 1;
    while distance < call.size() {
        let partner = call.me() ^ distance;
        if partner < call.size() {
            call.exchange(partner, block.buffer(), partner, theirs.buffer())
                .await?;
            if partner < call.me() {
                if begun {
                    call.combine(&work.op, &theirs, receive)?;
                } else {
                    call.copy(&theirs.buffer(), &receive.buffer());
                    begun = true;
                }
                call.combine(&work.op, &theirs, &block)?;
            } else {
                call.combine(&work.op, &block, &theirs)?;
                std::mem::swap(&mut block, &mut theirs);
            }
        }
        distance *= 2;
    }
    Ok(())
}

/// Each rank waits for the result of the rank before it.
async fn chain(
    call: &Call<'_>,
    work: &Reduction,
    ours: &Elements,
    receive: &Elements,
    exclusive: bool,
) -> Result<()> {
    let (first, last) = (call.me() == 0, call.me() + 1 == call.size());
    if !exclusive {
        if !receive.is(ours) {
            call.copy(&ours.buffer(), &receive.buffer());
        }
        if !first {
            let before = call.elements(ours.count(), ours.ty())?;
            call.receive(call.me() - 1, before.buffer())?.await?;
            call.combine(&work.op, &before, receive)?;
        }
        return if last {
            Ok(())
        } else {
            call.send(call.me() + 1, receive.buffer())?.await
        };
    }
    let through = copy(call, ours)?;
    if !first {
        call.receive(call.me() - 1, receive.buffer())?.await?;
        call.combine(&work.op, receive, &through)?;
    }
    if last {
        Ok(())
    } else {
        call.send(call.me() + 1, through.buffer())?.await
    }
}
