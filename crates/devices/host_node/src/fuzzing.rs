//! Targets of the fuzzer for the parsers of this crate, which are private: crate `fuzzed` runs
//! them. A target takes any bytes, and panics where a promise is broken.

use device::Address;
use fuzz_input::Script;
use secret::Secret;
use secret::codes::Codes;

use crate::card::{self, Card, Place};
use crate::datagram::{BODY, DATAGRAM, Datagram, PURPOSE, Receiver};
use crate::reliable_datagram::ReliableDatagrams;
use crate::whereabouts::Whereabouts;

/// The ranks of the job.
const RANKS: usize = 3;
/// The rank under attack.
const OWN: Receiver = Receiver { rank: 0, nonce: 9 };
/// The longest message that an honest peer sends.
const LONGEST: usize = 3 * BODY;

/// The card of a peer.
///
/// The promises: a card that is read is written with the same bytes; each rail of ours gets at most
/// one address, which is on the card.
pub fn cards(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let own: Vec<Place> = (0..script.below(4)).map(|_| place(&mut script)).collect();
    let made: Vec<(Place, Address)> = (0..script.below(4))
        .map(|_| (place(&mut script), address(&mut script)))
        .collect();
    let made = Card {
        nonce: script.number(),
        whereabouts: whereabouts(&mut script),
        entries: made,
    };
    let from = whereabouts(&mut script);
    let mut card = card::write(&made);
    match script.below(4) {
        0 => card = script.bytes(200).to_vec(),
        1 => card.extend(script.bytes(40)),
        2 => card.truncate(script.below(256)),
        _ => {}
    }
    let Some(read) = card::read(&card) else {
        return;
    };
    assert_eq!(card::write(&read), card);
    assert!(
        read.words()
            .bytes()
            .all(|byte| (b' '..=b'~').contains(&byte))
    );
    let entries = read.entries_from(&from);
    let pairs = card::pair(&own, &entries);
    assert!(pairs.len() <= own.len().max(1));
    for (at, (rail, to)) in pairs.iter().enumerate() {
        assert!(*rail < own.len().max(1));
        assert!(pairs[..at].iter().all(|(before, _)| before != rail));
        assert!(entries.iter().any(|(_, there)| there == to));
    }
}

fn whereabouts(script: &mut Script) -> Whereabouts {
    let name = String::from_utf8_lossy(script.bytes(80)).into_owned();
    Whereabouts::named(&name, script.below(3) as u64)
}

fn place(script: &mut Script) -> Place {
    Place::from_parts(script.byte() % 6, script.number())
}

fn address(script: &mut Script) -> Address {
    Address {
        port: u128::from(script.number()) << 64 | u128::from(script.number()),
        qp: script.number() as u32,
    }
}

/// Datagrams that arrive at a rank: those of two honest peers, lost, repeated, reordered and
/// damaged on the way; those of strangers; and those that a rank of the job makes up.
///
/// The promises: messages of honest peers come in order, whole and once; a stranger's datagram
/// changes nothing; what a rank keeps is no longer than what has come.
pub fn datagrams(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut attack = Attack::new();
    while !script.is_over() {
        match script.below(8) {
            0 => attack.send(&mut script),
            1..=3 => attack.deliver(&mut script),
            4 => attack.damage(&mut script),
            5 => attack.stranger(&mut script),
            6 => attack.lie(&mut script),
            _ => attack.answer(&mut script),
        }
        attack.check();
    }
}

struct Attack {
    own: ReliableDatagrams,
    /// Rank 1.
    honest: ReliableDatagrams,
    codes: Codes,
    /// Datagrams from rank 1 that have left, and may arrive at any time.
    sent: Vec<Vec<u8>>,
    /// Messages of rank 1 that have not arrived.
    due: std::collections::VecDeque<Vec<u8>>,
    /// The bytes that rank 2, which lies, has sent, and those of its messages that have come.
    lied: usize,
    lies: usize,
    now: u64,
}

impl Attack {
    fn new() -> Attack {
        let codes = Codes::new(&Secret::from_bytes([1; Secret::LENGTH]), PURPOSE);
        let mut own = ReliableDatagrams::new(0, OWN.nonce, codes.clone());
        let mut honest = ReliableDatagrams::new(1, 5, codes.clone());
        own.introduce(1, 5);
        own.introduce(2, 6);
        honest.introduce(0, OWN.nonce);
        Attack {
            own,
            honest,
            codes,
            sent: Vec::new(),
            due: Default::default(),
            lied: 0,
            lies: 0,
            now: 0,
        }
    }

    /// Rank 1 sends a message.
    fn send(&mut self, script: &mut Script) {
        let mut message = script.bytes(4).to_vec();
        message.resize(script.below(LONGEST).max(message.len()), 7);
        self.honest.oob_send(0, &message);
        self.due.push_back(message);
        self.leave(script);
    }

    /// Datagrams of rank 1 leave, after some time.
    fn leave(&mut self, script: &mut Script) {
        self.now += script.number() % 2_000_000_000;
        while let Some((to, datagram)) = self.honest.outgoing(self.now) {
            assert!(to == 0 && datagram.len() <= DATAGRAM);
            self.sent.push(datagram);
        }
        let most = 64;
        let surplus = self.sent.len().saturating_sub(most);
        self.sent.drain(..surplus);
    }

    /// A datagram of rank 1 arrives, perhaps once more.
    fn deliver(&mut self, script: &mut Script) {
        self.leave(script);
        if self.sent.is_empty() {
            return;
        }
        let at = script.below(self.sent.len());
        let datagram = match script.below(3) {
            0 => self.sent[at].clone(),
            _ => self.sent.remove(at),
        };
        assert!(self.own.incoming(&datagram, RANKS, self.now));
    }

    /// A datagram of rank 1 is changed on its way.
    fn damage(&mut self, script: &mut Script) {
        if self.sent.is_empty() {
            return;
        }
        let at = script.below(self.sent.len());
        let mut datagram = self.sent[at].clone();
        match script.below(3) {
            0 => datagram.truncate(script.below(datagram.len())),
            1 => datagram.push(script.byte()),
            _ => {
                let bit = script.below(datagram.len() * 8);
                datagram[bit / 8] ^= 1 << (bit % 8);
            }
        }
        assert!(!self.own.incoming(&datagram, RANKS, self.now));
    }

    fn stranger(&mut self, script: &mut Script) {
        let strange = script.bytes(100);
        assert!(!self.own.incoming(strange, RANKS, self.now));
    }

    /// A rank of the job, or one that does not exist, makes up a datagram.
    fn lie(&mut self, script: &mut Script) {
        let from = script.of(&[2, 2, 2, 0, 3, u32::MAX]);
        let datagram = Datagram {
            serial: script.number(),
            from,
            number: script.number() as u32,
            taken: script.number() as u32,
            flags: script.byte(),
            body: script.bytes(40),
        };
        let sealed = datagram.seal(&self.codes, OWN);
        self.lied += datagram.body.len();
        // Datagrams of ranks that are not known yet are dropped, and are none of strangers.
        assert_eq!(self.own.incoming(&sealed, RANKS, self.now), from != 0);
    }

    /// This rank answers its peers, and rank 1 receives the answers.
    fn answer(&mut self, script: &mut Script) {
        if script.is_one_in(4) {
            self.own.oob_send(2, script.bytes(10));
        }
        while let Some((to, datagram)) = self.own.outgoing(self.now) {
            if to == 1 {
                assert!(self.honest.incoming(&datagram, RANKS, self.now));
            }
        }
    }

    fn check(&mut self) {
        while let Some((from, message)) = self.own.oob_recv() {
            match from {
                1 => assert_eq!(Some(message), self.due.pop_front()),
                _ => self.lies += message.len(),
            }
        }
        assert!(self.lies <= self.lied);
    }
}
