//! Messages that arrive in order, whole and once, over datagrams that may be lost, duplicated,
//! reordered or damaged. The module touches neither a device nor a clock: datagrams come in and go
//! out, and the time is an argument.
//!
//! A message is cut into fragments, which are numbered for each pair of ranks. A receiver takes
//! only the next number, and acknowledges the number of fragments taken. A sender that has heard
//! nothing for a while retransmits from the first unacknowledged fragment, and doubles the delay
//! each time. It never gives up: the launcher detects ranks that have ended.
//!
//! Invariant: a datagram is accepted only if it repeats the receiver's secret and its
//! checksum is right.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The longest datagram, in bytes.
pub(crate) const DATAGRAM: usize = 1024;
const HEADER: usize = 32;
const BODY: usize = DATAGRAM - HEADER;
const VERSION: u8 = 1;
/// The most fragments in flight to one peer.
const WINDOW: usize = 8;
/// The first delay before a retransmission, in nanoseconds.
const PATIENCE: u64 = 20_000_000;
/// The longest such delay, in nanoseconds.
const MOST_PATIENCE: u64 = 1_000_000_000;

const HAS_FRAGMENT: u8 = 1;
const ENDS_WORD: u8 = 2;

pub(crate) struct ReliableDatagrams {
    rank: u32,
    /// The secret that datagrams for this rank must repeat.
    secret: u64,
    peers: BTreeMap<usize, Peer>,
    /// The peers with an acknowledgement or fragments to send. The others cost nothing.
    busy: BTreeSet<usize>,
    arrived: VecDeque<(usize, Vec<u8>)>,
}

#[derive(Default)]
struct Peer {
    /// The peer's secret, once it is known.
    secret: Option<u64>,
    /// Unacknowledged fragments; the first has the number `taken + 1`.
    out: VecDeque<Fragment>,
    taken: u32,
    /// The number of these that have been sent and may yet be acknowledged.
    sent: usize,
    /// The time of the retransmission, and the delay after it.
    deadline: u64,
    patience: u64,
    /// The number of fragments taken from the peer, and the beginning of a message that they form.
    received: u32,
    word: Vec<u8>,
    /// An acknowledgement is due.
    owes: bool,
}

struct Fragment {
    bytes: Vec<u8>,
    ends_word: bool,
}

impl ReliableDatagrams {
    pub(crate) fn new(rank: usize, secret: u64) -> ReliableDatagrams {
        ReliableDatagrams {
            rank: rank as u32,
            secret,
            peers: BTreeMap::new(),
            busy: BTreeSet::new(),
            arrived: VecDeque::new(),
        }
    }

    pub(crate) fn oob_send(&mut self, peer: usize, words: &[u8]) {
        if peer == self.rank as usize {
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

    /// Takes the next message: its sender and its bytes.
    pub(crate) fn oob_recv(&mut self) -> Option<(usize, Vec<u8>)> {
        self.arrived.pop_front()
    }

    pub(crate) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// The peers with something to send.
    fn busy(&self) -> impl Iterator<Item = (usize, &Peer)> {
        let busy = self.busy.iter().map(|rank| (*rank, &self.peers[rank]));
        busy.filter(|(_, peer)| peer.is_busy())
    }

    /// The ranks with waiting messages whose secret is not known.
    pub(crate) fn strangers(&self) -> impl Iterator<Item = usize> {
        let strangers = self.busy().filter(|(_, peer)| peer.secret.is_none());
        strangers.map(|(rank, _)| rank)
    }

    pub(crate) fn introduce(&mut self, peer: usize, secret: u64) {
        self.peers.entry(peer).or_default().secret = Some(secret);
    }

    /// True if every message to a known rank has been acknowledged, and every acknowledgement sent.
    pub(crate) fn is_settled(&self) -> bool {
        !self.busy().any(|(_, peer)| peer.secret.is_some())
    }

    /// The time of the next retransmission, if nothing arrives before.
    pub(crate) fn due(&self) -> Option<u64> {
        let waiting = self.busy().filter(|(_, peer)| peer.sent > 0);
        waiting.map(|(_, peer)| peer.deadline).min()
    }

    /// Takes an arrived datagram. One that is damaged or meant for another rank is dropped.
    pub(crate) fn incoming(&mut self, datagram: &[u8], ranks: usize, now: u64) {
        let Some(letter) = Datagram::open(datagram, self.secret) else {
            return;
        };
        let from = letter.from as usize;
        if from >= ranks || letter.from == self.rank {
            return;
        }
        let peer = self.peers.entry(from).or_default();
        peer.acknowledged(letter.taken, now);
        if letter.flags & HAS_FRAGMENT == 0 {
            return;
        }
        // A duplicate, or one that came early, is acknowledged too: the acknowledgement may have
        // been lost.
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

    /// The next datagram to send: its destination and its bytes. Call it until it returns None.
    pub(crate) fn outgoing(&mut self, now: u64) -> Option<(usize, Vec<u8>)> {
        let mut next = self.busy.first().copied();
        while let Some(rank) = next {
            next = self.busy.range(rank + 1..).next().copied();
            let peer = self.peers.get_mut(&rank)?;
            if !peer.is_busy() {
                self.busy.remove(&rank);
                continue;
            }
            let Some(secret) = peer.secret else { continue };
            if peer.sent > 0 && now >= peer.deadline {
                peer.sent = 0;
                peer.patience = (2 * peer.patience).min(MOST_PATIENCE);
            }
            let mut letter = Datagram {
                from: self.rank,
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
            return Some((rank, letter.seal(secret)));
        }
        None
    }
}

impl Peer {
    fn is_busy(&self) -> bool {
        self.owes || !self.out.is_empty()
    }

    /// Handles an acknowledgement of `taken` fragments.
    fn acknowledged(&mut self, taken: u32, now: u64) {
        let new = taken.wrapping_sub(self.taken) as usize;
        // An old acknowledgement, or an impossible one: of more than was ever sent.
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

/// The contents of a datagram.
struct Datagram<'a> {
    from: u32,
    number: u32,
    taken: u32,
    flags: u8,
    body: &'a [u8],
}

impl<'a> Datagram<'a> {
    fn seal(&self, secret: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.body.len());
        bytes.extend(secret.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(self.from.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.taken.to_le_bytes());
        bytes.extend((self.body.len() as u16).to_le_bytes());
        bytes.extend([self.flags, VERSION]);
        bytes.extend_from_slice(self.body);
        let sum = checksum(&bytes);
        bytes[8..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn open(bytes: &'a [u8], secret: u64) -> Option<Datagram<'a>> {
        if bytes.len() < HEADER {
            return None;
        }
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let len = usize::from(u16::from_le_bytes([bytes[28], bytes[29]]));
        let (head, body) = bytes.split_at(HEADER);
        let meant = long(0) == secret && head[31] == VERSION && len == body.len();
        if !meant || long(8) != checksum(bytes) {
            return None;
        }
        Some(Datagram {
            from: word(16),
            number: word(20),
            taken: word(24),
            flags: head[30],
            body,
        })
    }
}

/// FNV-1a of all bytes but the checksum's own.
fn checksum(bytes: &[u8]) -> u64 {
    let all = bytes[..8].iter().chain(&bytes[16..]);
    all.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
