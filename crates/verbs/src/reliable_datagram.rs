//! The slow way: words that arrive in order, whole and once, over datagrams that may be lost, doubled, overtaken or
//! damaged. No device and no clock is in here: datagrams come in and go out, and the time is told.
//!
//! A word is cut into fragments, which are numbered for each pair of ranks. A receiver takes only the next number, and
//! answers with how many it has taken; a sender sends again from the first that was not taken when nothing has been
//! heard for a while, each time waiting twice as long. It never gives up: the launcher finds ranks that are gone.
//!
//! What must always hold: a datagram is believed only if it repeats the receiver's secret and is undamaged.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of a datagram, at most.
pub(crate) const DATAGRAM: usize = 1024;
const HEADER: usize = 32;
const BODY: usize = DATAGRAM - HEADER;
const VERSION: u8 = 1;
/// Fragments on their way to one peer, at most.
const WINDOW: usize = 8;
/// Nanoseconds until a fragment is sent again: the first time, and the most.
const PATIENCE: u64 = 20_000_000;
const MOST_PATIENCE: u64 = 1_000_000_000;

const HAS_FRAGMENT: u8 = 1;
const ENDS_WORD: u8 = 2;

pub(crate) struct Mail {
    rank: u32,
    /// What datagrams for this rank must repeat.
    secret: u64,
    peers: BTreeMap<usize, Peer>,
    /// Of these, whoever has something to come: an answer, or fragments. The others cost nothing.
    busy: BTreeSet<usize>,
    arrived: VecDeque<(usize, Vec<u8>)>,
}

#[derive(Default)]
struct Peer {
    /// The peer's secret, once it is known.
    secret: Option<u64>,
    /// Fragments that the peer has not taken; the first has the number `taken + 1`.
    out: VecDeque<Fragment>,
    taken: u32,
    /// So many of them have been sent, and the peer may yet answer.
    sent: usize,
    /// When to send them again, and how long to wait after that.
    deadline: u64,
    patience: u64,
    /// Fragments taken from the peer, and what they make so far of a word.
    received: u32,
    word: Vec<u8>,
    /// The peer should hear how many have been taken.
    owes: bool,
}

struct Fragment {
    bytes: Vec<u8>,
    ends_word: bool,
}

impl Mail {
    pub(crate) fn new(rank: usize, secret: u64) -> Mail {
        Mail {
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

    /// The next word that has arrived: from whom, and what.
    pub(crate) fn oob_recv(&mut self) -> Option<(usize, Vec<u8>)> {
        self.arrived.pop_front()
    }

    pub(crate) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Peers that have something to come.
    fn busy(&self) -> impl Iterator<Item = (usize, &Peer)> {
        let busy = self.busy.iter().map(|rank| (*rank, &self.peers[rank]));
        busy.filter(|(_, peer)| peer.is_busy())
    }

    /// Ranks that something is for and whose secret is not known.
    pub(crate) fn strangers(&self) -> impl Iterator<Item = usize> {
        let strangers = self.busy().filter(|(_, peer)| peer.secret.is_none());
        strangers.map(|(rank, _)| rank)
    }

    pub(crate) fn introduce(&mut self, peer: usize, secret: u64) {
        self.peers.entry(peer).or_default().secret = Some(secret);
    }

    /// All that was told to ranks that are known has been taken, and they have been told so.
    pub(crate) fn is_settled(&self) -> bool {
        !self.busy().any(|(_, peer)| peer.secret.is_some())
    }

    /// When something is to be sent again, if nothing is heard before.
    pub(crate) fn due(&self) -> Option<u64> {
        let waiting = self.busy().filter(|(_, peer)| peer.sent > 0);
        waiting.map(|(_, peer)| peer.deadline).min()
    }

    /// A datagram has come. What is not meant for this rank, or is damaged, is dropped.
    pub(crate) fn incoming(&mut self, datagram: &[u8], ranks: usize, now: u64) {
        let Some(letter) = Letter::open(datagram, self.secret) else {
            return;
        };
        let from = letter.from as usize;
        if from >= ranks || letter.from == self.rank {
            return;
        }
        let peer = self.peers.entry(from).or_default();
        peer.heard_taken(letter.taken, now);
        if letter.flags & HAS_FRAGMENT == 0 {
            return;
        }
        // What has come before, or too early, is answered all the same: the answer may have been lost.
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

    /// The next datagram to send: for whom, and its bytes. To be called until there is none.
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
            let mut letter = Letter {
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

    /// The peer has taken so many fragments.
    fn heard_taken(&mut self, taken: u32, now: u64) {
        let new = taken.wrapping_sub(self.taken) as usize;
        // Older news, or what cannot be: more than was ever sent.
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

/// What stands in a datagram.
struct Letter<'a> {
    from: u32,
    number: u32,
    taken: u32,
    flags: u8,
    body: &'a [u8],
}

impl<'a> Letter<'a> {
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

    fn open(bytes: &'a [u8], secret: u64) -> Option<Letter<'a>> {
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
        Some(Letter {
            from: word(16),
            number: word(20),
            taken: word(24),
            flags: head[30],
            body,
        })
    }
}

/// FNV-1a of all but the place of the sum.
fn checksum(bytes: &[u8]) -> u64 {
    let all = bytes[..8].iter().chain(&bytes[16..]);
    all.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
