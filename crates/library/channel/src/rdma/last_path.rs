//! The last path to a peer: its failure, its return, and the loss of a peer that no link reaches.
//! `silence` decides when that peer is lost.
//!
//! [`Outage`] has the clocks. They also run while this rank awaits an out-of-band message that no
//! link carries: the peer's hello or goodbye.
//!
//! Invariants:
//! - nothing is posted for a peer without a link that works; what was posted waits, and is written
//!   again over the first link that does;
//! - a lost peer stays lost. Its loss is reported once, as the error of a poll, after its queue
//!   pairs are drained: from then on no device touches memory that was exposed for it.

use device::{LinkLayer, Status};

use super::connection::Connection;
use super::handshake::HandshakeMessage;
use super::lifecycle::LifeStage;
use super::local;
use super::message_buffers;
use super::outage::{Loss, Outage};
use super::peer::Peer;
use super::rail_set::RailSet;
use crate::{Error, Fault, Result};

/// Begins an outage of the connection: no link to the peer works any more.
#[cold]
pub(super) fn cut_off(peer: &mut Peer) {
    let now = peer.local.node.now();
    peer.endpoint.connection.sever();
    let outage = &mut peer.endpoint.last_path.outage;
    outage.get_or_insert_with(|| Outage::begin(now));
    peer.attention.watch_silence(peer.rank);
}

/// Begins to time the wait for an out-of-band message of the peer, which no link carries. A
/// modelled machine loses no such message unless a fault is planned.
pub(super) fn await_word(peer: &mut Peer) {
    if peer.local.node.is_virtual() && !peer.local.knows_cuts {
        return;
    }
    let now = peer.local.node.now();
    let outage = &mut peer.endpoint.last_path.outage;
    outage.get_or_insert_with(|| Outage::begin(now));
    peer.attention.watch_silence(peer.rank);
}

/// Records that an out-of-band message of the peer has arrived.
pub(super) fn heard_from(peer: &mut Peer) {
    note(peer, Outage::sign);
}

/// Records that an attempt to connect a link to the peer again has failed.
pub(super) fn attempt_failed(peer: &mut Peer) {
    note(peer, Outage::attempt_failed);
}

/// Records that the peer has answered an attempt to connect a link again.
pub(super) fn attempt_answered(peer: &mut Peer) {
    note(peer, Outage::answered);
}

/// Records an event in the present outage, if there is one.
fn note(peer: &mut Peer, event: fn(&mut Outage, u64)) {
    if let Some(outage) = &mut peer.endpoint.last_path.outage {
        event(outage, peer.local.node.now());
    }
}

/// Ends the outage: a link to the peer works again. Nothing happens if another link has worked all
/// the time.
pub(super) fn end_outage(peer: &mut Peer) -> Result<()> {
    let now = peer.local.node.now();
    let endpoint = &mut *peer.endpoint;
    let carrier = endpoint.home().index();
    // Those of links that are being given up follow when both ends are drained.
    let dead = endpoint.links().iter().filter(|link| link.life.is_dead());
    let dead = dead.fold(RailSet::default(), |set, link| set.with(link.index()));
    endpoint.connection.restore();
    let awaits_word = endpoint.awaits_word();
    let Some(outage) = endpoint.last_path.outage.take() else {
        return Ok(());
    };
    // Messages that were consumed since the link was connected have freed buffers.
    let local = &mut *peer.local;
    message_buffers::post_unposted(
        endpoint,
        &mut *local.node,
        &local.layout,
        peer.rank,
        carrier,
    )?;
    peer.transfers.bulk.carry_all(peer.rank, carrier, dead);
    // Lost packets are written again with the next poll.
    peer.attention.fencing = true;
    peer.attention.outages.add(outage.lasts(now));
    if outage.was_reported() {
        let seconds = outage.lasts(now) as f64 / 1e9;
        let text = format!(
            "{} is reached again after {seconds:.1} s without a network",
            local.name_of(peer.rank)
        );
        let count = peer.attention.outages.count;
        let topic = format!("back-{}-{count}", peer.rank);
        peer.attention.report(topic, text);
    }
    if awaits_word {
        await_word(peer);
    }
    Ok(())
}

/// Gives up the peer for good: every operation that needs it fails.
#[cold]
pub(super) fn lose(peer: &mut Peer, error: Error) -> Result<()> {
    let endpoint = &mut *peer.endpoint;
    if endpoint.connection == Connection::Lost {
        return Ok(());
    }
    if endpoint.connection.lose() {
        peer.attention.connecting -= 1;
        let in_progress = &mut peer.attention.in_progress;
        in_progress.retain(|other| *other != peer.rank);
    }
    endpoint.last_path.outage = None;
    endpoint.last_path.loss = Some(error);
    peer.attention.deferred -= endpoint.sender.give_up();
    for link in endpoint.links_mut() {
        match link.life.stage() {
            LifeStage::Live | LifeStage::Probing(_) if !link.is_new() => {
                link.life.fail();
                link.fail(&mut *peer.local.node, peer.rank)?;
            }
            _ => (),
        }
    }
    // The peer may wait for this rank, and the network may return.
    peer.send_oob(&HandshakeMessage::GaveUp)?;
    peer.local.node.give_up(peer.rank);
    peer.attention.watch_silence(peer.rank);
    peer.attention.all = true;
    Ok(())
}

/// Gives up the peer for good, because the peer has given up this rank.
pub(super) fn on_gave_up(peer: &mut Peer) -> Result<()> {
    let what = peer.local.name_of(peer.rank);
    let check = local::advice(Status::RetryExceeded, layer_to(peer));
    let error = Fault::Lost {
        peer: peer.rank,
        device: device_to(peer),
        status: format!("{what} has given up this one"),
        check,
        may_be_death: false,
    };
    lose(peer, error.into())
}

/// The error of operations that need a peer which is lost for this reason.
pub(super) fn error_of(peer: &mut Peer, loss: Loss) -> Error {
    let patience = peer.local.config.patience.silence;
    let limit = patience.map_or(String::new(), |nanos| {
        let time = std::time::Duration::from_nanos(nanos);
        format!(" for {time:?}, the limit of FISHPLATE_OUTAGE")
    });
    let is_at_once = patience == Some(0);
    let failure = peer.endpoint.last_path.failure;
    if !peer.endpoint.has_been_made() {
        let why = format!(
            "{} gave no answer to {}{limit}: are interfaces, cables, routes and firewalls between the two right \
             (ip addr, ip route, ping)?",
            peer.local.name_of(peer.rank),
            peer.local.place_here(),
        );
        let peer = peer.rank;
        return Fault::Unreachable { peer, why }.into();
    }
    if let (true, Some((rail, status))) = (is_at_once, failure) {
        return peer.local.lost(peer.rank, rail, status);
    }
    let status = match loss {
        Loss::Silent => format!("no sign of life{limit}; {}", failure_of(peer)),
        Loss::Unusable => format!("no link could be made{limit}; {}", failure_of(peer)),
        Loss::Dead => "its host says that the process is gone".to_string(),
    };
    Fault::Lost {
        peer: peer.rank,
        device: device_to(peer),
        status,
        check: local::advice(Status::RetryExceeded, layer_to(peer)),
        may_be_death: loss == Loss::Dead,
    }
    .into()
}

/// The last failure of a link to the peer, as text.
pub(super) fn failure_of(peer: &mut Peer) -> String {
    let Some((rail, status)) = peer.endpoint.last_path.failure else {
        return "nothing has failed yet".into();
    };
    let name = peer.local.device(rail);
    let notes = peer.local.node.notes();
    match notes.last() {
        None => format!("rail {rail}, {name}: {}", status.words()),
        Some(last) => format!("rail {rail}, {name}: {}; {last}", status.words()),
    }
}

fn device_to(peer: &mut Peer) -> String {
    peer.local.device(peer.endpoint.home().rail())
}

fn layer_to(peer: &Peer) -> LinkLayer {
    peer.endpoint.home().network().link_layer
}
