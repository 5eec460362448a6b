//! The driver of failover: it gives up a link whose requests fail, moves what the link carried to
//! the others, and takes the link back when it works again. Where no other link works, the lost
//! work waits for the first that does (`last_path`).
//!
//! A link is given up by both ends. Each takes its queue pairs to ERROR, waits until they are
//! drained, and reports to the peer what it has received (a *fence*). Once an end is drained and
//! knows the peer's fence, it writes again what the peer lacks.
//!
//! [`Lifecycle`](super::lifecycle::Lifecycle) has the stages.
//!
//! Invariants:
//! - only requests that no peer has acknowledged, or that were flushed behind one, start this;
//!   every other failure is an error of the program or of the library;
//! - nothing that the peer's fence confirms is written again: no buffer changes after the peer's
//!   request has completed.

use device::{Node, Operation, Status};

use super::Rdma;
use super::connection::Connection;
use super::credit::GRANTS;
use super::fence::{Fence, LinkMessage, LinkWord, NewAddress};
use super::handshake::HandshakeMessage;
use super::lifecycle::{LifeStage, ProbeStep};
use super::link::Link;
use super::qp_link::Note;
use super::ring_sender::TOO_MANY;
use super::wr_id::QpRole;
use crate::{Error, Result};

impl Rdma {
    /// A request on the link to `peer` over `rail` has failed. The peer is lost if the failure has
    /// another cause than the path.
    #[cold]
    pub(super) fn request_failed(
        &mut self,
        peer: usize,
        rail: usize,
        status: Status,
    ) -> Result<()> {
        let endpoint = self.endpoints.of(peer);
        let link = endpoint.link_on(rail);
        let index = link.index();
        match link.life.stage() {
            LifeStage::Draining
            | LifeStage::Fenced
            | LifeStage::Dead
            | LifeStage::Joining
            | LifeStage::Ended => return Ok(()),
            LifeStage::Probing(_) => return self.begin_draining(peer, index),
            LifeStage::Live => (),
        }
        let is_path = matches!(status, Status::RetryExceeded | Status::Flushed);
        if !is_path || !self.rails[rail].answered() {
            let error = self.lost(peer, rail, status);
            return self.lose(peer, error);
        }
        self.give_up(peer, index, status)
    }

    /// Gives up a live link: its queue pairs begin to drain.
    fn give_up(&mut self, peer: usize, index: usize, status: Status) -> Result<()> {
        let endpoint = self.endpoints.of(peer);
        let rail = endpoint.links()[index].rail();
        endpoint.last_path.failure = Some((rail, status));
        match endpoint.leave_link(index) {
            true => self.report_loss(peer, rail, status.words()),
            false => self.cut_off(peer),
        }
        self.begin_draining(peer, index)?;
        self.is_impaired(peer);
        Ok(())
    }

    /// A device could not connect a link: the peer hears of it by the fence.
    #[cold]
    pub(super) fn cannot_connect(&mut self, peer: usize, rail: usize, why: &str) -> Result<()> {
        let endpoint = self.endpoints.of(peer);
        let index = endpoint.link_on(rail).index();
        endpoint.last_path.failure = Some((rail, Status::RetryExceeded));
        if endpoint.leave_link(index) {
            self.report_loss(peer, rail, why);
        }
        self.end_unconnected(peer, index)
    }

    /// Ends the life of a link whose queue pairs are not connected: they are drained already.
    fn end_unconnected(&mut self, peer: usize, index: usize) -> Result<()> {
        let link = &mut self.endpoints.of(peer).links_mut()[index];
        let resets = self.rails[link.rail()].resets();
        link.life.fail();
        link.stay_unconnected(&mut *self.node, resets)?;
        self.is_impaired(peer);
        Ok(())
    }

    /// A link to `peer` is being given up.
    pub(super) fn is_impaired(&mut self, peer: usize) {
        if !self.attention.impaired.contains(&peer) {
            self.attention.impaired.push(peer);
        }
        self.attention.fencing = true;
    }

    /// Takes the queue pairs of a link to ERROR. A link that fails while it is probed is drained
    /// and fenced too: a queue pair that uses a shared receive queue may go back to RESET only when
    /// it is drained, at both ends.
    pub(super) fn begin_draining(&mut self, peer: usize, index: usize) -> Result<()> {
        self.attempt_failed(peer);
        let link = &mut self.endpoints.of(peer).links_mut()[index];
        link.life.fail();
        self.attention.fencing = true;
        link.fail(&mut *self.node, peer)
    }

    /// Keeps the words about a lost rail, one for each rail.
    fn report_loss(&mut self, peer: usize, rail: usize, why: &str) {
        let name = self.node.rail(rail).attributes().name.clone();
        let notes = self.node.notes();
        let why = match notes.is_empty() {
            true => why.to_string(),
            false => format!("{why}; {}", notes.join("; ")),
        };
        let others = self.endpoints.of(peer).live_rails().len();
        let rails = match others {
            2 => "one rail carries".to_string(),
            more => format!("{} rails carry", more - 1),
        };
        if !std::mem::replace(&mut self.attention.reported[rail], true) {
            let text = format!(
                "rail {rail} ({name}) towards rank {peer} has failed: {why}; {rails} its traffic until it works again"
            );
            self.report(format!("rail-{rail}"), text);
        }
    }

    /// Keeps a report for the user.
    pub(super) fn report(&mut self, topic: String, text: String) {
        self.attention.reports.push((topic, text));
    }

    /// Takes the reports about rails since the last call: a topic, and the words.
    pub fn take_reports(&mut self) -> Vec<(String, String)> {
        let failed = std::mem::take(&mut self.attention.reports).into_iter();
        let warnings = self.node.warnings().into_iter();
        let warnings = warnings.map(|(rail, words)| (format!("stranger-{rail}"), words));
        failed.chain(warnings).collect()
    }

    /// The rails to which strangers have connected: number, device, number of connections.
    pub fn strangers(&mut self) -> Vec<(usize, String, u64)> {
        let counts = self.node.strangers().into_iter().enumerate();
        let visited: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        let named = visited.into_iter().map(|(rail, count)| {
            let device = self.node.rail(rail).attributes().name.clone();
            (rail, device, count)
        });
        named.collect()
    }

    /// Goes on with links that are being given up. To be called while there are some.
    #[cold]
    #[inline(never)]
    pub(super) fn tend_fences(&mut self) -> Result<()> {
        self.poll_all()?;
        self.listen()?;
        let mut fencing = false;
        for at in 0..self.attention.impaired.len() {
            let peer = self.attention.impaired[at];
            if self.endpoints.of(peer).connection == Connection::Lost {
                continue;
            }
            for index in 0..self.endpoints.of(peer).links().len() {
                self.tend_fence(peer, index)?;
            }
            self.replay(peer)?;
            let endpoint = self.endpoints.of(peer);
            fencing |= endpoint.is_fencing() || endpoint.has_lost();
        }
        self.attention.fencing = fencing;
        Ok(())
    }

    /// Goes on with a link that is being given up.
    fn tend_fence(&mut self, peer: usize, index: usize) -> Result<()> {
        let link = &mut self.endpoints.of(peer).links_mut()[index];
        if link.life.stage() == LifeStage::Draining && link.is_drained(&mut *self.node)? {
            let rail = link.rail();
            // The completions of the peer's last writes are in the completion queue.
            self.poll_rail(rail)?;
            self.send_fence(peer, index)?;
        }
        let now = self.node.now();
        let endpoint = self.endpoints.of(peer);
        let is_last = endpoint.is_cut_off();
        match endpoint.links_mut()[index].life.bury(now, is_last) {
            Some(fence) => self.bury(peer, index, &fence),
            None => Ok(()),
        }
    }

    /// This end of a link is drained: the peer hears what has come over it.
    fn send_fence(&mut self, peer: usize, index: usize) -> Result<()> {
        self.reserve_notices_again(peer)?;
        let expected = self.bulk.expected_of(peer);
        let arrived = self.srq_path.arrived_from(peer);
        let endpoint = self.endpoints.of(peer);
        let received = endpoint.receiver.consumed() + arrived;
        let size = endpoint.credits.window.size();
        let granted = endpoint.grants_after(index, received);
        let restarts = endpoint.credits.window.restarts();
        let sent = endpoint.sender.last();
        if !endpoint.has_rings() && !endpoint.receiver.has_memory() {
            let link = &endpoint.links()[index];
            let pool = self.rails[link.rail()].pool_mut(link.pool);
            pool.take_back(size, endpoint.credits.window.size());
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
            next_notice: self.bulk.next_notice(),
            expected,
        });
        self.send_word(peer, index, word)
    }

    fn send_word(&mut self, peer: usize, index: usize, word: LinkWord) -> Result<()> {
        let link = &self.endpoints.of(peer).links()[index];
        let rails = (link.rail() as u8, link.peer_rail() as u8);
        let message = HandshakeMessage::Link(LinkMessage { rails, word }).encode();
        Ok(self.node.oob_send(peer, &message)?)
    }

    /// Both ends of a link are drained: what it carried and the peer lacks goes to other links. If
    /// no link works, it stays with this one until one does.
    fn bury(&mut self, peer: usize, index: usize, fence: &Fence) -> Result<()> {
        let Rdma {
            endpoints,
            bulk,
            srq_path,
            attention,
            ..
        } = self;
        let endpoint = endpoints.of(peer);
        if fence.received > endpoint.sender.last() {
            return Err(Error::broken(peer, TOO_MANY));
        }
        if endpoint.has_rings() {
            let had_pointer = endpoint.sender.fenced(index, fence.received);
            attention.deferred -= usize::from(had_pointer);
        } else {
            let last = endpoint.sender.last();
            if !endpoint.credits.restart(last, fence) {
                return Err(Error::broken(peer, GRANTS));
            }
            let mut lost = Vec::from(std::mem::take(&mut endpoint.lost_messages));
            // Some may have been lost before, and been sent again over this link.
            lost.sort_by_key(|number| srq_path.sequence(*number));
            for number in lost {
                match srq_path.sequence(number) > fence.received {
                    true => endpoint.lost_messages.push_back(number),
                    false => srq_path.sent(number),
                }
            }
        }
        let carrier = endpoint.home().index();
        let lost = std::mem::take(&mut endpoint.links_mut()[index].lost_pieces);
        let queue = &mut endpoint.transfers;
        bulk.link_died(peer, (index, carrier), &lost, fence, queue);
        self.replay(peer)?;
        self.post_transfers(peer)
    }

    /// Writes lost packets again, as far as there is room.
    fn replay(&mut self, peer: usize) -> Result<()> {
        let Rdma {
            endpoints,
            node,
            srq_path,
            ..
        } = self;
        let endpoint = endpoints.of(peer);
        if endpoint.is_fencing() || endpoint.is_cut_off() {
            return Ok(());
        }
        endpoint.replay_packets(&mut **node)?;
        while let Some(&number) = endpoint.lost_messages.front() {
            let Some(buffers) = srq_path.buffers() else {
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
                .post(&mut **node, operation, &local, inline, true, note)?;
            endpoint.lost_messages.pop_front();
        }
        Ok(())
    }

    /// A peer has said something about a link.
    pub(super) fn hear_link(&mut self, peer: usize, message: LinkMessage) -> Result<()> {
        let (theirs, ours) = (message.rails.0.into(), message.rails.1.into());
        let Some(link) = self.endpoints.of(peer).link_between(ours, theirs) else {
            let what = format!("it names a link between its rail {theirs} and our rail {ours}");
            return Err(Error::broken(peer, what));
        };
        let index = link.index();
        match message.word {
            LinkWord::Fence(fence) => self.hear_fence(peer, index, fence),
            LinkWord::Join { epoch, address } => self.hear_join(peer, index, epoch, &address),
            LinkWord::Joined { epoch, address } => {
                let is_next = link.life.hear_joined(epoch);
                self.attempt_answered(peer);
                match is_next && self.reconnect(peer, index, &address)? {
                    true => self.send_probe(peer, index),
                    false => Ok(()),
                }
            }
            LinkWord::Alive { epoch } => {
                let now = self.node.now();
                let link = &mut self.endpoints.of(peer).links_mut()[index];
                let step = link.life.hear_alive(epoch, now);
                self.go_on_probing(peer, index, step)
            }
        }
    }

    /// The peer has given up a link.
    fn hear_fence(&mut self, peer: usize, index: usize, fence: Fence) -> Result<()> {
        let link = &mut self.endpoints.of(peer).links_mut()[index];
        if !link.life.hear(fence) {
            return Ok(());
        }
        match link.life.stage() {
            LifeStage::Live => self.give_up(peer, index, Status::RetryExceeded)?,
            LifeStage::Probing(_) => self.begin_draining(peer, index)?,
            LifeStage::Joining => {
                self.attempt_failed(peer);
                self.end_unconnected(peer, index)?;
            }
            _ => (),
        }
        self.attention.fencing = true;
        Ok(())
    }

    /// Goes on with links that are dead. To be called now and then.
    #[cold]
    pub(super) fn tend_dead(&mut self) -> Result<()> {
        let now = self.node.now();
        for event in self.node.port_events() {
            if event.change == device::PortChange::Up {
                self.hurry(event.rail, now);
            }
        }
        for at in 0..self.attention.impaired.len() {
            let peer = self.attention.impaired[at];
            for index in 0..self.endpoints.of(peer).links().len() {
                self.retry(peer, index, now)?;
            }
        }
        let endpoints = &mut self.endpoints;
        let is_impaired = |peer: &usize| {
            let endpoint = endpoints.of(*peer);
            let mut links = endpoint.links().iter();
            let is_out =
                |link: &Link| !link.life.is_live() && link.life.stage() != LifeStage::Ended;
            links.any(is_out) || endpoint.has_lost()
        };
        self.attention.impaired.retain(is_impaired);
        Ok(())
    }

    /// A port works again: its links are tried at once.
    fn hurry(&mut self, rail: usize, now: u64) {
        for at in 0..self.attention.impaired.len() {
            let peer = self.attention.impaired[at];
            let links = self.endpoints.of(peer).links_mut();
            for link in links.iter_mut().filter(|link| link.rail() == rail) {
                link.life.hurry(now);
            }
        }
    }

    /// Tries to take a link back, if it is time.
    fn retry(&mut self, peer: usize, index: usize, now: u64) -> Result<()> {
        // The end with the higher rank answers only.
        if self.rank > peer || !self.endpoints.of(peer).may_return(index) {
            return Ok(());
        }
        let link = &mut self.endpoints.of(peer).links_mut()[index];
        if link.life.retry_at().is_none_or(|at| now < at) {
            return Ok(());
        }
        link.life.join();
        let epoch = link.life.epoch();
        let address = self.renew(peer, index)?;
        self.send_word(peer, index, LinkWord::Join { epoch, address })
    }

    /// Makes the queue pairs of a dead link new. Returns their addresses.
    fn renew(&mut self, peer: usize, index: usize) -> Result<NewAddress> {
        let Rdma {
            endpoints,
            node,
            rails,
            ..
        } = self;
        let link = &mut endpoints.of(peer).links_mut()[index];
        let rail = &mut rails[link.rail()];
        link.forget();
        let gone = link.renew(&mut **node, rail.resets())?;
        for (role, gone) in [QpRole::Control, QpRole::Bulk].into_iter().zip(gone) {
            if let Some(gone) = gone {
                rail.forget(gone);
                rail.belongs(link.queue_pair_mut(role).qp(), peer, role);
            }
        }
        link.new_address(&mut **node)
    }

    /// The peer wants to take a link back.
    fn hear_join(
        &mut self,
        peer: usize,
        index: usize,
        epoch: u32,
        theirs: &NewAddress,
    ) -> Result<()> {
        // The peer's fence may have come just before this: then the old life ends now.
        self.tend_fence(peer, index)?;
        let link = &mut self.endpoints.of(peer).links_mut()[index];
        if !link.life.hear_join(epoch) {
            return Ok(());
        }
        self.attempt_answered(peer);
        let address = self.renew(peer, index)?;
        match self.reconnect(peer, index, theirs)? {
            true => self.send_word(peer, index, LinkWord::Joined { epoch, address }),
            // The peer tries again.
            false => Ok(()),
        }
    }

    /// Connects the new queue pairs of a link, and posts the receives that the peer may need.
    /// False: the device cannot connect them now, as where its port is down.
    fn reconnect(&mut self, peer: usize, index: usize, theirs: &NewAddress) -> Result<bool> {
        let rail = self.endpoints.of(peer).links()[index].rail();
        let receives = self.receives(rail);
        let endpoint = self.endpoints.of(peer);
        let receives = if endpoint.has_rings() { receives } else { 0 };
        let link = &mut endpoint.links_mut()[index];
        if link.reconnect(&mut *self.node, theirs).is_err() {
            self.end_unconnected(peer, index)?;
            return Ok(false);
        }
        for _ in 0..receives {
            link.control.post_receive(&mut *self.node)?;
        }
        link.post_shared_again(&mut *self.node)?;
        endpoint.post_unposted(&mut *self.node, &self.layout, peer, index)?;
        self.reserve_notices_on(peer, index)?;
        Ok(true)
    }

    /// Writes no bytes over a link that may work again.
    fn send_probe(&mut self, peer: usize, index: usize) -> Result<()> {
        let endpoint = self.endpoints.of(peer);
        let link = &endpoint.links()[index];
        let operation = Operation::Write {
            to: endpoint.sender.remote_memory(link),
            immediate: None,
        };
        // Without other links the whole connection waits for the probe: it is progress.
        let is_last = endpoint.is_cut_off();
        let link = &mut endpoint.links_mut()[index];
        link.set_probing(&mut *self.node, !is_last)?;
        let node: &mut dyn Node = &mut *self.node;
        link.control
            .post(node, operation, &[], false, true, Note::Probe)?;
        Ok(())
    }

    /// A probe has arrived.
    pub(super) fn probe_arrived(&mut self, peer: usize, index: usize) -> Result<()> {
        let now = self.node.now();
        let life = &mut self.endpoints.of(peer).links_mut()[index].life;
        let (step, epoch) = (life.probed(now), life.epoch());
        if let ProbeStep::PeersTurn | ProbeStep::Live = step {
            let link = &self.endpoints.of(peer).links()[index];
            link.set_probing(&mut *self.node, false)?;
            self.send_word(peer, index, LinkWord::Alive { epoch })?;
        }
        self.go_on_probing(peer, index, step)
    }

    fn go_on_probing(&mut self, peer: usize, index: usize, step: ProbeStep) -> Result<()> {
        match step {
            ProbeStep::Probe => self.send_probe(peer, index),
            ProbeStep::Live => self.revive(peer, index),
            ProbeStep::PeersTurn | ProbeStep::Stale => Ok(()),
        }
    }

    /// A link works again.
    fn revive(&mut self, peer: usize, index: usize) -> Result<()> {
        let rail = self.endpoints.of(peer).links()[index].rail();
        self.endpoints.of(peer).take_back_link(index);
        self.attention.reported[rail] = false;
        self.end_outage(peer)?;
        self.post_transfers(peer)
    }

    /// The times at which a dead link is tried again, at the earliest: one of an endpoint without a
    /// link that works, and one of any other. This end tries only those to higher ranks.
    pub(super) fn next_retries(&self) -> [Option<u64>; 2] {
        let peers = self.attention.impaired.iter();
        let endpoints = peers.filter(|peer| self.rank < **peer);
        let endpoints = endpoints.filter_map(|peer| self.endpoints.get(*peer));
        let mut next = [None; 2];
        for endpoint in endpoints {
            let links = endpoint.links().iter();
            let due = links.filter(|link| endpoint.may_return(link.index()));
            let Some(at) = due.filter_map(|link| link.life.retry_at()).min() else {
                continue;
            };
            let place = &mut next[usize::from(!endpoint.is_cut_off())];
            *place = Some(place.map_or(at, |other| at.min(other)));
        }
        next
    }
}
