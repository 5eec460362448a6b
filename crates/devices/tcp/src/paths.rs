//! The regular checks of a device: dead paths, late connection attempts, strangers; and the orderly
//! end of its connections.
//!
//! The kernel knows that a path is dead: it counts the retransmissions that nobody acknowledges. A
//! peer that computes and reads nothing is not gone: its kernel answers.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use device::{InterfaceAddress, State};

use super::device::TcpDevice;
use super::frame::Machine;
use super::pair::{CallStage, Line, Pair};
use super::wire;

/// The time from one check of slow paths, calls and strangers to the next, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;
/// The longest time for the kernels to connect, in nanoseconds.
const CONNECT_NS: u64 = 2_000_000_000;
/// The time after which a call to a queue pair that has failed is refused, in nanoseconds: its
/// owner may be about to reset it.
const FAILED_NS: u64 = 300_000_000;
/// A path is dead after this number of unacknowledged retransmissions, about 0.6 s where the round
/// trip is short, unless the peer's host answers on another connection: with many frames lost, some
/// are lost several times.
const RESENT: u32 = 2;
/// A path is dead after this number of unanswered keepalive probes, unless the peer's host answers
/// on another connection.
const UNANSWERED: u32 = 3;
/// A host counts as alive if its last sign is more recent than this, in milliseconds.
const HEARD_MS: u32 = 350;
/// A path is dead in any case after this number of unacknowledged retransmissions: about 13 s.
const HOPELESS: u32 = 6;
/// The longest round trip of a short path, in µs: it has few bytes in flight at any bandwidth.
const NEAR_US: u32 = 15;
/// The longest time for which an ended connection is kept for the peer, in nanoseconds.
const ENDING_NS: u64 = 2_000_000_000;
/// The longest wait of a closing device until the peers' kernels have everything, in nanoseconds.
const LAST_BYTES_NS: u64 = 1_000_000_000;

impl Pair {
    /// Makes the kernel keep few bytes for the connection if its path is short.
    pub(super) fn check_distance(&mut self) {
        if let Line::Open(socket) = &self.line
            && !self.is_near
            && wire::path(socket).is_ok_and(|path| path.shortest_us <= NEAR_US)
        {
            self.is_near = true;
            wire::keep_little(socket);
        }
    }
}

/// True if a rank of the job with which this device has a queue pair has this address.
fn has_peer_at(own: &InterfaceAddress, pairs: &[Option<Box<Pair>>], ip: IpAddr) -> bool {
    let mut peers = pairs.iter().flatten().filter_map(|pair| pair.peer);
    peers.any(|peer| own.reach(peer.port, 0).ip() == ip)
}

impl TcpDevice {
    /// The number of connections that processes outside the job have made: those that were dropped,
    /// and open ones without a proof. An open one from the address of a peer does not count: its
    /// proof may be in transit while this rank ends.
    pub(super) fn strangers(&self) -> u64 {
        let unproven = self.calls.unproven();
        let outside = unproven
            .filter(|from| from.is_none_or(|from| !has_peer_at(&self.own, &self.pairs, from.ip())));
        self.calls.dropped() + outside.count() as u64
    }

    /// Checks slow paths, late calls and strangers, if the last check is `LOOK_NS` ago.
    pub(super) fn check_paths(&mut self) {
        let now = self.now();
        if now < self.looked_at + LOOK_NS {
            return;
        }
        self.looked_at = now;
        if self.lacks_listener {
            self.listen();
        }
        let (own, pairs) = (&self.own, &self.pairs);
        let words = self.calls.expire(now, |ip| has_peer_at(own, pairs, ip));
        self.warn(words);
        let is_over = |since: u64| now.saturating_sub(since) > ENDING_NS;
        while self
            .ending
            .front()
            .is_some_and(|(_, since)| is_over(*since))
        {
            self.ending.pop_front();
        }
        let pairs = &self.pairs;
        let answers = |at: u32| {
            let pair = pairs.get(at as usize).and_then(|pair| pair.as_ref());
            pair.is_some_and(|pair| pair.state != State::Error && !matches!(pair.line, Line::Gone))
        };
        let refused = self
            .calls
            .unanswered(now.saturating_sub(FAILED_NS), answers);
        for socket in refused {
            let _ = wire::send_bytes(socket.as_fd(), &Machine::farewell());
            wire::end(&socket);
            self.ending.push_back((socket, now));
        }
        self.last_calls.retain(|last| !is_over(last.call.since));
        for at in 0..self.pairs.len() as u32 {
            self.check_pair(at, now);
        }
    }

    fn check_pair(&mut self, at: u32, now: u64) {
        if let Some(Some(pair)) = self.pairs.get_mut(at as usize)
            && pair.machine.is_awaiting()
        {
            pair.check_distance();
        }
        let Some(Some(pair)) = self.pairs.get(at as usize) else {
            return;
        };
        match &pair.line {
            Line::Resting { until, tries } if now >= *until => self.call(at, *tries),
            Line::Calling(call) => {
                let is_late = now.saturating_sub(call.since) > CONNECT_NS;
                match call.stage {
                    CallStage::Connecting if is_late => self.call_failed(at, "nobody answers"),
                    CallStage::Hello(..) if is_dead(&call.socket) => {
                        self.call_failed(at, "nobody answers any more");
                    }
                    _ => {}
                }
            }
            Line::Waiting { until: Some(until) } if now > *until && pair.machine.is_awaiting() => {
                self.call_failed(at, "it has not called");
            }
            Line::Open(socket) if pair.machine.is_awaiting() => {
                let path = wire::path(socket).unwrap_or_default();
                let is_bad = path.resent >= RESENT || path.unanswered >= UNANSWERED;
                if path.resent >= HOPELESS || is_bad && !self.hears_otherwise(at) {
                    self.lose(at);
                } else if path.resent > 0 {
                    self.ask_otherwise(at);
                }
            }
            _ => {}
        }
    }

    /// The other connections of this device to the host of a queue pair's peer.
    fn others(&self, at: u32) -> Vec<u32> {
        let peer_of = |pair: &Pair| pair.peer.map(|peer| peer.port);
        let Some(Some(pair)) = self.pairs.get(at as usize) else {
            return Vec::new();
        };
        let peer = peer_of(pair);
        let all = self.pairs.iter().flatten();
        let others =
            all.filter(|other| other.qp != pair.qp && other.is_ready && peer_of(other) == peer);
        others.map(|other| other.qp.0).collect()
    }

    /// True if the kernel of a peer's host has answered lately on another connection: frames are
    /// then lost by chance.
    fn hears_otherwise(&self, at: u32) -> bool {
        let others = self.others(at);
        others.into_iter().any(|other| {
            let pair = self
                .pairs
                .get(other as usize)
                .and_then(|pair| pair.as_ref());
            let line = pair.map(|pair| &pair.line);
            let Some(Line::Open(socket)) = line else {
                return false;
            };
            wire::path(socket).is_ok_and(|path| path.heard_ms < HEARD_MS)
        })
    }

    /// Sends an acknowledgement over each other connection to a peer's host, so that its kernel
    /// answers.
    fn ask_otherwise(&mut self, at: u32) {
        for other in self.others(at) {
            let Some(Some(pair)) = self.pairs.get_mut(other as usize) else {
                continue;
            };
            if pair.machine.outgoing().is_empty() {
                pair.machine.queue_acknowledgement();
                self.write(other);
            }
        }
    }

    /// True if the device must be polled soon although no event announces it.
    pub(super) fn is_due_soon(&self) -> bool {
        let pairs = self.pairs.iter().flatten();
        let mut lines = pairs.map(|pair| (&pair.line, pair.machine.is_awaiting()));
        let waits = lines.any(|(line, awaits)| match line {
            Line::Resting { .. } | Line::Calling(_) => true,
            Line::Open(_) | Line::Waiting { .. } => awaits,
            Line::Idle | Line::Gone => false,
        });
        waits || self.lacks_listener || !self.calls.all_settled()
    }

    /// Ends all connections, and waits until the peers' kernels have received what has left.
    pub(super) fn leave(&mut self) {
        for at in 0..self.pairs.len() as u32 {
            self.end_line(at);
        }
        let begin = Instant::now();
        while begin.elapsed().as_nanos() < u128::from(LAST_BYTES_NS) {
            let waits = |(socket, _): &(OwnedFd, u64)| wire::unacknowledged(socket) > 0;
            // A path that is dead would only cost time.
            if !self.ending.iter().any(|one| waits(one) && !is_dead(&one.0)) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }
}

/// True if retransmissions or keepalive probes of the kernel have had no answer several times.
fn is_dead(socket: &OwnedFd) -> bool {
    wire::path(socket).is_ok_and(|path| path.resent >= RESENT || path.unanswered >= UNANSWERED)
}
