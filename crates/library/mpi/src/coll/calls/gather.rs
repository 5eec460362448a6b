//! Gather and scatter (MPI 5.0 §6.5, §6.6).

use datatype::Buffer;

use super::blocks::Blocks;
use super::call::Call;
use crate::Result;
use crate::algorithms::{Algorithm, Collective};

/// A flat (not two-level) gather of blocks of one size.
pub(super) async fn flat(
    call: &Call<'_>,
    ours: Option<&Buffer>,
    all: Option<&Blocks>,
    root: usize,
) -> Result<()> {
    let bytes = block_bytes(call, ours, all, root);
    if bytes == 0 {
        return Ok(());
    }
    let algorithm = call.choose(Collective::Gather, call.case(bytes));
    run_gather(call, algorithm, ours, all, root).await
}

/// Gathers by a flat (not two-level) algorithm; only the linear one handles blocks of different
/// sizes. `ours` is `None` if this rank's block is in `all` already; only the root has `all`.
pub(super) async fn run_gather(
    call: &Call<'_>,
    algorithm: Algorithm,
    ours: Option<&Buffer>,
    all: Option<&Blocks>,
    root: usize,
) -> Result<()> {
    match (algorithm, ours, all) {
        (Algorithm::Binomial, _, Some(all)) if call.me() == root => {
            gather_at_root(call, ours, all).await
        }
        (Algorithm::Binomial, Some(ours), _) if call.me() != root => {
            gather_below(call, ours, root).await
        }
        _ => gather_linear(call, ours, all, root).await,
    }
}

/// The length of one block in bytes; all blocks are equally long.
pub(super) fn block_bytes(
    call: &Call<'_>,
    ours: Option<&Buffer>,
    all: Option<&Blocks>,
    root: usize,
) -> usize {
    if call.me() == root {
        all.map_or(0, |all| all.len(0))
    } else {
        ours.map_or(0, Buffer::len)
    }
}

/// Gathers blocks of any size, one message each.
pub(super) async fn gather_linear(
    call: &Call<'_>,
    ours: Option<&Buffer>,
    all: Option<&Blocks>,
    root: usize,
) -> Result<()> {
    match (ours, all) {
        (Some(ours), _) if call.me() != root => call.send(root, ours.clone())?.await,
        (_, Some(all)) if call.me() == root => {
            let receives: Result<Vec<_>> = (1..call.size())
                .map(|steps| call.after(steps))
                .map(|from| call.receive(from, all.part(from)))
                .collect();
            if let Some(ours) = ours {
                call.copy(ours, &all.part(root));
            }
            for receiving in receives? {
                receiving.await?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The number of members in the branch of a binomial tree that begins at `place`, a distance from
/// the root; `distance` is that to its parent.
fn branch(call: &Call<'_>, place: usize, distance: usize) -> usize {
    distance.min(call.size() - place)
}

async fn gather_at_root(call: &Call<'_>, ours: Option<&Buffer>, all: &Blocks) -> Result<()> {
    let each = all.len(0);
    let mut distance = 1;
    while distance < call.size() {
        let count = branch(call, distance, distance);
        let from = call.after(distance);
        match all.range(from, count) {
            Some(place) if from + count <= call.size() => call.receive(from, place)?.await?,
            // The ranks of the branch wrap around to rank 0, so their blocks are not adjacent.
            _ => {
                let room = call.bytes(count * each)?;
                call.receive(from, room.clone())?.await?;
                for step in 0..count {
                    call.copy(
                        &room.slice(step * each, each),
                        &all.part(call.after(distance + step)),
                    );
                }
            }
        }
        distance *= 2;
    }
    if let Some(ours) = ours {
        call.copy(ours, &all.part(call.me()));
    }
    Ok(())
}

async fn gather_below(call: &Call<'_>, ours: &Buffer, root: usize) -> Result<()> {
    let (place, each) = (call.before(root), ours.len());
    let parent = 1 << place.trailing_zeros();
    let count = branch(call, place, parent);
    if count == 1 {
        return call.send(call.before(parent), ours.clone())?.await;
    }
    let room = call.bytes(count * each)?;
    call.copy(ours, &room);
    let mut distance = 1;
    while distance < count {
        let below = room.slice(distance * each, distance * each);
        call.receive(call.after(distance), below)?.await?;
        distance *= 2;
    }
    call.send(call.before(parent), room)?.await
}

/// A flat (not two-level) scatter of blocks of one size.
pub(super) async fn scatter_flat(
    call: &Call<'_>,
    all: Option<&Blocks>,
    ours: Option<&Buffer>,
    root: usize,
) -> Result<()> {
    let bytes = block_bytes(call, ours, all, root);
    if bytes == 0 {
        return Ok(());
    }
    let algorithm = call.choose(Collective::Scatter, call.case(bytes));
    run_scatter(call, algorithm, all, ours, root).await
}

/// Scatters by a flat (not two-level) algorithm; only the linear one handles blocks of different
/// sizes. `ours` is `None` if this rank's block stays in `all`, which only the root has.
pub(super) async fn run_scatter(
    call: &Call<'_>,
    algorithm: Algorithm,
    all: Option<&Blocks>,
    ours: Option<&Buffer>,
    root: usize,
) -> Result<()> {
    match (algorithm, ours, all) {
        (Algorithm::Binomial, _, Some(all)) if call.me() == root => {
            scatter_from_root(call, all, ours).await
        }
        (Algorithm::Binomial, Some(ours), _) if call.me() != root => {
            scatter_below(call, ours, root).await
        }
        _ => scatter_linear(call, all, ours, root).await,
    }
}

/// Scatters blocks of any size, one message each.
pub(super) async fn scatter_linear(
    call: &Call<'_>,
    all: Option<&Blocks>,
    ours: Option<&Buffer>,
    root: usize,
) -> Result<()> {
    match (ours, all) {
        (Some(ours), _) if call.me() != root => call.receive(root, ours.clone())?.await,
        (_, Some(all)) if call.me() == root => {
            let sends: Result<Vec<_>> = (1..call.size())
                .map(|steps| call.after(steps))
                .map(|to| call.send(to, all.part(to)))
                .collect();
            if let Some(ours) = ours {
                call.copy(&all.part(root), ours);
            }
            for sending in sends? {
                sending.await?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn scatter_from_root(call: &Call<'_>, all: &Blocks, ours: Option<&Buffer>) -> Result<()> {
    let each = all.len(0);
    let mut distance = call.size().next_power_of_two();
    while distance > 1 {
        distance /= 2;
        if distance >= call.size() {
            continue;
        }
        let count = branch(call, distance, distance);
        let to = call.after(distance);
        let block = match all.range(to, count) {
            Some(block) if to + count <= call.size() => block,
            _ => {
                let room = call.bytes(count * each)?;
                for step in 0..count {
                    call.copy(
                        &all.part(call.after(distance + step)),
                        &room.slice(step * each, each),
                    );
                }
                room
            }
        };
        call.send(to, block)?.await?;
    }
    if let Some(ours) = ours {
        call.copy(&all.part(call.me()), ours);
    }
    Ok(())
}

async fn scatter_below(call: &Call<'_>, ours: &Buffer, root: usize) -> Result<()> {
    let (place, each) = (call.before(root), ours.len());
    let parent = 1 << place.trailing_zeros();
    let count = branch(call, place, parent);
    if count == 1 {
        return call.receive(call.before(parent), ours.clone())?.await;
    }
    let room = call.bytes(count * each)?;
    call.receive(call.before(parent), room.clone())?.await?;
    let mut distance = count.next_power_of_two();
    while distance > 1 {
        distance /= 2;
        if distance < count {
            call.send(
                call.after(distance),
                room.slice(distance * each, distance * each),
            )?
            .await?;
        }
    }
    call.copy(&room, ours);
    Ok(())
}
