//! Buffers for peers without rings, whose packets are messages: whether a message may be sent now,
//! and the receives for the peer's messages.

use std::ops::Range;

use device::Node;

use super::credit::{EMPTY, MOST};
use super::endpoint::Endpoint;
use super::layout::Layout;
use super::rail::Rail;
use super::registered::Registered;
use super::srq_path::{MessagePlace, fit, memory_buffer};
use crate::Result;

/// True if a message may be sent to this peer now.
pub(super) fn may_send_message(endpoint: &Endpoint) -> bool {
    // One entry of the send queue stays free for a grant-only message, and other peers need buffers
    // too.
    endpoint.sender.last() < endpoint.credits.allowed()
        && endpoint.home().control.held() < 2 * MOST
        && endpoint.lost_messages.is_empty()
        && !endpoint.is_fencing()
}

/// The number of the pool, on a rail, that receives the peer's messages.
fn pool_on(endpoint: &Endpoint, rail: &Rail) -> usize {
    let mut links = endpoint.links().iter();
    let link = links.find(|link| link.rail() == rail.index());
    link.map_or(0, |link| link.pool)
}

/// Posts receives for the messages of `peer`, which has no memory for rings. Their buffers lie in
/// this end's memory for the ring from the peer.
pub(super) fn adopt_memory(
    endpoint: &mut Endpoint,
    node: &mut dyn Node,
    layout: &Layout,
    peer: usize,
) -> Result<()> {
    for buffer in 0..fit(layout) + EMPTY {
        post_in_memory(endpoint, node, layout, peer, buffer)?;
    }
    Ok(())
}

/// Posts a receive, on the home link, into a buffer of this end's memory for the ring from the
/// peer. Without a link that works the buffer waits for one.
pub(super) fn post_in_memory(
    endpoint: &mut Endpoint,
    node: &mut dyn Node,
    layout: &Layout,
    peer: usize,
    buffer: usize,
) -> Result<()> {
    if !endpoint.home().life.is_live() {
        endpoint.last_path.unposted.push(buffer);
        return Ok(());
    }
    post_on(
        endpoint,
        node,
        layout,
        peer,
        (endpoint.home().index(), buffer),
    )
}

/// Posts the receives that waited for a working link on link `on`, which the peer may use soon.
pub(super) fn post_unposted(
    endpoint: &mut Endpoint,
    node: &mut dyn Node,
    layout: &Layout,
    peer: usize,
    on: usize,
) -> Result<()> {
    let mut waiting = std::mem::take(&mut endpoint.last_path.unposted).into_iter();
    waiting.try_for_each(|buffer| post_on(endpoint, node, layout, peer, (on, buffer)))
}

fn post_on(
    endpoint: &Endpoint,
    node: &mut dyn Node,
    layout: &Layout,
    peer: usize,
    (on, buffer): (usize, usize),
) -> Result<()> {
    let memory = endpoint.receiver.memory();
    let memory = memory.expect("messages come into memory for a ring only where there is some");
    let link = &endpoint.links()[on];
    let into = memory.slice(link.rail(), memory_buffer(layout, buffer));
    link.control.post_buffer(node, peer, buffer, into)
}

/// The memory of a message that has arrived over `rail`, and the message's range in it.
pub(super) fn message<'a>(
    endpoint: &'a Endpoint,
    rail: &'a Rail,
    layout: &Layout,
    place: MessagePlace,
) -> (&'a Registered, Range<usize>) {
    match place {
        MessagePlace::Pool(buffer) => rail.pools.pool(pool_on(endpoint, rail)).buffer(buffer),
        MessagePlace::Endpoint(buffer) => {
            let memory = endpoint.receiver.memory();
            let memory = memory.expect("a message came into memory that is there");
            (memory, memory_buffer(layout, buffer))
        }
    }
}

/// Posts the receive of a consumed message again, into the same buffer.
pub(super) fn post_again(
    endpoint: &mut Endpoint,
    node: &mut dyn Node,
    rail: &Rail,
    layout: &Layout,
    peer: usize,
    place: MessagePlace,
) -> Result<()> {
    match place {
        MessagePlace::Pool(buffer) => {
            let pool = pool_on(endpoint, rail);
            rail.pools.pool(pool).post(node, buffer)
        }
        MessagePlace::Endpoint(buffer) => post_in_memory(endpoint, node, layout, peer, buffer),
    }
}
