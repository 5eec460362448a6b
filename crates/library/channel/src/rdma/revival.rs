//! The last step in connecting a link again: writes of no bytes in both directions show that it
//! works.

use device::Operation;

use super::fence::LinkWord;
use super::last_path;
use super::lifecycle::ProbeStep;
use super::peer::Peer;
use super::qp_link::Note;
use crate::Result;

/// Sends a probe: a write of no bytes over a link that may work again.
pub(super) fn send_probe(peer: &mut Peer, index: usize) -> Result<()> {
    let endpoint = &mut *peer.endpoint;
    let link = &endpoint.links()[index];
    let operation = Operation::Write {
        to: endpoint.sender.remote_memory(link),
        immediate: None,
    };
    // Without other links the whole connection waits for the probe: it is progress.
    let is_last = endpoint.is_cut_off();
    let link = &mut endpoint.links_mut()[index];
    let node = &mut *peer.local.node;
    link.set_probing(node, !is_last)?;
    link.control
        .post(node, operation, &[], false, true, Note::Probe)?;
    Ok(())
}

/// Handles the completion of a probe of this end: the probe has arrived at the peer.
pub(super) fn probe_arrived(peer: &mut Peer, index: usize) -> Result<()> {
    let now = peer.local.node.now();
    let life = &mut peer.endpoint.links_mut()[index].life;
    let (step, epoch) = (life.probed(now), life.epoch());
    if let ProbeStep::PeersTurn | ProbeStep::Live = step {
        let link = &peer.endpoint.links()[index];
        link.set_probing(&mut *peer.local.node, false)?;
        peer.send_link(index, LinkWord::Alive { epoch })?;
    }
    go_on(peer, index, step)
}

/// Handles the peer's report that its probes have arrived.
pub(super) fn on_alive(peer: &mut Peer, index: usize, epoch: u32) -> Result<()> {
    let now = peer.local.node.now();
    let link = &mut peer.endpoint.links_mut()[index];
    let step = link.life.on_alive(epoch, now);
    go_on(peer, index, step)
}

fn go_on(peer: &mut Peer, index: usize, step: ProbeStep) -> Result<()> {
    match step {
        ProbeStep::Probe => send_probe(peer, index),
        ProbeStep::Live => revive(peer, index),
        ProbeStep::PeersTurn | ProbeStep::Stale => Ok(()),
    }
}

/// Puts a link into use again, because it works.
fn revive(peer: &mut Peer, index: usize) -> Result<()> {
    let rail = peer.endpoint.links()[index].rail();
    peer.endpoint.take_back_link(index);
    peer.attention.reported[rail] = false;
    last_path::end_outage(peer)?;
    peer.post_transfers()
}
