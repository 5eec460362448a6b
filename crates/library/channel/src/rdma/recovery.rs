//! The driver of links that are given up: it exchanges fences, writes lost packets and pieces again
//! over other links, and connects a link again when it works.
//!
//! Invariant: nothing that the peer's fence confirms is written again: no buffer changes after the
//! peer's request has completed.

use device::{Operation, Status};

use super::completions;
use super::connection::Connection;
use super::credit::GRANTS;
use super::failover::{begin_draining, end_unconnected, give_up};
use super::fence::{Fence, LinkMessage, LinkWord, QpAddresses};
use super::last_path;
use super::lifecycle::LifeStage;
use super::link::Link;
use super::message_buffers;
use super::peer::{Connections, Peer};
use super::qp_link::Note;
use super::revival;
use super::ring_sender::TOO_MANY;
use super::wr_id::QpRole;
use crate::{Error, Result};

/// Progresses links that are being given up. To be called while there are some, after a poll of all
/// completions.
pub(super) fn progress_fences(all: &mut Connections) -> Result<()> {
    let mut fencing = false;
    for at in 0..all.attention.impaired.len() {
        let peer = all.attention.impaired[at];
        if all.endpoints.of(peer).connection == Connection::Lost {
            continue;
        }
        for index in 0..all.endpoints.of(peer).links().len() {
            progress_fence(all, peer, index)?;
        }
        replay(&mut all.peer(peer))?;
        let endpoint = all.endpoints.of(peer);
        fencing |= endpoint.is_fencing() || endpoint.has_lost();
    }
    all.attention.fencing = fencing;
    Ok(())
}

/// Advances the fence of a link that is being given up.
fn progress_fence(all: &mut Connections, to: usize, index: usize) -> Result<()> {
    let link = &mut all.endpoints.of(to).links_mut()[index];
    if link.life.stage() == LifeStage::Draining && link.is_drained(&mut *all.local.node)? {
        let rail = link.rail();
        // The completions of the peer's last writes are in the completion queue.
        completions::poll_rail(all, rail)?;
        send_fence(&mut all.peer(to), index)?;
    }
    let mut peer = all.peer(to);
    let now = peer.local.node.now();
    let is_last = peer.endpoint.is_cut_off();
    match peer.endpoint.links_mut()[index].life.bury(now, is_last) {
        Some(fence) => bury(&mut peer, index, &fence),
        None => Ok(()),
    }
}

/// Sends the fence of a drained link: it reports what has arrived over the link.
fn send_fence(peer: &mut Peer, index: usize) -> Result<()> {
    let (endpoint, local) = (&mut *peer.endpoint, &mut *peer.local);
    let transfers = &mut *peer.transfers;
    transfers.reserve_notices_again(local, endpoint, peer.rank)?;
    let expected = transfers.bulk.expected_of(peer.rank);
    let arrived = peer.messages.arrived_from(peer.rank);
    let received = endpoint.receiver.consumed() + arrived;
    let size = endpoint.credits.window.size();
    let granted = endpoint.grants_after(index, received);
    let restarts = endpoint.credits.window.restarts();
    let sent = endpoint.sender.last();
    if !endpoint.has_rings() && !endpoint.receiver.has_memory() {
        let link = &endpoint.links()[index];
        let pools = &mut local.rails[link.rail()].pools;
        pools.take_back(link.pool, size - endpoint.credits.window.size());
    }
    let link = &mut endpoint.links_mut()[index];
    let lost = link.forget();
    link.life.drained();
    let epoch = link.life.epoch();
    endpoint.lost_messages.extend(lost);
    let word = LinkWord::Fence(Fence {
        epoch,
        received,
        granted,
        restarts,
        sent,
        next_notice: transfers.bulk.next_notice(),
        expected,
    });
    peer.send_link(index, word)
}

/// Moves the work of a link whose ends are both drained: other links carry again what the peer has
/// not received. If no link works, the work stays with this link until one does.
fn bury(peer: &mut Peer, index: usize, fence: &Fence) -> Result<()> {
    let (endpoint, messages) = (&mut *peer.endpoint, &mut *peer.messages);
    if fence.received > endpoint.sender.last() {
        return Err(Error::broken(peer.rank, TOO_MANY));
    }
    if endpoint.has_rings() {
        let had_pointer = endpoint.sender.fenced(index, fence.received);
        peer.attention.deferred -= usize::from(had_pointer);
    } else {
        let last = endpoint.sender.last();
        if !endpoint.credits.restart(last, fence) {
            return Err(Error::broken(peer.rank, GRANTS));
        }
        let mut lost = Vec::from(std::mem::take(&mut endpoint.lost_messages));
        // Some messages may have been lost before, and been sent again over this link.
        lost.sort_by_key(|number| messages.sequence(*number));
        for number in lost {
            match messages.sequence(number) > fence.received {
                true => endpoint.lost_messages.push_back(number),
                false => messages.sent(number),
            }
        }
    }
    let carrier = endpoint.home().index();
    let lost = std::mem::take(&mut endpoint.links_mut()[index].lost_pieces);
    let bulk = &mut peer.transfers.bulk;
    let queue = &mut endpoint.transfers;
    bulk.link_died(peer.rank, (index, carrier), &lost, fence, queue);
    replay(peer)?;
    peer.post_transfers()
}

/// Writes lost packets to the peer again, as far as there is room.
fn replay(peer: &mut Peer) -> Result<()> {
    let (endpoint, messages) = (&mut *peer.endpoint, &mut *peer.messages);
    let node = &mut *peer.local.node;
    if endpoint.is_fencing() || endpoint.is_cut_off() {
        return Ok(());
    }
    endpoint.replay_packets(node)?;
    while let Some(&number) = endpoint.lost_messages.front() {
        let Some(buffers) = messages.buffers() else {
            break;
        };
        let (range, sequence) = buffers.message(number);
        let allowed = endpoint.credits.allowed();
        let link = endpoint.home_mut();
        if sequence > allowed || !link.control.has_room() {
            break;
        }
        let local = [buffers.memory.slice(link.rail(), range.clone())];
        let inline = link.control.takes_inline(range.len());
        let operation = Operation::Send { immediate: None };
        let note = Note::SendBuffer(number);
        link.control
            .post(node, operation, &local, inline, true, note)?;
        endpoint.lost_messages.pop_front();
    }
    Ok(())
}

/// Handles a peer's message about a link.
pub(super) fn on_link(all: &mut Connections, from: usize, message: LinkMessage) -> Result<()> {
    let (theirs, ours) = (message.rails.0.into(), message.rails.1.into());
    let mut peer = all.peer(from);
    let Some(link) = peer.endpoint.link_between(ours, theirs) else {
        let what = format!("it names a link between its rail {theirs} and our rail {ours}");
        return Err(Error::broken(from, what));
    };
    let index = link.index();
    match message.word {
        LinkWord::Fence(fence) => on_fence(&mut peer, index, fence),
        LinkWord::Join { epoch, address } => {
            // The peer's fence may have come just before this: then the old epoch ends now.
            progress_fence(all, from, index)?;
            on_join(&mut all.peer(from), index, epoch, &address)
        }
        LinkWord::Joined { epoch, address } => {
            let is_next = link.life.on_joined(epoch);
            last_path::attempt_answered(&mut peer);
            match is_next && reconnect(&mut peer, index, &address)? {
                true => revival::send_probe(&mut peer, index),
                false => Ok(()),
            }
        }
        LinkWord::Alive { epoch } => revival::on_alive(&mut peer, index, epoch),
    }
}

/// Handles the peer's fence: the peer has given up a link.
fn on_fence(peer: &mut Peer, index: usize, fence: Fence) -> Result<()> {
    let link = &mut peer.endpoint.links_mut()[index];
    if !link.life.on_fence(fence) {
        return Ok(());
    }
    match link.life.stage() {
        LifeStage::Live => give_up(peer, index, Status::RetryExceeded)?,
        LifeStage::Probing(_) => begin_draining(peer, index)?,
        LifeStage::Joining => {
            last_path::attempt_failed(peer);
            end_unconnected(peer, index)?;
        }
        _ => (),
    }
    peer.attention.fencing = true;
    Ok(())
}

/// Progresses the dead links of all connections. To be called from time to time.
#[cold]
pub(super) fn progress_dead(all: &mut Connections) -> Result<()> {
    let now = all.local.node.now();
    for event in all.local.node.port_events() {
        if event.change == device::PortChange::Up {
            hurry(all, event.rail, now);
        }
    }
    for at in 0..all.attention.impaired.len() {
        let peer = all.attention.impaired[at];
        for index in 0..all.endpoints.of(peer).links().len() {
            retry(&mut all.peer(peer), index, now)?;
        }
    }
    let endpoints = &mut all.endpoints;
    let is_impaired = |peer: &usize| {
        let endpoint = endpoints.of(*peer);
        let mut links = endpoint.links().iter();
        let is_out = |link: &Link| !link.life.is_live() && link.life.stage() != LifeStage::Ended;
        links.any(is_out) || endpoint.has_lost()
    };
    all.attention.impaired.retain(is_impaired);
    Ok(())
}

/// Makes the attempts to connect the links on `rail` due at once: its port works again.
fn hurry(all: &mut Connections, rail: usize, now: u64) {
    for &peer in &all.attention.impaired {
        let links = all.endpoints.of(peer).links_mut();
        for link in links.iter_mut().filter(|link| link.rail() == rail) {
            link.life.hurry(now);
        }
    }
}

/// Tries to connect a dead link again, if an attempt is due.
fn retry(peer: &mut Peer, index: usize, now: u64) -> Result<()> {
    // The end with the higher rank answers only.
    if peer.local.rank > peer.rank || !peer.endpoint.may_return(index) {
        return Ok(());
    }
    let link = &mut peer.endpoint.links_mut()[index];
    if link.life.retry_at().is_none_or(|at| now < at) {
        return Ok(());
    }
    link.life.join();
    let epoch = link.life.epoch();
    let address = renew(peer, index)?;
    peer.send_link(index, LinkWord::Join { epoch, address })
}

/// Takes the queue pairs of a dead link back to RESET, or replaces them. Returns their addresses.
fn renew(peer: &mut Peer, index: usize) -> Result<QpAddresses> {
    let node = &mut *peer.local.node;
    let link = &mut peer.endpoint.links_mut()[index];
    let rail = &mut peer.local.rails[link.rail()];
    link.forget();
    let gone = link.renew(node, rail.resets())?;
    for (role, gone) in [QpRole::Control, QpRole::Bulk].into_iter().zip(gone) {
        if let Some(gone) = gone {
            rail.remove_queue_pair(gone);
            rail.add_queue_pair(link.queue_pair_mut(role).qp(), peer.rank, role);
        }
    }
    link.addresses(node)
}

/// Handles the peer's request to connect a dead link again.
fn on_join(peer: &mut Peer, index: usize, epoch: u32, theirs: &QpAddresses) -> Result<()> {
    let link = &mut peer.endpoint.links_mut()[index];
    if !link.life.on_join(epoch) {
        return Ok(());
    }
    last_path::attempt_answered(peer);
    let address = renew(peer, index)?;
    match reconnect(peer, index, theirs)? {
        true => peer.send_link(index, LinkWord::Joined { epoch, address }),
        // The peer tries again.
        false => Ok(()),
    }
}

/// Connects the new queue pairs of a link, and posts the receives that the peer may need. False:
/// the device cannot connect them now, for example because its port is down.
fn reconnect(peer: &mut Peer, index: usize, theirs: &QpAddresses) -> Result<bool> {
    let rail = peer.endpoint.links()[index].rail();
    let (endpoint, local) = (&mut *peer.endpoint, &mut *peer.local);
    let receives = match endpoint.has_rings() {
        true => local.receives(rail),
        false => 0,
    };
    let node = &mut *local.node;
    let link = &mut endpoint.links_mut()[index];
    if link.reconnect(node, theirs).is_err() {
        end_unconnected(peer, index)?;
        return Ok(false);
    }
    for _ in 0..receives {
        link.control.post_receive(node)?;
    }
    link.post_shared_again(node)?;
    message_buffers::post_unposted(endpoint, node, &local.layout, peer.rank, index)?;
    let transfers = &mut *peer.transfers;
    transfers.reserve_notices_on(local, endpoint, (peer.rank, index))?;
    Ok(true)
}

/// The earliest times of the next attempts to connect a dead link: the first of endpoints without a
/// link that works, the second of all others. This end tries only links to higher ranks.
pub(super) fn next_retries(all: &Connections) -> [Option<u64>; 2] {
    let peers = all.attention.impaired.iter();
    let endpoints = peers.filter(|peer| all.local.rank < **peer);
    let endpoints = endpoints.filter_map(|peer| all.endpoints.get(*peer));
    let mut next = [None; 2];
    for endpoint in endpoints {
        let links = endpoint.links().iter();
        let due = links.filter(|link| endpoint.may_return(link.index()));
        let Some(at) = due.filter_map(|link| link.life.retry_at()).min() else {
            continue;
        };
        let earliest = &mut next[usize::from(!endpoint.is_cut_off())];
        *earliest = Some(earliest.map_or(at, |other| at.min(other)));
    }
    next
}
