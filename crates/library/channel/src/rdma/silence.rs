//! Detection of lost peers: a peer without a working link, or one from which an answer is overdue,
//! is given up once its silence exceeds the user's limit (`FISHPLATE_OUTAGE`). [`Outage`] measures
//! the time.

use super::attention::Attention;
use super::bulk::Reserved;
use super::completions;
use super::connection::Connection;
use super::last_path;
use super::lifecycle::LifeStage;
use super::local::Local;
use super::outage::Outage;
use super::peer::{Connections, Peer};
use super::wr_id::QpRole;
use crate::{Error, Fault, Result};

/// The time for which an answer may be awaited before the node is asked for signs of the peer, in
/// nanoseconds.
const USUAL: u64 = 1_000_000_000;

/// Gives up the peers whose silence has lasted too long. An error: a peer is lost.
pub(super) fn check(all: &mut Connections) -> Result<()> {
    if all.local.knows_cuts {
        find_cuts(all);
    }
    match all.attention.silent.is_empty() {
        true => Ok(()),
        false => check_silent(all),
    }
}

/// Gives up the peers that have been silent for too long: those without a working link, and those
/// from which an answer is awaited. To be called regularly. An error: a peer is lost.
#[cold]
pub(super) fn check_silent(all: &mut Connections) -> Result<()> {
    let now = all.local.node.now();
    for at in 0..all.attention.silent.len() {
        let peer = all.attention.silent[at];
        if all.endpoints.of(peer).last_path.outage.is_some() {
            judge(&mut all.peer(peer), now)?;
        }
    }
    let ended = bury_lost(all)?;
    let endpoints = &mut all.endpoints;
    all.attention.silent.retain(|peer| {
        let last_path = &endpoints.of(*peer).last_path;
        last_path.outage.is_some() || last_path.loss.is_some()
    });
    ended.map_or(Ok(()), Err)
}

fn judge(peer: &mut Peer, now: u64) -> Result<()> {
    let is_cut_off = peer.endpoint.is_cut_off();
    let awaits_word = peer.endpoint.awaits_word();
    let knows_cuts = peer.local.knows_cuts;
    let is_virtual = peer.local.node.is_virtual();
    let state = &mut peer.endpoint.last_path;
    if !is_cut_off && !awaits_word && !knows_cuts {
        state.outage = None;
        return Ok(());
    }
    let Some(outage) = &mut state.outage else {
        return Ok(());
    };
    if !is_virtual {
        outage.check_signs(now);
    }
    let is_usual = !is_cut_off && outage.lasts(now) < USUAL;
    if is_usual && !knows_cuts {
        return Ok(());
    }
    let signs = peer.local.node.signs(peer.rank);
    if !is_cut_off && knows_cuts && signs.cut.is_none() {
        // The paths work, so the awaited message can arrive: the peer is not silent.
        state.outage = awaits_word.then(|| Outage::begin(now));
        return Ok(());
    }
    let patience = peer.local.config.patience;
    if let Some(since) = signs.cut {
        outage.silent_from(since);
    }
    let may_be_lost = is_cut_off || signs.tell;
    let loss = outage.loss(&signs, patience, now);
    let is_real = is_cut_off && !is_virtual;
    let outlasts = loss.is_none() && is_real && outage.outlasts(patience, now);
    let report_is_due = loss.is_none() && may_be_lost && outage.report_is_due(is_cut_off, now);
    if report_is_due {
        match is_cut_off {
            true => {
                let why = last_path::failure_of(peer);
                let what = format!("no path to {} works ({why})", peer.local.name_of(peer.rank));
                report_outage(peer.local, peer.attention, peer.rank, &what);
            }
            false => report_silence(peer.local, peer.attention, peer.rank),
        }
    }
    if outlasts {
        report_answers(peer);
    }
    match loss.filter(|_| may_be_lost) {
        Some(loss) => {
            let error = last_path::error_of(peer, loss);
            last_path::lose(peer, error)
        }
        None => Ok(()),
    }
}

/// Finds peers to which a modelled machine has no path, though no request has failed.
#[cold]
fn find_cuts(all: &mut Connections) {
    for at in 0..all.endpoints.known().len() {
        let peer = all.endpoints.known()[at];
        let endpoint = all.endpoints.of(peer);
        if endpoint.last_path.outage.is_some() || endpoint.connection.is_over() {
            continue;
        }
        if let Some(since) = all.local.node.signs(peer).cut {
            endpoint.last_path.outage = Some(Outage::begin(since));
            all.attention.watch_silence(peer);
        }
    }
}

/// The earliest time at which a peer is lost, or an outage is reported to the user.
pub(super) fn next_judgement(all: &mut Connections) -> Option<u64> {
    let mut next = None;
    for &peer in &all.attention.silent {
        let endpoint = all.endpoints.of(peer);
        if endpoint.last_path.loss.is_some() {
            return Some(0);
        }
        let is_cut_off = endpoint.is_cut_off();
        let Some(outage) = &endpoint.last_path.outage else {
            continue;
        };
        let deadline = outage.deadline(all.local.config.patience);
        let report = outage.report_at(is_cut_off);
        // In virtual time a wait without a cut needs no limit, and must not get one: other ranks
        // may be in a deadlock.
        let node = &mut all.local.node;
        if is_cut_off || !node.is_virtual() || node.signs(peer).cut.is_some() {
            next = [next, deadline, report].into_iter().flatten().min();
        }
    }
    next
}

/// Gives up a peer because another part of this rank has given it up.
pub(super) fn give_up(all: &mut Connections, peer: usize) {
    let is_open = all.endpoints.get(peer).is_some();
    if is_open && all.endpoints.of(peer).connection != Connection::Lost {
        // The caller knows the error.
        let known = Fault::Gone { peer };
        if last_path::lose(&mut all.peer(peer), known.into()).is_err() {
            // Its queue pairs stay as they are.
            all.endpoints.of(peer).last_path.loss = None;
        }
    }
}

/// Ends the links of lost peers whose queue pairs are drained. Returns the error of one such peer,
/// which must be reported.
fn bury_lost(all: &mut Connections) -> Result<Option<Error>> {
    for at in 0..all.attention.silent.len() {
        let peer = all.attention.silent[at];
        if all.endpoints.of(peer).last_path.loss.is_none() {
            continue;
        }
        completions::poll_all(all)?;
        let mut peer = all.peer(peer);
        if is_drained(&mut peer)? {
            end_links(&mut peer);
            return Ok(peer.endpoint.last_path.loss.take());
        }
    }
    Ok(None)
}

fn is_drained(peer: &mut Peer) -> Result<bool> {
    for link in peer.endpoint.links() {
        let is_draining = link.life.stage() == LifeStage::Draining;
        if is_draining && !link.is_drained(&mut *peer.local.node)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Destroys the queue pairs of a lost peer, and discards what they carried.
fn end_links(peer: &mut Peer) {
    let Local { node, rails, .. } = &mut *peer.local;
    let endpoint = &mut *peer.endpoint;
    let mut messages: Vec<usize> = std::mem::take(&mut endpoint.lost_messages).into();
    for link in endpoint.links_mut() {
        messages.extend(link.forget());
        link.lost_pieces.clear();
        let rail = &mut rails[link.rail()];
        for role in [QpRole::Control, QpRole::Bulk] {
            rail.remove_queue_pair(link.queue_pair_mut(role).qp());
        }
        link.close(&mut **node);
        link.life.end();
    }
    messages
        .into_iter()
        .for_each(|number| peer.messages.sent(number));
    endpoint.transfers = Default::default();
    for reserved in peer.transfers.bulk.lose(peer.rank) {
        if let Reserved::Rails(on) = reserved {
            peer.local.release_notices(on);
        }
    }
    let impaired = &mut peer.attention.impaired;
    impaired.retain(|other| *other != peer.rank);
}

/// Reports to the user a peer that gives no sign, though no link to it has failed.
pub(super) fn report_silence(local: &mut Local, attention: &mut Attention, peer: usize) {
    let (name, here) = (local.name_of(peer), local.place_here());
    let what = format!("{name} does not answer {here}");
    report_outage(local, attention, peer, &what);
}

fn report_outage(local: &Local, attention: &mut Attention, peer: usize, what: &str) {
    let waits = match local.config.patience.silence {
        Some(nanos) => {
            let time = std::time::Duration::from_nanos(nanos);
            format!("this rank waits for the network for at most {time:?} (FISHPLATE_OUTAGE)")
        }
        None => "this rank waits for the network for ever (FISHPLATE_OUTAGE)".into(),
    };
    attention.report(format!("outage-{peer}"), format!("{what}: {waits}"));
}

/// Reports to the user a peer whose host answers, though no path works.
fn report_answers(peer: &mut Peer) {
    let limit = peer.local.config.patience.silence.unwrap_or(0);
    let limit = std::time::Duration::from_nanos(limit);
    let text = format!(
        "no path to {} has worked for {limit:?}, and its host answers: the process computes, or the network \
         carries packets of the kernels only; this rank goes on waiting",
        peer.local.name_of(peer.rank)
    );
    let topic = format!("answers-{}", peer.rank);
    peer.attention.report(topic, text);
}
