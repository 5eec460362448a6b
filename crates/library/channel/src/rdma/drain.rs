//! The path of arrived packets to the handler: those in rings, and those in messages.

use super::endpoint::Endpoint;
use super::messages;
use super::peer::Connections;
use super::ring_receiver::BATCH;
use crate::{Error, Head, More, Result};

/// Takes packets out of all rings in which some may have arrived.
#[inline]
pub(super) fn rings(
    all: &mut Connections,
    handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
) -> Result<usize> {
    if all.watch.is_some() {
        return watched(all, handler);
    }
    let mut packets = 0;
    for ring in 0..all.endpoints.ringed().len() {
        packets += one(all, all.endpoints.ringed()[ring], handler)?;
    }
    Ok(packets)
}

/// As [`rings`], on a node that knows which rings have been written to. Where links have failed,
/// every ring is polled: tails are due there without packets.
fn watched(
    all: &mut Connections,
    handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
) -> Result<usize> {
    let mut packets = 0;
    let is_whole = all.attention.impaired.is_empty() && !all.attention.fencing;
    let due = match &mut all.watch {
        Some(watch) => watch.take_due(&mut *all.local.node).filter(|_| is_whole),
        None => None,
    };
    let due = due.unwrap_or_else(|| (0..all.endpoints.ringed().len()).collect());
    for &ring in &due {
        let from = all.endpoints.ringed()[ring];
        let taken = one(all, from, handler)?;
        packets += taken;
        let may_hold_more = taken > 0 || all.endpoints.of(from).receiver.tail_due();
        if let Some(watch) = &mut all.watch
            && may_hold_more
        {
            watch.demand(ring);
        }
    }
    if let Some(watch) = &mut all.watch {
        watch.recycle(due);
    }
    Ok(packets)
}

/// Takes packets out of the ring of one peer.
#[inline]
fn one(
    all: &mut Connections,
    from: usize,
    handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
) -> Result<usize> {
    let endpoint = all.endpoints.of(from);
    let Endpoint {
        receiver, sender, ..
    } = endpoint;
    let packets = receiver
        .drain(sender, &mut *all.local.node, from, handler)
        .map_err(|what| Error::broken(from, what))?;
    let (is_due, is_ready) = (receiver.tail_due(), endpoint.connection.is_ready());
    if packets > 0 && !is_ready {
        all.peer(from).peer_ready()?;
    }
    if is_due {
        let endpoint = all.endpoints.of(from);
        endpoint.write_tail(&mut *all.local.node, false)?;
    }
    Ok(packets)
}

/// Passes packets that have arrived as messages (sends, not ring writes) to `handler`.
#[inline(never)]
pub(super) fn messages(
    all: &mut Connections,
    handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
) -> Result<usize> {
    if all.messages.has_owed() {
        messages::send_grants(&mut all.messages, &mut all.local, &mut all.endpoints)?;
    }
    let mut packets = 0;
    while packets < BATCH
        && let Some(message) = all.messages.next_arrived()
    {
        packets += 1;
        let mut peer = all.peer(message.from);
        let (messages, local) = (&mut *peer.messages, &mut *peer.local);
        let more = messages::handle(messages, local, peer.endpoint, message, handler)?;
        peer.peer_ready()?;
        if more == More::Enough {
            break;
        }
    }
    Ok(packets)
}
