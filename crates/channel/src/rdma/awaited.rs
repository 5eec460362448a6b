//! Peers that this rank waits for without a connection to them: nothing is sent, so no request
//! fails where no path reaches such a peer.
//!
//! No connection is made for it, because the peer may have left the job already. Signs of its life
//! decide: a modelled machine knows of cuts; on real hosts a peer's host is asked, but not before a
//! quarter of the patience has passed without a sign, so that a long wait costs no packets.

use super::Rdma;
use super::outage::{Loss, Outage};
use crate::Result;

/// The part of the patience before a peer's host is asked.
const PART: u64 = 4;

/// The clocks of awaited peers.
#[derive(Debug, Default)]
pub(super) struct AwaitedPeers {
    /// One for each peer that was ever awaited for long, and is not connected.
    clocks: Vec<(usize, Outage)>,
    /// Those of the present wait.
    present: Vec<usize>,
}

impl AwaitedPeers {
    fn clock(&mut self, peer: usize, now: u64) -> &mut Outage {
        let known = self.clocks.iter().position(|(other, _)| *other == peer);
        let at = known.unwrap_or_else(|| {
            self.clocks.push((peer, Outage::begin(now)));
            self.clocks.len() - 1
        });
        &mut self.clocks[at].1
    }

    fn forget(&mut self, peer: usize) {
        self.clocks.retain(|(other, _)| *other != peer);
        self.present.retain(|other| *other != peer);
    }

    fn is_present(&mut self, peer: usize) {
        if !self.present.contains(&peer) {
            self.present.push(peer);
        }
    }
}

impl Rdma {
    /// This rank waits for `peer`. To be called again and again in a wait.
    #[cold]
    pub(crate) fn contact(&mut self, peer: usize) -> Result<()> {
        if self.endpoints.get(peer).is_some() {
            self.awaited.forget(peer);
            return Ok(());
        }
        let now = self.node.now();
        let loss = match (self.knows_cuts, self.node.is_virtual()) {
            (true, _) => self.judge_cut(peer, now),
            (false, false) => self.judge_signs(peer, now),
            // Nothing is ever the matter.
            (false, true) => None,
        };
        match loss {
            Some(loss) => self.lose_awaited(peer, loss),
            None => Ok(()),
        }
    }

    fn judge_cut(&mut self, peer: usize, now: u64) -> Option<Loss> {
        let signs = self.node.signs(peer);
        let Some(since) = signs.cut else {
            self.awaited.forget(peer);
            return None;
        };
        self.awaited.is_present(peer);
        let clock = self.awaited.clock(peer, now);
        clock.silent_from(since);
        clock.loss(&signs, self.config.patience, now)
    }

    fn judge_signs(&mut self, peer: usize, now: u64) -> Option<Loss> {
        let patience = self.config.patience;
        let longest = patience.silence?;
        let clock = self.awaited.clock(peer, now);
        clock.look(now);
        if clock.deadline(patience)? > now.saturating_add(longest - longest / PART) {
            return None;
        }
        let signs = self.node.signs(peer);
        let clock = self.awaited.clock(peer, now);
        let loss = clock.loss(&signs, patience, now);
        if signs.tell && loss.is_none() && clock.is_news(false, now) {
            self.tell_outage(peer, false);
        }
        loss.filter(|_| signs.tell)
    }

    fn lose_awaited(&mut self, peer: usize, loss: Loss) -> Result<()> {
        self.awaited.forget(peer);
        self.open(peer)?;
        let error = self.error_of(peer, loss);
        self.lose(peer, error)
    }

    /// The time at which a peer of the present wait is lost, at the earliest. The wait ends with
    /// this call: the next one names its peers anew.
    pub(super) fn end_of_awaited(&mut self) -> Option<u64> {
        let patience = self.config.patience;
        let present = std::mem::take(&mut self.awaited.present);
        let clocks = self.awaited.clocks.iter();
        let present = clocks.filter(|(peer, _)| present.contains(peer));
        let deadlines = present.filter_map(|(_, clock)| clock.deadline(patience));
        deadlines.min()
    }
}
