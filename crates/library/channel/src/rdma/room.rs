//! Room for the next packet to a peer: a free slot of its ring, and a free entry of the send queue.

use super::completions;
use super::outbound::SlotPlace;
use super::peer::Connections;
use super::ring_sender::TOO_MANY;
use crate::{Error, Result};

/// A free slot for a body of `len` bytes, and room for its write on link `on`. `None`: there is no
/// such slot or room, or the link has failed.
#[inline(always)]
pub(super) fn find(
    all: &mut Connections,
    to: usize,
    on: usize,
    len: usize,
) -> Result<Option<SlotPlace>> {
    match all.endpoints.of(to).find(on, len) {
        Some(place) => Ok(Some(place)),
        None => find_again(all, to, on, len),
    }
}

#[cold]
#[inline(never)]
fn find_again(
    all: &mut Connections,
    to: usize,
    on: usize,
    len: usize,
) -> Result<Option<SlotPlace>> {
    completions::poll(all)?;
    read_tail(all, to)?;
    let endpoint = all.endpoints.of(to);
    // The poll may have found that the link has failed.
    if !endpoint.links()[on].life.is_live() {
        return Ok(None);
    }
    let place = endpoint.find(on, len);
    if place.is_none() && endpoint.schedules.is_some() {
        endpoint.ask_for_reports(&mut *all.local.node)?;
    }
    Ok(place)
}

/// Reads the tail (the number of consumed packets) that a peer has written to memory.
pub(super) fn read_tail(all: &mut Connections, of: usize) -> Result<()> {
    match all.endpoints.of(of).read_tail() {
        true => Ok(()),
        false => Err(Error::broken(of, TOO_MANY)),
    }
}
