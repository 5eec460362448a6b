//! Fuzz targets for the private parsers of this crate; the crate `fuzzed` runs them. A target
//! accepts any bytes, and panics if a promise is broken.

use device::Address;
use fuzz_input::Script;
use secret::Secret;
use secret::codes::Codes;

use crate::card::{self, Card, Place};
use crate::datagram::{BODY, DATAGRAM, Datagram, PURPOSE, Receiver};
use crate::reliable_datagram::ReliableDatagrams;
use crate::whereabouts::Whereabouts;

/// Number of ranks of the job.
const RANKS: usize = 3;
/// The rank under test.
const OWN: Receiver = Receiver { rank: 0, nonce: 9 };
/// The longest message that the correct peer sends, in bytes.
const LONGEST: usize = 3 * BODY;

/// Fuzz target: the card of a peer.
///
/// The promises: a card that was decoded is encoded to the same bytes; each of this rank's rails
/// gets at most one address, which is on the card.
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

/// Fuzz target: datagrams that arrive at a rank. They are those of a correct peer, which may be
/// lost, repeated, reordered and damaged; those of strangers; and those of a rank of the job with
/// arbitrary contents.
///
/// The promises: messages of the correct peer arrive in order, complete and once; a stranger's
/// datagram has no effect; the rank stores no more bytes than have arrived.
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
    /// The correct peer, rank 1.
    honest: ReliableDatagrams,
    codes: Codes,
    /// Datagrams that rank 1 has sent, and that may arrive at any time.
    sent: Vec<Vec<u8>>,
    /// Messages of rank 1 that have not arrived yet.
    due: std::collections::VecDeque<Vec<u8>>,
    /// Number of bytes in the datagrams of rank 2, whose contents are arbitrary.
    lied: usize,
    /// Number of bytes in messages of rank 2 that have arrived.
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

    /// Makes rank 1 send a message.
    fn send(&mut self, script: &mut Script) {
        let mut message = script.bytes(4).to_vec();
        message.resize(script.below(LONGEST).max(message.len()), 7);
        self.honest.oob_send(0, &message);
        self.due.push_back(message);
        self.leave(script);
    }

    /// Lets some time pass, and collects the datagrams that rank 1 sends.
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

    /// Delivers a datagram of rank 1, which may be delivered again.
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

    /// Delivers a damaged copy of a datagram of rank 1.
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

    /// Delivers a datagram with arbitrary contents and a valid code, of a rank of the job or of one
    /// that does not exist.
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
        // Datagrams of ranks that are not known yet are dropped, but do not count as strangers'.
        assert_eq!(self.own.incoming(&sealed, RANKS, self.now), from != 0);
    }

    /// Sends this rank's acknowledgements, and delivers those for rank 1.
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
