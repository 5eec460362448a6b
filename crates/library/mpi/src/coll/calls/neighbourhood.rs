//! Exchange with the neighbours in a topology (MPI 5.0 §8.6).

use datatype::Buffer;

use super::blocks::Blocks;
use super::call::Call;
use crate::Result;
use crate::topology::Neighbours;

/// Sends the block that `give` returns to each destination, and receives a block of `take` from
/// each source.
pub(super) async fn exchange(
    call: &Call<'_>,
    neighbours: &Neighbours,
    give: impl Fn(usize) -> Buffer,
    take: &Blocks,
) -> Result<()> {
    let mut pending =
        Vec::with_capacity(neighbours.sources().len() + neighbours.destinations().len());
    for (block, from) in neighbours.receives() {
        pending.push(call.receive(from, take.part(block))?);
    }
    for (block, to) in neighbours.sends() {
        pending.push(call.send(to, give(block))?);
    }
    for one in pending {
        one.await?;
    }
    Ok(())
}
