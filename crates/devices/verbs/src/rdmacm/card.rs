//! The private data of a connection request over iWARP (a call) and of its answer.
//!
//! A call has 56 bytes, which every transport of the connection manager can carry: the address of
//! the caller, the address that it calls, and a code over both. The answer is another code over
//! both. So each end knows that the other one belongs to the job. One half of an address is a
//! random number of its queue pair: a call that an attacker repeats names a queue pair that has a
//! caller already, or no longer exists.

use device::Address;
use secret::codes::{CODE, Codes};

const ADDRESS: usize = 16 + 4;
/// The length of the private data of a call, in bytes.
pub(super) const CALL: usize = 2 * ADDRESS + CODE;

/// The first bytes under the code of a call.
const CALLS: &[u8; 4] = b"call";
/// The first bytes under the code of an answer.
const ANSWERS: &[u8; 4] = b"took";

/// The addresses in a call's private data: the caller's, and that of the called end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) from: Address,
    pub(super) to: Address,
}

impl Card {
    /// The private data of the call.
    pub(super) fn call(&self, codes: &Codes) -> [u8; CALL] {
        let mut call = [0; CALL];
        let addresses = self.bytes();
        call[..addresses.len()].copy_from_slice(&addresses);
        call[addresses.len()..].copy_from_slice(&codes.code(&[CALLS, &addresses]));
        call
    }

    /// The card of a call, if its code proves that the caller knows the job's secret. Bytes after
    /// the call are ignored: a transport may pad private data.
    pub(super) fn read(said: &[u8], codes: &Codes) -> Option<Card> {
        let (addresses, rest) = said.split_first_chunk::<{ 2 * ADDRESS }>()?;
        let code = rest.first_chunk::<CODE>()?;
        if !codes.is_code(&[CALLS, addresses], code) {
            return None;
        }
        let (from, to) = addresses.split_at(ADDRESS);
        Some(Card {
            from: address(from)?,
            to: address(to)?,
        })
    }

    /// The private data of the answer to the call.
    pub(super) fn answer(&self, codes: &Codes) -> [u8; CODE] {
        codes.code(&[ANSWERS, &self.bytes()])
    }

    /// True if the answer to the call proves the other end's knowledge of the job's secret.
    pub(super) fn is_answered(&self, said: &[u8], codes: &Codes) -> bool {
        let code = said.first_chunk::<CODE>();
        code.is_some_and(|code| codes.is_code(&[ANSWERS, &self.bytes()], code))
    }

    fn bytes(&self) -> [u8; 2 * ADDRESS] {
        let mut bytes = [0; 2 * ADDRESS];
        for (place, address) in bytes.chunks_mut(ADDRESS).zip([self.from, self.to]) {
            place[..16].copy_from_slice(&address.port.to_be_bytes());
            place[16..].copy_from_slice(&address.qp.to_be_bytes());
        }
        bytes
    }
}

fn address(bytes: &[u8]) -> Option<Address> {
    let (port, qp) = bytes.split_first_chunk()?;
    Some(Address {
        port: u128::from_be_bytes(*port),
        qp: u32::from_be_bytes(*qp.first_chunk()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use secret::Secret;

    fn card() -> Card {
        let address = |secret: u128, qp| Address {
            port: secret << 64 | u128::from(std::net::Ipv4Addr::new(10, 77, 0, 1).to_ipv6_mapped()),
            qp,
        };
        Card {
            from: address(5, 40_001),
            to: address(u64::MAX.into(), 2),
        }
    }

    fn codes(byte: u8) -> Codes {
        Codes::new(&Secret::from_bytes([byte; Secret::LENGTH]), "test")
    }

    #[test]
    fn a_caller_says_who_it_is_and_whom_it_calls() {
        let call = card().call(&codes(1));
        const { assert!(CALL <= 56) };
        assert_eq!(Card::read(&call, &codes(1)), Some(card()));
        let filled = [&call[..], &[0; 40]].concat();
        assert_eq!(Card::read(&filled, &codes(1)), Some(card()));
    }

    #[test]
    fn a_call_without_the_secret_or_with_a_changed_bit_is_refused() {
        let call = card().call(&codes(1));
        assert_eq!(Card::read(&call, &codes(2)), None);
        assert_eq!(Card::read(&call[..CALL - 1], &codes(1)), None);
        for bit in 0..CALL * 8 {
            let mut changed = call;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Card::read(&changed, &codes(1)), None, "bit {bit}");
        }
    }

    #[test]
    fn an_answer_belongs_to_one_call_and_is_no_call() {
        let answer = card().answer(&codes(1));
        assert!(card().is_answered(&answer, &codes(1)));
        assert!(!card().is_answered(&answer, &codes(2)));
        assert!(!card().is_answered(&answer[..CODE - 1], &codes(1)));
        let Card { from, to } = card();
        let other = Card { from: to, to: from };
        assert!(!other.is_answered(&answer, &codes(1)));
        let call = card().call(&codes(1));
        assert!(!card().is_answered(&call[CALL - CODE..], &codes(1)));
    }
}
