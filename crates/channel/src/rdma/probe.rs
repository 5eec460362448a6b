//! Whether peers can still be reached. A rank that only waits posts nothing, so its device would never tell it that the way
//! to a peer is gone: from some time of waiting on it writes nothing to one peer after the other, and hears whether that
//! arrived. Nothing of the peer's is used up by it, and a peer that computes need not look. Where a device does not wait
//! for answers to writes it reads nothing instead, and waits for the answer itself.

use device::{Operation, Status};

use super::Rdma;
use crate::Result;

/// How long a rank has to have waited, and from one peer to the next, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;
const EVERY: u64 = 100_000_000;
/// How long an answer may take.
const ANSWER: u64 = 5_000_000_000;

#[derive(Default)]
pub(super) struct Probes {
    /// Since when no packet has come, as far as a waiting rank has looked.
    since: Option<u64>,
    last: u64,
    /// Whose turn it is, among those who are known.
    turn: usize,
}

impl Probes {
    /// A packet has come.
    #[inline(always)]
    pub fn rest(&mut self) {
        self.since = None;
    }
}

impl Rdma {
    /// To be called whenever the rank is about to sleep.
    pub(super) fn probe(&mut self) -> Result<()> {
        let now = self.node.now();
        let probes = &mut self.probes;
        let since = *probes.since.get_or_insert(now);
        if now < since + PATIENCE || now < probes.last + EVERY || self.known.is_empty() {
            return Ok(());
        }
        probes.last = now;
        probes.turn = (probes.turn + 1) % self.known.len();
        let to = self.known[probes.turn];
        if self
            .peer(to)
            .asked
            .is_some_and(|asked| now > asked + ANSWER)
        {
            // The answer may be here already, after a long time of computing.
            self.poll()?;
            if self.peer(to).asked.is_some() && !self.peer(to).said_bye {
                return Err(self.lost(to, Status::RetryExceeded));
            }
        }
        let Rdma { peers, node, .. } = self;
        let Some(peer) = &mut peers[to] else {
            return Ok(());
        };
        // A completion that is to come will tell; and a peer that has heard our last word may be gone.
        let answered = node.rail(peer.control.rail).attributes().answered;
        let is_quiet = match answered {
            true => !peer.control.awaits() && !peer.bulk.awaits(),
            false => peer.asked.is_none(),
        };
        match peer.remote {
            Some(remote) if peer.ready && !peer.said_bye && is_quiet && peer.control.has_room() => {
                let nothing = match answered {
                    true => Operation::Write {
                        to: remote,
                        immediate: None,
                    },
                    false => Operation::Read { from: remote },
                };
                peer.asked = (!answered).then_some(now);
                let note = peer.out.last;
                peer.control
                    .post(&mut **node, nothing, &[], false, true, note)
            }
            _ => Ok(()),
        }
    }
}
