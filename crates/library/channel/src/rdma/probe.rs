//! Probes: requests that show whether peers can still be reached.
//!
//! A rank that only waits posts nothing, so its device would never report that the path to a peer
//! is gone. After some time of waiting it therefore writes zero bytes to one peer after the other,
//! and learns whether that arrived. A probe consumes nothing of the peer's, and a peer that
//! computes need not poll. Where a device completes writes before the peer's device has answered,
//! the probe is a read of zero bytes, and this rank itself limits the time for the answer.
//!
//! Some devices forget requests: if a port goes down while several are in flight, Soft-RoCE of
//! Linux 6.1 stops at one that finds no route, and neither repeats nor reports those before it. So
//! a link on which no expected completion comes for a long time is given up, if others are live.

use device::{Operation, Status};

use super::completions;
use super::endpoint::Endpoint;
use super::failover;
use super::last_path;
use super::local::Local;
use super::peer::Connections;
use super::qp_link::Note;
use crate::Result;

/// The time of waiting for a peer after which it is probed, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;
/// The time from one probe of a peer to the next, in nanoseconds.
const EVERY: u64 = 100_000_000;
/// The longest time until the answer to a probe, in nanoseconds.
const ANSWER: u64 = 5_000_000_000;

/// The schedule of the probes by which a waiting rank checks that its peers can be reached.
#[derive(Default)]
pub(super) struct Probes {
    /// The time since which no packet has arrived, as far as a waiting rank has polled.
    since: Option<u64>,
    last: u64,
    /// The position, among the known peers, of the peer that was probed last.
    turn: usize,
}

impl Probes {
    /// Records that a packet has arrived: the time of waiting until the first probe starts anew.
    #[inline(always)]
    pub(super) fn rest(&mut self) {
        self.since = None;
    }

    /// The position, among `known` peers, of the peer to be probed at time `now`. `None`: no probe
    /// is due.
    fn next(&mut self, now: u64, known: usize) -> Option<usize> {
        let since = *self.since.get_or_insert(now);
        if now < since + PATIENCE || now < self.last + EVERY || known == 0 {
            return None;
        }
        self.last = now;
        self.turn = (self.turn + 1) % known;
        Some(self.turn)
    }
}

impl Probes {
    /// Probes the next peer, if it is time. To be called whenever the rank is about to sleep.
    pub(super) fn probe(&mut self, all: &mut Connections) -> Result<()> {
        let now = all.local.node.now();
        let known = all.endpoints.known();
        let Some(turn) = self.next(now, known.len()) else {
            return Ok(());
        };
        let to = known[turn];
        if all.endpoints.of(to).is_cut_off() {
            return Ok(());
        }
        find_stalled(all, to, now)?;
        let probed = all.endpoints.of(to).home().probed;
        if probed.is_some_and(|probed| now > probed + ANSWER) {
            // After a long time of computing the answer may be here already.
            completions::poll(all)?;
            let mut peer = all.peer(to);
            let link = peer.endpoint.home();
            if link.probed.is_some() && !peer.endpoint.connection.has_said_bye() {
                let rail = link.rail();
                let error = peer.local.lost(to, rail, Status::RetryExceeded);
                return last_path::lose(&mut peer, error);
            }
        }
        send(&mut all.local, all.endpoints.of(to), now)
    }
}

/// Sends a probe, unless an expected completion shows the same.
fn send(local: &mut Local, endpoint: &mut Endpoint, now: u64) -> Result<()> {
    let answered = local.rails[endpoint.home().rail()].answered();
    let memory = endpoint.sender.remote_memory(endpoint.home());
    let note = Note::Ring(endpoint.sender.last());
    let may_write = endpoint.connection.may_write();
    let link = endpoint.home_mut();
    // An expected completion would report the loss of the path.
    let is_quiet = match answered {
        true => link.is_quiet(),
        false => link.probed.is_none(),
    };
    if !may_write || !is_quiet || !link.control.has_room() {
        return Ok(());
    }
    let operation = match answered {
        true => Operation::Write {
            to: memory,
            immediate: None,
        },
        false => Operation::Read { from: memory },
    };
    link.probed = (!answered).then_some(now);
    link.control
        .post(&mut *local.node, operation, &[], false, true, note)?;
    Ok(())
}

/// Gives up the links to a peer whose requests the device has lost, except the only live one.
fn find_stalled(all: &mut Connections, to: usize, now: u64) -> Result<()> {
    if all.endpoints.of(to).links().len() < 2 {
        return Ok(());
    }
    for index in 0..all.endpoints.of(to).links().len() {
        let link = &mut all.endpoints.of(to).links_mut()[index];
        let rail = link.rail();
        if !link.life.is_live() || !link.is_stalled(now, ANSWER) {
            continue;
        }
        // After a long time of computing the completions may be here already.
        completions::poll_rail(all, rail)?;
        let mut peer = all.peer(to);
        let is_only = peer.endpoint.live_rails().len() < 2;
        let link = &mut peer.endpoint.links_mut()[index];
        let is_stalled = link.life.is_live() && link.is_stalled(now, ANSWER);
        // A device that is polled answers when its owner polls, however late.
        let rails = &peer.local.rails;
        let answers = rails[rail].answered() && !rails[rail].polled();
        if is_stalled && !is_only && answers {
            failover::request_failed(&mut peer, rail, Status::RetryExceeded)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_probed_in_turn_and_only_after_some_patience() {
        let mut probes = Probes::default();
        assert_eq!(probes.next(10, 3), None);
        assert_eq!(probes.next(10 + PATIENCE - 1, 3), None);
        let begin = 10 + PATIENCE;
        let turns = (0..4).map(|number| probes.next(begin + number * EVERY, 3));
        assert_eq!(turns.collect::<Vec<_>>(), [1, 2, 0, 1].map(Some));
        assert_eq!(probes.next(begin + 3 * EVERY + 1, 3), None, "too soon");
        probes.rest();
        assert_eq!(probes.next(begin + 9 * EVERY, 3), None, "a packet has come");
        assert_eq!(Probes::default().next(2 * PATIENCE, 0), None);
    }
}
