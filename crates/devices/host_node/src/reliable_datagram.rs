//! Messages that arrive in order, complete and once, over datagrams that may be lost, duplicated,
//! reordered or damaged. The module uses neither a device nor a clock: datagrams are arguments and
//! results, and the time is an argument.
//!
//! A message is cut into fragments, which are numbered for each pair of ranks. A receiver accepts
//! only the next number, and acknowledges the number of accepted fragments. A sender that has
//! received no acknowledgement for some time retransmits from the first unacknowledged fragment,
//! and doubles the delay each time. It never gives up by itself: the launcher detects ranks that
//! have ended.
//!
//! Invariant: a datagram has an effect only if a process of the job has made it for this rank, and
//! only once (`datagram`, `serials`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use secret::codes::Codes;

use super::datagram::{BODY, Datagram, ENDS_WORD, HAS_FRAGMENT, Receiver};
use super::serials::Serials;

/// The greatest number of fragments in flight to one peer.
const WINDOW: usize = 8;
/// The first delay before a retransmission, in nanoseconds.
const PATIENCE: u64 = 20_000_000;
/// The longest delay before a retransmission, in nanoseconds.
const MOST_PATIENCE: u64 = 500_000_000;

pub(crate) struct ReliableDatagrams {
    own: Receiver,
    /// The codes of datagrams between ranks of the job.
    codes: Codes,
    peers: BTreeMap<usize, Peer>,
    /// The peers with an acknowledgement or fragments to send. Only these are visited.
    busy: BTreeSet<usize>,
    arrived: VecDeque<(usize, Vec<u8>)>,
}

#[derive(Default)]
struct Peer {
    /// The nonce on the peer's card, once it is known.
    nonce: Option<u64>,
    /// The serial number of the last datagram sent to the peer.
    serial: u64,
    /// The serial numbers of the datagrams received from the peer.
    serials: Serials,
    /// The time of the last datagram received from the peer.
    heard: Option<u64>,
    /// True if the peer is given up: messages to it need not arrive.
    given_up: bool,
    /// Unacknowledged fragments for the peer; the first has the number `taken + 1`.
    out: VecDeque<Fragment>,
    /// The number of fragments that the peer has acknowledged.
    taken: u32,
    /// The number of fragments in `out` that have been sent and may yet be acknowledged.
    sent: usize,
    /// The time of the next retransmission to the peer, in nanoseconds.
    deadline: u64,
    /// The present delay before a retransmission, in nanoseconds.
    patience: u64,
    /// The number of fragments accepted from the peer.
    received: u32,
    /// The accepted fragments of an incomplete message.
    word: Vec<u8>,
    /// True if an acknowledgement is due to the peer.
    owes: bool,
}

struct Fragment {
    bytes: Vec<u8>,
    ends_word: bool,
}

impl ReliableDatagrams {
    /// The state of rank `rank`, whose card has this nonce.
    pub(crate) fn new(rank: usize, nonce: u64, codes: Codes) -> ReliableDatagrams {
        let rank = rank as u32;
        ReliableDatagrams {
            own: Receiver { rank, nonce },
            codes,
            peers: BTreeMap::new(),
            busy: BTreeSet::new(),
            arrived: VecDeque::new(),
        }
    }

    pub(crate) fn oob_send(&mut self, peer: usize, words: &[u8]) {
        if peer == self.own.rank as usize {
            self.arrived.push_back((peer, words.to_vec()));
            return;
        }
        self.busy.insert(peer);
        let peer = self.peers.entry(peer).or_default();
        let mut rest = words;
        loop {
            let (now, later) = rest.split_at(rest.len().min(BODY));
            rest = later;
            peer.out.push_back(Fragment {
                bytes: now.to_vec(),
                ends_word: rest.is_empty(),
            });
            if rest.is_empty() {
                return;
            }
        }
    }

    /// Removes and returns the next message: its sender and its bytes.
    pub(crate) fn oob_recv(&mut self) -> Option<(usize, Vec<u8>)> {
        self.arrived.pop_front()
    }

    pub(crate) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// The peers for which there is something to send.
    fn busy(&self) -> impl Iterator<Item = (usize, &Peer)> {
        let busy = self.busy.iter().map(|rank| (*rank, &self.peers[rank]));
        busy.filter(|(_, peer)| peer.is_busy())
    }

    /// The ranks with waiting messages whose card is not known yet.
    pub(crate) fn strangers(&self) -> impl Iterator<Item = usize> {
        let strangers = self.busy().filter(|(_, peer)| peer.nonce.is_none());
        strangers.map(|(rank, _)| rank)
    }

    pub(crate) fn introduce(&mut self, peer: usize, nonce: u64) {
        self.peers.entry(peer).or_default().nonce = Some(nonce);
    }

    /// The known ranks that have not acknowledged a message, or for which an acknowledgement is
    /// due, except those that are given up.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = usize> {
        let unsettled = self
            .busy()
            .filter(|(_, peer)| peer.nonce.is_some() && !peer.given_up);
        unsettled.map(|(rank, _)| rank)
    }

    /// Stops the delivery of messages to a peer: from now on they need not arrive.
    pub(crate) fn give_up(&mut self, peer: usize) {
        self.peers.entry(peer).or_default().given_up = true;
    }

    /// The time of the last datagram received from a peer.
    pub(crate) fn heard(&self, peer: usize) -> Option<u64> {
        self.peers.get(&peer)?.heard
    }

    /// A datagram without contents, as a sign of activity for a peer whose card is known.
    pub(crate) fn sign(&mut self, peer: usize) -> Option<Vec<u8>> {
        let to = self.peers.get_mut(&peer)?;
        let nonce = to.nonce?;
        to.serial += 1;
        let letter = Datagram {
            serial: to.serial,
            from: self.own.rank,
            number: 0,
            taken: to.received,
            flags: 0,
            body: &[],
        };
        let to = Receiver {
            rank: peer as u32,
            nonce,
        };
        Some(letter.seal(&self.codes, to))
    }

    /// The time of the next retransmission, if nothing arrives before.
    pub(crate) fn due(&self) -> Option<u64> {
        let waiting = self.busy().filter(|(_, peer)| peer.sent > 0);
        waiting.map(|(_, peer)| peer.deadline).min()
    }

    /// Handles an arrived datagram. False: it is a stranger's, and was dropped.
    pub(crate) fn incoming(&mut self, datagram: &[u8], ranks: usize, now: u64) -> bool {
        let Some(letter) = Datagram::open(datagram, &self.codes, self.own) else {
            return false;
        };
        let from = letter.from as usize;
        if letter.from == self.own.rank {
            return false;
        }
        // A rank that this rank does not know yet will retransmit.
        if from < ranks {
            self.take(from, &letter, now);
        }
        true
    }

    fn take(&mut self, from: usize, letter: &Datagram, now: u64) {
        let peer = self.peers.entry(from).or_default();
        // The datagram has arrived over another rail before, or an attacker repeats it.
        if !peer.serials.is_new(letter.serial) {
            return;
        }
        peer.heard = Some(now);
        peer.acknowledged(letter.taken, now);
        if letter.flags & HAS_FRAGMENT == 0 {
            return;
        }
        // A fragment that arrives again, or too early, is acknowledged, too: the acknowledgement
        // may have been lost.
        peer.owes = true;
        self.busy.insert(from);
        if letter.number != peer.received.wrapping_add(1) {
            return;
        }
        peer.received = letter.number;
        peer.word.extend_from_slice(letter.body);
        if letter.flags & ENDS_WORD != 0 {
            let word = std::mem::take(&mut peer.word);
            self.arrived.push_back((from, word));
        }
    }

    /// The next datagram to send: its destination and its bytes. Call this until it returns `None`.
    pub(crate) fn outgoing(&mut self, now: u64) -> Option<(usize, Vec<u8>)> {
        let mut next = self.busy.first().copied();
        while let Some(rank) = next {
            next = self.busy.range(rank + 1..).next().copied();
            let peer = self.peers.get_mut(&rank)?;
            if !peer.is_busy() {
                self.busy.remove(&rank);
                continue;
            }
            let Some(nonce) = peer.nonce else { continue };
            if peer.sent > 0 && now >= peer.deadline {
                peer.sent = 0;
                peer.patience = (2 * peer.patience).min(MOST_PATIENCE);
            }
            let mut letter = Datagram {
                serial: peer.serial + 1,
                from: self.own.rank,
                number: 0,
                taken: peer.received,
                flags: 0,
                body: &[],
            };
            if peer.sent < WINDOW.min(peer.out.len()) {
                let fragment = &peer.out[peer.sent];
                peer.sent += 1;
                letter.number = peer.taken.wrapping_add(peer.sent as u32);
                letter.flags = HAS_FRAGMENT;
                letter.flags |= if fragment.ends_word { ENDS_WORD } else { 0 };
                letter.body = &fragment.bytes;
                peer.patience = peer.patience.max(PATIENCE);
                peer.deadline = now + peer.patience;
            } else if !peer.owes {
                continue;
            }
            peer.owes = false;
            peer.serial = letter.serial;
            let to = Receiver {
                rank: rank as u32,
                nonce,
            };
            return Some((rank, letter.seal(&self.codes, to)));
        }
        None
    }
}

impl Peer {
    fn is_busy(&self) -> bool {
        self.owes || !self.out.is_empty()
    }

    /// Handles the peer's acknowledgement of the first `taken` fragments.
    fn acknowledged(&mut self, taken: u32, now: u64) {
        let new = taken.wrapping_sub(self.taken) as usize;
        // An old acknowledgement, or an impossible one: of more fragments than were ever sent.
        if new == 0 || new > self.out.len().min(WINDOW) {
            return;
        }
        self.out.drain(..new);
        self.taken = taken;
        self.sent = self.sent.saturating_sub(new);
        self.patience = PATIENCE;
        self.deadline = now + PATIENCE;
    }
}

#[cfg(test)]
mod tests;
