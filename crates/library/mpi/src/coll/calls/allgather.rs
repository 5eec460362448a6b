//! Gathering to all (MPI 5.0 §6.7).

use datatype::Buffer;

use super::blocks::Blocks;
use super::call::Call;
use crate::Result;
use crate::algorithms::{Algorithm, Case, Collective};

/// A flat (not two-level) allgather. `ours` is `None` if this rank's block is in `all` already.
pub(super) async fn flat(call: &Call<'_>, ours: Option<&Buffer>, all: &Blocks) -> Result<()> {
    if all.total() == 0 {
        return Ok(());
    }
    if let Some(ours) = ours {
        call.copy(ours, &all.part(call.me()));
    }
    run(call, choose(call, all), all).await
}

fn choose(call: &Call<'_>, all: &Blocks) -> Algorithm {
    let case = Case {
        even: all.is_even(),
        ..call.case(all.total())
    };
    call.choose(Collective::Allgather, case)
}

/// Runs a flat (not two-level) algorithm. This rank's block is in `all` already.
pub(super) async fn run(call: &Call<'_>, algorithm: Algorithm, all: &Blocks) -> Result<()> {
    match algorithm {
        Algorithm::Linear => linear(call, all).await,
        Algorithm::CachedRing => cached_ring(&call.in_cache(), all).await,
        Algorithm::RecursiveDoubling => recursive_doubling(call, all).await,
        Algorithm::Bruck => bruck(call, all).await,
        _ => ring(call, all).await,
    }
}

/// Each rank sends its block to each other rank.
pub(super) async fn linear(call: &Call<'_>, all: &Blocks) -> Result<()> {
    let mut pending = Vec::with_capacity(2 * call.size());
    for from in (1..call.size()).map(|steps| call.before(steps)) {
        pending.push(call.receive(from, all.part(from))?);
    }
    for to in (1..call.size()).map(|steps| call.after(steps)) {
        pending.push(call.send(to, all.part(call.me()))?);
    }
    for one in pending {
        one.await?;
    }
    Ok(())
}

/// Each rank passes on to its successor, in a ring, the block that it received last.
async fn ring(call: &Call<'_>, all: &Blocks) -> Result<()> {
    for step in 1..call.size() {
        let (ours, theirs) = (call.before(step - 1), call.before(step));
        call.exchange(
            call.after(1),
            all.part(ours),
            call.before(1),
            all.part(theirs),
        )
        .await?;
    }
    Ok(())
}

/// A ring as in [`ring`], in which the blocks travel in pieces that fit the cache.
async fn cached_ring(call: &Call<'_>, all: &Blocks) -> Result<()> {
    for step in 1..call.size() {
        let (ours, theirs) = (call.before(step - 1), call.before(step));
        let (out, into) = (all.part(ours), all.part(theirs));
        call.exchange_pieces((call.after(1), out), (call.before(1), into))
            .await?;
    }
    Ok(())
}

/// Partners at distance 1, 2, 4… exchange all blocks that they have. Needs blocks of one size and a
/// power of two of ranks.
async fn recursive_doubling(call: &Call<'_>, all: &Blocks) -> Result<()> {
    let mut count = 1;
    while count < call.size() {
        let partner = call.me() ^ count;
        let (ours, theirs) = (call.me() & !(count - 1), partner & !(count - 1));
        let (Some(ours), Some(theirs)) = (all.range(ours, count), all.range(theirs, count)) else {
            return ring(call, all).await;
        };
        call.exchange(partner, ours, partner, theirs).await?;
        count *= 2;
    }
    Ok(())
}

/// Bruck's algorithm: collects the blocks in the order of ranks from this one on, in a circle, then
/// copies each into its position in `all`.
async fn bruck(call: &Call<'_>, all: &Blocks) -> Result<()> {
    let size = call.size();
    let room = call.bytes(all.total())?;
    let bytes = |first: usize, count: usize| {
        (first..first + count)
            .map(|step| all.len(call.after(step)))
            .sum()
    };
    call.copy(&all.part(call.me()), &room);
    let (mut have, mut end) = (1, all.len(call.me()));
    while have < size {
        let count = have.min(size - have);
        // The other rank lacks the first `count` of this rank's blocks, which follow its own.
        let (ours, theirs): (usize, usize) = (bytes(0, count), bytes(have, count));
        call.exchange(
            call.before(have),
            room.slice(0, ours),
            call.after(have),
            room.slice(end, theirs),
        )
        .await?;
        have += count;
        end += theirs;
    }
    let mut at = all.len(call.me());
    for from in (1..size).map(|step| call.after(step)) {
        let len = all.len(from);
        call.copy(&room.slice(at, len), &all.part(from));
        at += len;
    }
    Ok(())
}
