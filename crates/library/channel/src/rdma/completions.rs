//! Completions: polls the devices, and passes each completion to the part that it concerns.

use device::{Completed, Completion, Status};

use super::failover;
use super::immediate::Immediate;
use super::local::{LATE, Local};
use super::message_buffers;
use super::messages;
use super::peer::{Connections, Peer};
use super::polled::SOME;
use super::qp_link::Note;
use super::revival;
use super::ring_sender::TOO_MANY;
use super::srq_path::MessagePlace;
use super::wr_id::{QpRole, Subject, WrId};
use crate::{Error, Result};

/// Handles the completions that this rank waits for. A rail on which nothing is outstanding is not
/// polled, unless it is the only one.
#[inline(never)]
pub(super) fn poll(all: &mut Connections) -> Result<()> {
    let rails = all.local.rails.len();
    let everything = rails == 1 || all.messages.is_active();
    if learns(all) {
        let now = all.local.node.now();
        all.polled.note_poll(now, all.local.needs_polls);
    }
    for rail in 0..rails {
        if everything || all.local.rails[rail].is_awaited() {
            poll_rail(all, rail)?;
        }
    }
    Ok(())
}

/// Polls the completion queues of all rails until they are empty, and handles the completions.
pub(super) fn poll_all(all: &mut Connections) -> Result<()> {
    (0..all.local.rails.len()).try_for_each(|rail| poll_rail(all, rail))
}

/// True if schedules learn from the times of completions now.
#[inline]
fn learns(all: &Connections) -> bool {
    all.local.in_use.len() > 1 && all.transfers.bulk.is_moving()
}

/// Records that a wait has ended with an event, so that the delay of the next completions is known.
/// Only where a device works while it is polled: such devices report completions almost only in
/// waits.
pub(super) fn note_wake(all: &mut Connections) {
    if learns(all) && all.local.needs_polls {
        all.polled.note_wake(all.local.node.now());
    }
}

/// Polls the completion queues of a rail until they are empty, and handles the completions.
pub(super) fn poll_rail(all: &mut Connections, rail: usize) -> Result<()> {
    for number in 0..all.local.rails[rail].cqs().len() {
        let cq = all.local.rails[rail].cqs()[number];
        loop {
            let device = all.local.node.rail(rail);
            let count = device.poll(cq, &mut *all.polled.found)?;
            for at in 0..count {
                let completion = all.polled.found[at];
                completed(all, rail, &completion)?;
            }
            if count < SOME {
                break;
            }
        }
    }
    Ok(())
}

/// Handles a completion that the device of a rail has reported.
fn completed(all: &mut Connections, rail: usize, completion: &Completion) -> Result<()> {
    let id = WrId::decode(completion.id);
    assert_eq!(id.rail, rail, "rail {rail} reports {id:?}");
    let own = &all.local.rails[rail];
    let from = match id.subject {
        Subject::Marker { peer, role } => {
            let link = all.endpoints.of(peer).link_on(rail);
            link.queue_pair_mut(role).heard_marker();
            return Ok(());
        }
        Subject::QueuePair { peer, .. } | Subject::EndpointBuffer { peer, .. } => peer,
        Subject::PoolBuffer { .. } => own.peer_of(completion.qp, QpRole::Control),
        Subject::Notice => own.peer_of(completion.qp, QpRole::Bulk),
    };
    if completion.status != Status::Success {
        return failed(&mut all.peer(from), rail, id.subject, completion.status);
    }
    let place = match (completion.of, id.subject) {
        (Completed::ReceiveWrite, Subject::Notice) => {
            let mut peer = all.peer(from);
            let local = &mut *peer.local;
            local.rails[rail].post_notice_receive(&mut *local.node)?;
            return noticed(&mut peer, completion.immediate);
        }
        (Completed::ReceiveWrite, _) => {
            return written(all, (from, rail), completion.immediate);
        }
        (Completed::Receive, Subject::PoolBuffer { buffer }) => MessagePlace::Pool(buffer),
        (Completed::Receive, Subject::EndpointBuffer { buffer, .. }) => {
            MessagePlace::Endpoint(buffer)
        }
        (Completed::Receive, _) => {
            return Err(Error::broken(from, "a message to a queue pair for writes"));
        }
        (of, Subject::QueuePair { role, .. }) => {
            return sent_request(all, (from, rail), role, of);
        }
        (of, subject) => panic!("a receive for {subject:?} completes as {of:?}"),
    };
    match completion.immediate {
        Some(grant) => granted(&mut all.peer(from), rail, place, grant),
        None => {
            let bytes = completion.bytes as usize;
            all.messages.received(rail, from, place, bytes);
            Ok(())
        }
    }
}

/// Handles the failure of a request that was posted on a rail.
fn failed(peer: &mut Peer, rail: usize, subject: Subject, status: Status) -> Result<()> {
    // A peer that has received this rank's goodbye may be gone. Some devices then flush receives
    // that nothing will use. A probe of a link that has failed before is no such case: the peer
    // waits for the next attempt.
    let endpoint = &mut *peer.endpoint;
    let (said_bye, is_over) = (
        endpoint.connection.has_said_bye(),
        endpoint.connection.is_over(),
    );
    if said_bye && (is_over || endpoint.link_on(rail).life.is_live()) {
        return Ok(());
    }
    failover::request_failed(peer, rail, status)?;
    return_receive(peer, rail, subject)
}

/// Posts a receive again that has failed with its link. One into the memory for a ring moves to
/// another link.
fn return_receive(peer: &mut Peer, rail: usize, subject: Subject) -> Result<()> {
    let Local {
        node,
        layout,
        rails,
        ..
    } = &mut *peer.local;
    match subject {
        Subject::Notice => rails[rail].post_notice_receive(&mut **node),
        Subject::PoolBuffer { buffer } => {
            let pool = peer.endpoint.link_on(rail).pool;
            rails[rail].pools.pool(pool).post(&mut **node, buffer)
        }
        Subject::EndpointBuffer { buffer, .. } => {
            let endpoint = &mut *peer.endpoint;
            message_buffers::post_in_memory(endpoint, &mut **node, layout, peer.rank, buffer)
        }
        Subject::QueuePair { .. } | Subject::Marker { .. } => Ok(()),
    }
}

/// Handles the completion of a request of a send queue, which reports every earlier request too.
fn sent_request(
    all: &mut Connections,
    (to, rail): (usize, usize),
    role: QpRole,
    of: Completed,
) -> Result<()> {
    let endpoint = all.endpoints.of(to);
    let link = endpoint.link_on(rail);
    let index = link.index();
    if of == Completed::Read && role == QpRole::Control {
        link.probed = None;
    }
    let (note, slot) = link.queue_pair_mut(role).completed();
    // Whatever the request was, the ring slots before it on this queue pair are written.
    endpoint.sender.heard_completed(index, slot);
    match note {
        Note::Ring(_) => Ok(()),
        Note::RingData(_) => {
            // The data of a packet of the design `Basic` has been written: its head pointer
            // follows.
            if endpoint.write_head_pointer(&mut *all.local.node)? {
                all.attention.deferred -= 1;
            }
            Ok(())
        }
        Note::Replay(sequence) => {
            endpoint.sender.replay_completed(sequence);
            Ok(())
        }
        Note::Probe => revival::probe_arrived(&mut all.peer(to), index),
        Note::SendBuffer(number) => {
            all.messages.sent(number);
            Ok(())
        }
        Note::Piece(piece) => {
            let flow = all.transfers.bulk.completed(to, &piece);
            if let Some(schedules) = &mut endpoint.schedules {
                let (polled_at, late) = all.polled.time();
                let schedule = schedules.of(flow);
                schedule.completed(index, piece.len.into(), polled_at, late);
            }
            all.transfers.post(&mut all.local, endpoint)
        }
        Note::Grant => Ok(()),
    }
}

/// Handles a notice (the report of a transfer's end) of the peer.
fn noticed(peer: &mut Peer, immediate: Option<u32>) -> Result<()> {
    let transfers = &mut *peer.transfers;
    transfers.noticed(peer.local, peer.endpoint, (peer.rank, immediate))
}

/// Handles a peer's write with an immediate, all bytes of which are visible.
fn written(
    all: &mut Connections,
    (from, rail): (usize, usize),
    immediate: Option<u32>,
) -> Result<()> {
    let endpoint = all.endpoints.of(from);
    if endpoint.notices_in_control() {
        let link = endpoint.link_on(rail);
        link.control.post_receive(&mut *all.local.node)?;
        return noticed(&mut all.peer(from), immediate);
    }
    let report = immediate.filter(|_| endpoint.has_rings());
    match report.map(Immediate::decode) {
        Some(Immediate::Tail(tail)) => {
            if !endpoint.sender.heard_tail(tail) {
                return Err(Error::broken(from, TOO_MANY));
            }
        }
        Some(Immediate::Whole { class, lower }) => {
            let known = endpoint.receiver.completion(class, lower);
            known.map_err(|what| Error::broken(from, what))?;
        }
        None => {
            let what = match immediate {
                Some(number) => format!("a write with the impossible immediate {number:#x}"),
                None => "a write that consumes a receive without an immediate".to_string(),
            };
            return Err(Error::broken(from, what));
        }
    }
    let link = endpoint.link_on(rail);
    link.receives_due += 1;
    let late = link.receives_due == LATE;
    all.attention.receives_due += 1;
    match late {
        true => post_due(all),
        false => Ok(()),
    }
}

/// Handles a grant-only message of a peer, which consumed the receive at `place`.
fn granted(peer: &mut Peer, rail: usize, place: MessagePlace, lower: u32) -> Result<()> {
    let endpoint = &mut *peer.endpoint;
    messages::on_grant(endpoint, peer.rank, lower)?;
    let local = &mut *peer.local;
    let rail = &local.rails[rail];
    message_buffers::post_again(
        endpoint,
        &mut *local.node,
        rail,
        &local.layout,
        peer.rank,
        place,
    )
}

/// Posts the receives that have been consumed. To be called after a packet has left, or when
/// nothing else is to do: the answer to the packet that consumed the last receive is more urgent.
#[inline(never)]
pub(super) fn post_due(all: &mut Connections) -> Result<()> {
    all.attention.receives_due = 0;
    for at in 0..all.endpoints.ringed().len() {
        let peer = all.endpoints.ringed()[at];
        for link in all.endpoints.of(peer).links_mut() {
            link.post_receives_due(&mut *all.local.node)?;
        }
    }
    Ok(())
}
