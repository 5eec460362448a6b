//! Sending packets: the path of `put`, from the state of the connection to the post.

use super::coalesce;
use super::completions;
use super::connect;
use super::messages;
use super::peer::Connections;
use super::room;
use crate::{Head, Put, Result};

/// The number of polls without a packet after which earlier packets to a peer count as arrived.
pub(super) const IDLE: u32 = 8;

/// Sends a packet with a body of `len` bytes, which `fill` writes.
///
/// `Full` means that there is no room for the packet now, or that the connection is not ready: the
/// first call for a peer begins to connect, and each later one progresses the connection. In both
/// cases the packet is not accepted, and the caller tries again after a poll.
#[inline(always)]
pub(super) fn packet(
    all: &mut Connections,
    to: usize,
    head: Head,
    len: usize,
    fill: impl FnOnce(&mut [u8]),
) -> Result<Put> {
    let endpoint = all.endpoints.get(to);
    if !endpoint.is_some_and(|endpoint| endpoint.connection.is_ready()) {
        connect::connect(all, to)?;
        return Ok(Put::Full);
    }
    if !all.endpoints.of(to).has_rings() {
        let Connections {
            messages,
            local,
            endpoints,
            ..
        } = all;
        if messages::lacks_room(messages, local, endpoints.of(to))? {
            completions::poll(all)?;
        }
        let endpoint = all.endpoints.of(to);
        let (messages, local) = (&mut all.messages, &mut all.local);
        return messages::send(messages, local, endpoint, (head, len), fill);
    }
    if all.local.config.coalesces() && coalesce::should_coalesce(all, to, len)? {
        return Ok(coalesce::coalesce(all, to, head, len, fill));
    }
    if !is_clear(all, to)? {
        return Ok(Put::Full);
    }
    let on = choose(all, to, len);
    let Some(place) = room::find(all, to, on, len)? else {
        return Ok(Put::Full);
    };
    let endpoint = all.endpoints.of(to);
    let posted = endpoint.write_packet(&mut *all.local.node, (on, place), head, len, fill)?;
    all.attention.deferred += usize::from(posted.head_pointer_due);
    if all.attention.receives_due > 0 {
        completions::post_due(all)?;
    }
    Ok(match posted.lap {
        _ if all.local.needs_polls && is_corked(all, to, on) => Put::Corked,
        true => Put::AcceptedPollNow,
        false => Put::Accepted,
    })
}

/// True if the last packet to `to` waits on link `on` to leave together with others.
#[inline(never)]
fn is_corked(all: &mut Connections, to: usize, on: usize) -> bool {
    let control = &all.endpoints.of(to).links()[on].control;
    control.is_corked(&mut *all.local.node)
}

/// Posts the packets to `to` that were put earlier and wait. False: some still wait.
#[inline(always)]
fn is_clear(all: &mut Connections, to: usize) -> Result<bool> {
    if all.endpoints.of(to).sender.is_clear() {
        return Ok(true);
    }
    completions::poll(all)?;
    coalesce::write_coalesced(all, to)?;
    Ok(all.endpoints.of(to).sender.is_clear())
}

/// The position of the link for the next packet to `to`, of `len` bytes.
#[inline(always)]
fn choose(all: &mut Connections, to: usize, len: usize) -> usize {
    let endpoint = all.endpoints.of(to);
    if let Some(schedules) = &mut endpoint.schedules {
        let polls = all.attention.idle_polls.wrapping_sub(endpoint.idle_polls);
        // A packet that had no room is behind others, however long the rank has polled.
        if polls >= IDLE && endpoint.chosen.is_none() {
            schedules.out.idle();
        }
        endpoint.idle_polls = all.attention.idle_polls;
    }
    endpoint.choose(&mut *all.local.node, len)
}
