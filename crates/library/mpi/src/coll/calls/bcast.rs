//! Broadcast (MPI 5.0 §6.4).

use datatype::Buffer;

use super::call::Call;
use crate::Result;
use crate::algorithms::{Algorithm, CHAIN_PIECE as PIECE, Collective, branches};

/// A flat (not two-level) broadcast.
pub(super) async fn flat(call: &Call<'_>, buffer: &Buffer, root: usize) -> Result<()> {
    if call.size() == 1 || buffer.is_empty() {
        return Ok(());
    }
    let algorithm = call.choose(Collective::Bcast, call.case(buffer.len()));
    run(call, algorithm, buffer, root).await
}

/// Runs a flat (not two-level) algorithm for a broadcast.
pub(super) async fn run(
    call: &Call<'_>,
    algorithm: Algorithm,
    buffer: &Buffer,
    root: usize,
) -> Result<()> {
    match algorithm {
        Algorithm::ScatterAllgather => scatter_allgather(call, buffer, root).await,
        Algorithm::Chain => Box::pin(tree(call, buffer, root, 1)).await,
        Algorithm::KAry => {
            let arity = call.case(buffer.len()).tree_arity();
            Box::pin(tree(call, buffer, root, arity)).await
        }
        Algorithm::Linear => linear(call, buffer, root).await,
        _ => binomial(call, buffer, root).await,
    }
}

/// Broadcasts along a binomial tree.
pub(super) async fn binomial(call: &Call<'_>, buffer: &Buffer, root: usize) -> Result<()> {
    let size = call.size();
    let place = call.before(root);
    let mut distance = 1;
    while distance < size && place & distance == 0 {
        distance *= 2;
    }
    if place > 0 {
        call.receive(call.before(distance), buffer.clone())?.await?;
    }
    // The farthest child first, as its branch is the longest. Each send starts before the previous
    // one is complete.
    let mut last = None;
    while distance > 1 {
        distance /= 2;
        if place + distance < size {
            let sending = call.send(call.after(distance), buffer.clone())?;
            if let Some(before) = last.replace(sending) {
                before.await?;
            }
        }
    }
    match last {
        Some(sending) => sending.await,
        None => Ok(()),
    }
}

/// The root sends the message to each rank. Where receivers read the root's memory, all read at
/// once.
async fn linear(call: &Call<'_>, buffer: &Buffer, root: usize) -> Result<()> {
    if call.me() != root {
        return call.receive(root, buffer.clone())?.await;
    }
    let sends: Result<Vec<_>> = (1..call.size())
        .map(|steps| call.send(call.after(steps), buffer.clone()))
        .collect();
    for sending in sends? {
        sending.await?;
    }
    Ok(())
}

/// Broadcasts down a k-ary tree, in pieces: a rank passes each piece on while it receives the next.
async fn tree(call: &Call<'_>, buffer: &Buffer, root: usize, arity: usize) -> Result<()> {
    let (branch, above) = branches::branch(call.before(root), call.size(), arity);
    let member = |place: usize| (place + root) % call.size();
    let below = branches::below(&branch, arity);
    let below: Vec<usize> = below.map(|branch| member(branch.start)).collect();
    let piece = |number: usize| buffer.slice(number * PIECE, PIECE);
    let receive = |number: usize| match above {
        Some(above) if !piece(number).is_empty() => {
            call.receive(member(above), piece(number)).map(Some)
        }
        _ => Ok(None),
    };
    let mut ahead = receive(0)?;
    let mut sending = Vec::new();
    for number in 0..buffer.len().div_ceil(PIECE) {
        if let Some(receiving) = ahead.take() {
            ahead = receive(number + 1)?;
            receiving.await?;
        }
        let sends = below.iter().map(|&to| call.send(to, piece(number)));
        let sends = sends.collect::<Result<Vec<_>>>()?;
        for before in std::mem::replace(&mut sending, sends) {
            before.await?;
        }
    }
    for last in sending {
        last.await?;
    }
    Ok(())
}

/// Scatters blocks down a binomial tree, then collects them by a ring: each rank sends at most
/// about twice the message's bytes.
async fn scatter_allgather(call: &Call<'_>, buffer: &Buffer, root: usize) -> Result<()> {
    let size = call.size();
    let place = call.before(root);
    let each = buffer.len().div_ceil(size);
    let parts = |first: usize, count: usize| buffer.slice(first * each, count * each);

    let mut distance = 1;
    while distance < size && place & distance == 0 {
        distance *= 2;
    }
    if place > 0 {
        call.receive(
            call.before(distance),
            parts(place, distance.min(size - place)),
        )?
        .await?;
    }
    while distance > 1 {
        distance /= 2;
        if place + distance < size {
            let below = parts(place + distance, distance.min(size - place - distance));
            call.send(call.after(distance), below)?.await?;
        }
    }

    for step in 1..size {
        let (ours, theirs) = (
            (place + size - step + 1) % size,
            (place + size - step) % size,
        );
        call.exchange(
            call.after(1),
            parts(ours, 1),
            call.before(1),
            parts(theirs, 1),
        )
        .await?;
    }
    Ok(())
}
