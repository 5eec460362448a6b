//! All-to-all exchange (MPI 5.0 §6.8).

use super::blocks::Blocks;
use super::call::Call;
use crate::Result;
use crate::algorithms::{Algorithm, Case, Collective};

/// Ranks whose messages are in flight at once.
const WINDOW: usize = 32;

/// An exchange without levels.
pub(super) async fn flat(call: &Call<'_>, give: &Blocks, take: &Blocks) -> Result<()> {
    run(call, choose(call, take), Some(give), take).await
}

fn choose(call: &Call<'_>, take: &Blocks) -> Algorithm {
    // Blocks of different sizes are known to pairs only: the choice must not depend on them.
    let even = take.is_even();
    let case = Case {
        even,
        ..call.case(if even { take.len(0) } else { 0 })
    };
    call.choose(Collective::Alltoall, case)
}

/// Runs an algorithm without levels, or the one in place if there is nothing to `give`.
pub(super) async fn run(
    call: &Call<'_>,
    algorithm: Algorithm,
    give: Option<&Blocks>,
    take: &Blocks,
) -> Result<()> {
    let Some(give) = give else {
        return in_place(call, take).await;
    };
    give.part(call.me()).copy_to(&take.part(call.me()));
    match algorithm {
        Algorithm::Bruck => bruck(call, give, take).await,
        Algorithm::Pairwise => windows(call, give, take, 1).await,
        _ => windows(call, give, take, WINDOW).await,
    }
}

/// Exchanges with `window` ranks at once. Empty blocks are not sent.
async fn windows(call: &Call<'_>, give: &Blocks, take: &Blocks, window: usize) -> Result<()> {
    for first in (1..call.size()).step_by(window) {
        let steps = first..call.size().min(first + window);
        let mut pending = Vec::new();
        for from in steps
            .clone()
            .map(|step| call.before(step))
            .filter(|&from| take.len(from) > 0)
        {
            pending.push(call.receive(from, take.part(from))?);
        }
        for to in steps
            .map(|step| call.after(step))
            .filter(|&to| give.len(to) > 0)
        {
            pending.push(call.send(to, give.part(to))?);
        }
        for one in pending {
            one.await?;
        }
    }
    Ok(())
}

/// Few messages of many blocks: for blocks of one size.
async fn bruck(call: &Call<'_>, give: &Blocks, take: &Blocks) -> Result<()> {
    let (size, each) = (call.size(), give.len(0));
    let room = call.bytes(size * each)?;
    let half = size.div_ceil(2).max(size.next_power_of_two() / 2) * each;
    let (out, into) = (call.bytes(half)?, call.bytes(half)?);
    let place = |step: usize| room.slice(step * each, each);
    for step in 0..size {
        give.part(call.after(step)).copy_to(&place(step));
    }
    let mut distance = 1;
    while distance < size {
        let travel = || {
            (distance..size)
                .filter(|step| step & distance != 0)
                .enumerate()
        };
        for (at, step) in travel() {
            place(step).copy_to(&out.slice(at * each, each));
        }
        let len = travel().count() * each;
        call.exchange(
            call.after(distance),
            out.slice(0, len),
            call.before(distance),
            into.slice(0, len),
        )
        .await?;
        for (at, step) in travel() {
            into.slice(at * each, each).copy_to(&place(step));
        }
        distance *= 2;
    }
    for step in 1..size {
        place(step).copy_to(&take.part(call.before(step)));
    }
    Ok(())
}

/// Pairs of ranks exchange in rounds, each from a copy of its block.
pub(super) async fn in_place(call: &Call<'_>, all: &Blocks) -> Result<()> {
    for round in 0..call.size() {
        let partner = (round + call.size() - call.me()) % call.size();
        let part = all.part(partner);
        if partner == call.me() || part.is_empty() {
            continue;
        }
        let copy = call.bytes(part.len())?;
        part.copy_to(&copy);
        call.exchange(partner, copy, partner, part).await?;
    }
    Ok(())
}
