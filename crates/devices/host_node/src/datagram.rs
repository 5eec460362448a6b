//! The encoding of a datagram between two ranks, with a code that only processes of the job can
//! make.
//!
//! | bytes | contents |
//! | ---: | --- |
//! | 16 | code (MAC) of everything below, and of the receiver |
//! | 8 | serial number among the datagrams from this sender to this receiver, from 1 |
//! | 4 | rank of the sender |
//! | 4 | number of the fragment |
//! | 4 | number of fragments that the sender has received from the receiver, in order |
//! | 1 | flags |
//! | 1 | version |
//! | the rest | a fragment of a message |
//!
//! The code covers the receiver's rank and nonce, which are not sent: a datagram for another rank,
//! or for an earlier node of this rank, counts as a stranger's.
//!
//! Invariants:
//! - no byte of a datagram is interpreted before its code is verified;
//! - a datagram is accepted once (`serials`): an attacker that repeats it has no effect.

use secret::codes::{CODE, Codes};

/// The longest datagram, in bytes.
pub(crate) const DATAGRAM: usize = 1024;
const HEADER: usize = CODE + 8 + 3 * 4 + 2;
/// The longest fragment of a message, in bytes.
pub(crate) const BODY: usize = DATAGRAM - HEADER;
const VERSION: u8 = 2;

/// Flag: the datagram has a fragment.
pub(crate) const HAS_FRAGMENT: u8 = 1;
/// Flag: the fragment is the last one of its message.
pub(crate) const ENDS_WORD: u8 = 2;

/// The purpose from which the key of the codes is derived.
pub(crate) const PURPOSE: &str = "a datagram between two ranks";

/// The receiver of a datagram, as far as codes cover it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receiver {
    pub(crate) rank: u32,
    /// The random number (nonce) on the receiver's card.
    pub(crate) nonce: u64,
}

impl Receiver {
    fn bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.rank.to_le_bytes());
        bytes[4..].copy_from_slice(&self.nonce.to_le_bytes());
        bytes
    }
}

/// The fields of a datagram between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    pub(crate) serial: u64,
    pub(crate) from: u32,
    pub(crate) number: u32,
    pub(crate) taken: u32,
    pub(crate) flags: u8,
    pub(crate) body: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// The bytes of the datagram for the receiver `to`, with the code that proves their origin.
    pub(crate) fn seal(&self, codes: &Codes, to: Receiver) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.body.len());
        bytes.extend([0; CODE]);
        bytes.extend(self.serial.to_le_bytes());
        bytes.extend(self.from.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.taken.to_le_bytes());
        bytes.extend([self.flags, VERSION]);
        bytes.extend_from_slice(self.body);
        let code = codes.code(&[&to.bytes(), &bytes[CODE..]]);
        bytes[..CODE].copy_from_slice(&code);
        bytes
    }

    /// The contents of a datagram for the receiver `own`. `None`: its code is wrong, or it is
    /// malformed.
    pub(crate) fn open(bytes: &'a [u8], codes: &Codes, own: Receiver) -> Option<Datagram<'a>> {
        let (code, said) = bytes.split_first_chunk::<CODE>()?;
        if !codes.is_code(&[&own.bytes(), said], code) {
            return None;
        }
        let (serial, rest) = said.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (taken, rest) = rest.split_first_chunk()?;
        let ([flags, VERSION], body) = rest.split_first_chunk()? else {
            return None;
        };
        Some(Datagram {
            serial: u64::from_le_bytes(*serial),
            from: u32::from_le_bytes(*from),
            number: u32::from_le_bytes(*number),
            taken: u32::from_le_bytes(*taken),
            flags: *flags,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use secret::Secret;

    const TO: Receiver = Receiver { rank: 3, nonce: 9 };

    fn codes(byte: u8) -> Codes {
        Codes::new(&Secret::from_bytes([byte; Secret::LENGTH]), PURPOSE)
    }

    fn datagram(body: &[u8]) -> Datagram<'_> {
        Datagram {
            serial: 1 << 40,
            from: 2,
            number: 7,
            taken: 8,
            flags: HAS_FRAGMENT,
            body,
        }
    }

    #[test]
    fn a_datagram_says_what_was_put_in() {
        let longest = [5; BODY];
        for body in [&b""[..], b"hello", &longest] {
            let sent = datagram(body);
            let bytes = sent.seal(&codes(1), TO);
            assert!(bytes.len() <= DATAGRAM);
            assert_eq!(Datagram::open(&bytes, &codes(1), TO), Some(sent));
        }
    }

    #[test]
    fn only_its_receiver_takes_it_and_only_whole() {
        let bytes = datagram(b"hello").seal(&codes(1), TO);
        assert_eq!(Datagram::open(&bytes, &codes(2), TO), None);
        for to in [Receiver { rank: 2, ..TO }, Receiver { nonce: 8, ..TO }] {
            assert_eq!(Datagram::open(&bytes, &codes(1), to), None);
        }
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Datagram::open(&changed, &codes(1), TO), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(Datagram::open(&bytes[..len], &codes(1), TO), None);
        }
        let longer = [&bytes[..], b"x"].concat();
        assert_eq!(Datagram::open(&longer, &codes(1), TO), None);
    }

    /// A process of the job may make datagrams of another version, or short ones.
    #[test]
    fn contents_of_another_form_are_refused() {
        let sealed = |said: &[u8]| {
            let code = codes(1).code(&[&TO.bytes(), said]);
            [&code[..], said].concat()
        };
        let mut said = datagram(b"hello").seal(&codes(1), TO).split_off(CODE);
        assert!(Datagram::open(&sealed(&said), &codes(1), TO).is_some());
        assert_eq!(Datagram::open(&sealed(&said[..21]), &codes(1), TO), None);
        said[21] += 1;
        assert_eq!(Datagram::open(&sealed(&said), &codes(1), TO), None);
    }
}
