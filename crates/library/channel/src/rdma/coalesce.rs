//! Coalescing: while the queue pair is busy, or only slots for longer packets are free, short
//! packets gather in one slot and leave in one write. The slot leaves when it is full, or when the
//! queue pair is free again; every poll checks that.

use super::completions;
use super::layout::{SUBHEAD, padded};
use super::peer::Connections;
use super::qp_link::SIGNAL;
use super::room;
use crate::{Head, Put, Result};

/// A queue pair with at least this number of uncompleted requests is busy.
const BUSY: u32 = 2 * SIGNAL;
/// The longest body that is coalesced, in bytes.
const LONGEST: usize = 2048;

/// True if the next packet to `to`, of `len` bytes, is to be coalesced.
#[inline(always)]
pub(super) fn should_coalesce(all: &mut Connections, to: usize, len: usize) -> Result<bool> {
    if len > LONGEST || padded(len) + SUBHEAD > all.local.layout.max_body() {
        return Ok(false);
    }
    let endpoint = all.endpoints.of(to);
    let held = endpoint.home().control.held();
    if !endpoint.sender.is_coalescing() && held < BUSY && endpoint.sender.fits_well(len) {
        return Ok(false);
    }
    find_coalescing(all, to, len)
}

/// Finds or opens a slot in which a packet can be coalesced. False: the packet takes a slot of
/// its own, or none is free.
#[inline(never)]
fn find_coalescing(all: &mut Connections, to: usize, len: usize) -> Result<bool> {
    completions::poll(all)?;
    let endpoint = all.endpoints.of(to);
    if endpoint.sender.is_coalescing() {
        let held = endpoint.home().control.held();
        let sender = &endpoint.sender;
        if sender.coalescing_has_room(len) && (held >= BUSY / 2 || !sender.fits_well(len)) {
            return Ok(true);
        }
        write_coalesced(all, to)?;
    }
    room::read_tail(all, to)?;
    let endpoint = all.endpoints.of(to);
    let is_free = endpoint.home().control.held() < BUSY && endpoint.sender.fits_well(len);
    if endpoint.sender.is_coalescing() || is_free {
        return Ok(false);
    }
    let most = all.local.layout.max_body();
    let home = all.endpoints.of(to).home().index();
    let Some(place) = room::find(all, to, home, most)? else {
        return Ok(false);
    };
    // Lost packets leave first: the polls may have found that a link has failed.
    if !all.endpoints.of(to).sender.is_clear() {
        return Ok(false);
    }
    all.endpoints.of(to).sender.begin_coalescing(place);
    all.attention.deferred += 1;
    Ok(true)
}

/// Adds a packet to the open slot of coalesced packets, which has room.
pub(super) fn coalesce(
    all: &mut Connections,
    to: usize,
    head: Head,
    len: usize,
    fill: impl FnOnce(&mut [u8]),
) -> Put {
    let sender = &mut all.endpoints.of(to).sender;
    match sender.coalesce(&mut *all.local.node, head, len, fill) {
        true => Put::AcceptedPollNow,
        false => Put::Accepted,
    }
}

/// Posts the slot of coalesced packets, if there is one, unless the send queue has no room for
/// it now.
pub(super) fn write_coalesced(all: &mut Connections, to: usize) -> Result<()> {
    let written = all.endpoints.of(to).write_coalesced(&mut *all.local.node)?;
    if written.is_some() {
        all.attention.deferred -= 1;
    }
    Ok(())
}

/// Posts the coalesced packets that waited for room in a queue pair.
#[inline(never)]
pub(super) fn send_deferred(all: &mut Connections) -> Result<()> {
    for at in 0..all.endpoints.ringed().len() {
        let to = all.endpoints.ringed()[at];
        let endpoint = all.endpoints.of(to);
        if endpoint.sender.is_coalescing() && endpoint.home().control.held() < BUSY {
            write_coalesced(all, to)?;
        }
    }
    Ok(())
}
