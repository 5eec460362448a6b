//! Barrier (MPI 5.0 §6.3).

use datatype::Buffer;

use super::call::Call;
use crate::Result;
use crate::algorithms::{Algorithm, Collective};

#[inline(always)]
pub(super) async fn barrier(call: &Call<'_>) -> Result<()> {
    match call.choose(Collective::Barrier, call.case(0)) {
        Algorithm::Tree => tree(call).await,
        _ => dissemination(call).await,
    }
}

/// After the exchange at distance d each rank has heard from 2d ranks.
async fn dissemination(call: &Call<'_>) -> Result<()> {
    let mut distance = 1;
    while distance < call.size() {
        call.exchange(
            call.after(distance),
            Buffer::empty(),
            call.before(distance),
            Buffer::empty(),
        )
        .await?;
        distance *= 2;
    }
    Ok(())
}

/// To rank 0 and back along a binomial tree.
async fn tree(call: &Call<'_>) -> Result<()> {
    let (me, size) = (call.me(), call.size());
    let mut distance = 1;
    while distance < size && me & distance == 0 {
        if me + distance < size {
            call.receive(me + distance, Buffer::empty())?.await?;
        }
        distance *= 2;
    }
    if me > 0 {
        call.send(me - distance, Buffer::empty())?.await?;
        call.receive(me - distance, Buffer::empty())?.await?;
    }
    while distance > 1 {
        distance /= 2;
        if me + distance < size {
            call.send(me + distance, Buffer::empty())?.await?;
        }
    }
    Ok(())
}
