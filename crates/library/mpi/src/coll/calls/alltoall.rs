//! All-to-all exchange (MPI 5.0 §6.8).

use std::ops::Range;

use datatype::Buffer;

use super::blocks::Blocks;
use super::call::Call;
use crate::Result;
use crate::algorithms::{Algorithm, Case, Collective};

/// The number of ranks with which a member exchanges messages at once, unless the algorithm is
/// pairwise.
const WINDOW: usize = 32;

/// A flat (not two-level) all-to-all exchange.
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

/// Runs a flat (not two-level) algorithm, or the exchange in place if `give` is `None`.
pub(super) async fn run(
    call: &Call<'_>,
    algorithm: Algorithm,
    give: Option<&Blocks>,
    take: &Blocks,
) -> Result<()> {
    let Some(give) = give else {
        return in_place(call, take).await;
    };
    call.copy(&give.part(call.me()), &take.part(call.me()));
    match algorithm {
        Algorithm::Bruck => bruck(call, give, take).await,
        _ => {
            let steps = 1..call.size();
            let give = |step: usize| Some((call.after(step), give.part(call.after(step))));
            let take = |step: usize| Some((call.before(step), take.part(call.before(step))));
            windows(call, steps, window(algorithm), give, take).await
        }
    }
}

/// The number of ranks with which a member exchanges messages at once.
fn window(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::Pairwise => 1,
        _ => WINDOW,
    }
}

/// Each of the members `ours` exchanges blocks with each of the members `theirs`. `given` and
/// `taken` return the buffer for and from a member of the other group. `bytes` is the length of the
/// longest block, or 0 if not all members know it.
pub(super) async fn between(
    call: &Call<'_>,
    (ours, theirs): (Range<usize>, Range<usize>),
    bytes: usize,
    given: impl Fn(usize) -> Buffer,
    taken: impl Fn(usize) -> Buffer,
) -> Result<()> {
    let steps = ours.len().max(theirs.len());
    let place = call.me() - ours.start;
    // In each step pairs exchange: the sum of their indices is the number of the step, modulo
    // `steps`.
    let partner = |step: usize| (step + steps - place) % steps;
    let to = |step: usize, buffer: &dyn Fn(usize) -> Buffer| {
        let partner = partner(step);
        let is_there = partner < theirs.len();
        is_there.then(|| (theirs.start + partner, buffer(partner)))
    };
    let case = Case {
        even: false,
        ..call.case(bytes)
    };
    let algorithm = call.choose(Collective::Alltoall, case);
    let (give, take) = (|step| to(step, &given), |step| to(step, &taken));
    windows(call, 0..steps, window(algorithm), give, take).await
}

/// In each step sends a buffer to one member and receives one from another; `window` steps are in
/// flight at once. Empty buffers are not sent.
async fn windows(
    call: &Call<'_>,
    steps: Range<usize>,
    window: usize,
    give: impl Fn(usize) -> Option<(usize, Buffer)>,
    take: impl Fn(usize) -> Option<(usize, Buffer)>,
) -> Result<()> {
    let has_data = |(_, buffer): &(usize, Buffer)| !buffer.is_empty();
    for first in steps.clone().step_by(window) {
        let now = || first..steps.end.min(first + window);
        let mut pending = Vec::with_capacity(2 * now().len());
        for (from, buffer) in now().filter_map(&take).filter(has_data) {
            pending.push(call.receive(from, buffer)?);
        }
        for (to, buffer) in now().filter_map(&give).filter(has_data) {
            pending.push(call.send(to, buffer)?);
        }
        for one in pending {
            one.await?;
        }
    }
    Ok(())
}

/// Bruck's algorithm: a logarithmic number of messages, each of many blocks. Needs blocks of one
/// size.
async fn bruck(call: &Call<'_>, give: &Blocks, take: &Blocks) -> Result<()> {
    let (size, each) = (call.size(), give.len(0));
    let room = call.bytes(size * each)?;
    let half = size.div_ceil(2).max(size.next_power_of_two() / 2) * each;
    let (out, into) = (call.bytes(half)?, call.bytes(half)?);
    let place = |step: usize| room.slice(step * each, each);
    for step in 0..size {
        call.copy(&give.part(call.after(step)), &place(step));
    }
    let mut distance = 1;
    while distance < size {
        let travel = || {
            (distance..size)
                .filter(|step| step & distance != 0)
                .enumerate()
        };
        for (at, step) in travel() {
            call.copy(&place(step), &out.slice(at * each, each));
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
            call.copy(&into.slice(at * each, each), &place(step));
        }
        distance *= 2;
    }
    for step in 1..size {
        call.copy(&place(step), &take.part(call.before(step)));
    }
    Ok(())
}

/// Exchanges in place: in each step this rank sends a copy of a block to one partner, and receives
/// that partner's block into the original.
pub(super) async fn in_place(call: &Call<'_>, all: &Blocks) -> Result<()> {
    for round in 0..call.size() {
        let partner = (round + call.size() - call.me()) % call.size();
        let part = all.part(partner);
        if partner == call.me() || part.is_empty() {
            continue;
        }
        let copy = call.bytes(part.len())?;
        call.copy(&part, &copy);
        call.exchange(partner, copy, partner, part).await?;
    }
    Ok(())
}
