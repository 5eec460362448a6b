//! Failover: a link whose requests fail is given up, and its queue pairs drain. `recovery` moves
//! what the link carried to the others, and takes the link back when it works again. Where no other
//! link works, the lost work waits for the first that does (`last_path`).
//!
//! A link is given up by both ends. Each takes its queue pairs to ERROR, waits until they are
//! drained, and reports to the peer what it has received (a *fence*). Once an end is drained and
//! knows the peer's fence, it writes again what the peer lacks.
//!
//! [`Lifecycle`](super::lifecycle::Lifecycle) has the stages.
//!
//! Invariant: only requests that no peer has acknowledged, or that were flushed behind one, start
//! this; every other failure is an error of the program or of the library.

use device::Status;

use super::last_path;
use super::lifecycle::LifeStage;
use super::peer::Peer;
use crate::Result;

/// Handles a failed request on the link over `rail`. The peer is lost if the failure has another
/// cause than the path.
#[cold]
pub(super) fn request_failed(peer: &mut Peer, rail: usize, status: Status) -> Result<()> {
    let link = peer.endpoint.link_on(rail);
    let index = link.index();
    match link.life.stage() {
        LifeStage::Draining
        | LifeStage::Fenced
        | LifeStage::Dead
        | LifeStage::Joining
        | LifeStage::Ended => return Ok(()),
        LifeStage::Probing(_) => return begin_draining(peer, index),
        LifeStage::Live => (),
    }
    let is_path = matches!(status, Status::RetryExceeded | Status::Flushed);
    if !is_path || !peer.local.rails[rail].answered() {
        let error = peer.local.lost(peer.rank, rail, status);
        return last_path::lose(peer, error);
    }
    give_up(peer, index, status)
}

/// Gives up a live link: its queue pairs begin to drain.
pub(super) fn give_up(peer: &mut Peer, index: usize, status: Status) -> Result<()> {
    let rail = peer.endpoint.links()[index].rail();
    peer.endpoint.last_path.failure = Some((rail, status));
    match peer.endpoint.leave_link(index) {
        true => report_loss(peer, rail, status.words()),
        false => last_path::cut_off(peer),
    }
    begin_draining(peer, index)?;
    peer.attention.is_impaired(peer.rank);
    Ok(())
}

/// Ends the epoch of a link that a device could not connect. The fence reports it to the peer.
#[cold]
pub(super) fn cannot_connect(peer: &mut Peer, rail: usize, why: &str) -> Result<()> {
    let index = peer.endpoint.link_on(rail).index();
    peer.endpoint.last_path.failure = Some((rail, Status::RetryExceeded));
    if peer.endpoint.leave_link(index) {
        report_loss(peer, rail, why);
    }
    end_unconnected(peer, index)
}

/// Ends the epoch of a link whose queue pairs are not connected: they are drained already.
pub(super) fn end_unconnected(peer: &mut Peer, index: usize) -> Result<()> {
    let link = &mut peer.endpoint.links_mut()[index];
    let resets = peer.local.rails[link.rail()].resets();
    link.life.fail();
    link.stay_unconnected(&mut *peer.local.node, resets)?;
    peer.attention.is_impaired(peer.rank);
    Ok(())
}

/// Takes the queue pairs of a link to ERROR. A link that fails while it is probed is drained and
/// fenced too: a queue pair that uses a shared receive queue may go back to RESET only when it is
/// drained, at both ends.
pub(super) fn begin_draining(peer: &mut Peer, index: usize) -> Result<()> {
    last_path::attempt_failed(peer);
    let link = &mut peer.endpoint.links_mut()[index];
    link.life.fail();
    peer.attention.fencing = true;
    link.fail(&mut *peer.local.node, peer.rank)
}

/// Reports the loss of a rail to the user, once for each rail.
fn report_loss(peer: &mut Peer, rail: usize, why: &str) {
    let name = peer.local.device(rail);
    let notes = peer.local.node.notes();
    let why = match notes.is_empty() {
        true => why.to_string(),
        false => format!("{why}; {}", notes.join("; ")),
    };
    let others = peer.endpoint.live_rails().len();
    let rails = match others {
        2 => "one rail carries".to_string(),
        more => format!("{} rails carry", more - 1),
    };
    if !std::mem::replace(&mut peer.attention.reported[rail], true) {
        let text = format!(
            "rail {rail} ({name}) towards rank {} has failed: {why}; {rails} its traffic until it works again",
            peer.rank
        );
        peer.attention.report(format!("rail-{rail}"), text);
    }
}
