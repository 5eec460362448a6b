//! Barrier (MPI 5.0 §6.3).

use datatype::Buffer;

use super::call::Call;
use crate::Result;

/// A flat (not two-level) barrier. After the exchange at distance d, messages from 2d ranks have
/// reached each rank, directly or through others.
pub(super) async fn dissemination(call: &Call<'_>) -> Result<()> {
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

/// The first half of a barrier, by a binomial tree: returns on rank 0 once all ranks have entered,
/// on another rank once it has reported that the ranks below it have entered.
pub(super) async fn collect(call: &Call<'_>) -> Result<()> {
    let (me, size) = (call.me(), call.size());
    let mut distance = 1;
    while distance < size && me & distance == 0 {
        if me + distance < size {
            call.receive(me + distance, Buffer::empty())?.await?;
        }
        distance *= 2;
    }
    match me {
        0 => Ok(()),
        _ => call.send(me - distance, Buffer::empty())?.await,
    }
}

/// The second half of a barrier, by a binomial tree: returns once rank 0 has entered it.
pub(super) async fn release(call: &Call<'_>) -> Result<()> {
    let (me, size) = (call.me(), call.size());
    let mut distance = match me {
        0 => size.next_power_of_two(),
        _ => me & me.wrapping_neg(),
    };
    if me > 0 {
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
