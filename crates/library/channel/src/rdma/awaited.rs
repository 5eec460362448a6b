//! Peers that this rank waits for without a connection to them: nothing is sent, so no request
//! fails where no path reaches such a peer.
//!
//! No connection is made for it, because the peer may have left the job already. Signs of the
//! peer's process decide whether it is lost: a modelled machine knows of cuts; on real hosts a
//! peer's host is asked, but not before a quarter of the patience has passed without a sign, so
//! that a long wait costs no packets.

use super::attention::Attention;
use super::connect;
use super::last_path;
use super::local::Local;
use super::outage::{Loss, Outage, Patience};
use super::peer::Connections;
use super::silence;
use crate::Result;

/// A peer's host is probed once the patience divided by this number has passed without a sign.
const PART: u64 = 4;

/// The clocks that time the silence of peers for which this rank waits.
#[derive(Debug, Default)]
pub(super) struct AwaitedPeers {
    /// One clock for each peer that was ever awaited for long, and is not connected.
    clocks: Vec<(usize, Outage)>,
    /// The peers that the present wait has named, and that are cut off.
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

impl AwaitedPeers {
    /// Times the silence of `peer`, for which this rank waits. To be called repeatedly in a wait.
    #[cold]
    pub(super) fn contact(&mut self, all: &mut Connections, peer: usize) -> Result<()> {
        if all.endpoints.get(peer).is_some() {
            self.forget(peer);
            return Ok(());
        }
        let local = &mut all.local;
        let now = local.node.now();
        let loss = match (local.knows_cuts, local.node.is_virtual()) {
            (true, _) => self.judge_cut(local, peer, now),
            (false, false) => self.judge_signs(local, &mut all.attention, peer, now),
            // A modelled machine without planned cuts loses no peer.
            (false, true) => None,
        };
        let Some(loss) = loss else {
            return Ok(());
        };
        self.forget(peer);
        connect::open(all, peer)?;
        let mut peer = all.peer(peer);
        let error = last_path::error_of(&mut peer, loss);
        last_path::lose(&mut peer, error)
    }

    fn judge_cut(&mut self, local: &mut Local, peer: usize, now: u64) -> Option<Loss> {
        let signs = local.node.signs(peer);
        let Some(since) = signs.cut else {
            self.forget(peer);
            return None;
        };
        self.is_present(peer);
        let clock = self.clock(peer, now);
        clock.silent_from(since);
        clock.loss(&signs, local.config.patience, now)
    }

    fn judge_signs(
        &mut self,
        local: &mut Local,
        attention: &mut Attention,
        peer: usize,
        now: u64,
    ) -> Option<Loss> {
        let patience = local.config.patience;
        let longest = patience.silence?;
        let clock = self.clock(peer, now);
        clock.check_signs(now);
        if clock.deadline(patience)? > now.saturating_add(longest - longest / PART) {
            return None;
        }
        let signs = local.node.signs(peer);
        let loss = clock.loss(&signs, patience, now);
        if signs.tell && loss.is_none() && clock.report_is_due(false, now) {
            silence::report_silence(local, attention, peer);
        }
        loss.filter(|_| signs.tell)
    }

    /// The earliest time at which a peer of the present wait is lost. Clears the list of peers: the
    /// next wait names its own.
    pub(super) fn end_of_wait(&mut self, patience: Patience) -> Option<u64> {
        let present = std::mem::take(&mut self.present);
        let clocks = self.clocks.iter();
        let present = clocks.filter(|(peer, _)| present.contains(peer));
        let deadlines = present.filter_map(|(_, clock)| clock.deadline(patience));
        deadlines.min()
    }
}
