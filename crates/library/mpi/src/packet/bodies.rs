//! The bodies of packets. A remote key stands last in its body, because its length depends on the
//! owner's rails.

use channel::RemoteKey;

use super::RunClass;
use super::codec::{Body, Reader};

/// Body of a request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Length of the message in bytes, below 2^57.
    pub(crate) len: u64,
    /// True if the sender may copy the message away before it is read: the receiver must claim it.
    pub(crate) shared: bool,
    /// True if the sender pushes its pieces of a cooperative copy through the ring.
    pub(crate) push: bool,
    /// True if packets to the receiver have reached their full speed: their memory has been used
    /// before.
    pub(crate) settled: bool,
    /// The runs of the message in the sender's memory.
    pub(crate) runs: RunClass,
    /// The remote key of the send buffer, if the receiver may read there.
    pub(crate) key: RemoteKey,
}

const PUSH: u64 = 1 << 63;
const SETTLED: u64 = 1 << 62;
const SHARED: u64 = 1 << 61;
/// The lowest bit of the class of the runs, behind the bits of the length.
const RUNS: u32 = 57;
const _: () = assert!(1 << (RUNS + RunClass::BITS) <= SHARED);

impl Body for Offer {
    fn write(&self, to: &mut Vec<u8>) {
        let push = if self.push { PUSH } else { 0 };
        let runs = self.runs.code() << RUNS;
        let settled = if self.settled { SETTLED } else { 0 };
        let shared = if self.shared { SHARED } else { 0 };
        to.extend((self.len | push | runs | settled | shared).to_ne_bytes());
        self.key.encode(to);
    }

    fn read(mut from: Reader) -> Option<Offer> {
        let word = from.u64()?;
        let len = word & ((1 << RUNS) - 1);
        Some(Offer {
            len,
            shared: word & SHARED != 0,
            push: word & PUSH != 0,
            settled: word & SETTLED != 0,
            runs: RunClass::from_code(word >> RUNS),
            key: RemoteKey::decode(from.rest(), len)?,
        })
    }
}

/// Body of a clear to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClearToSend {
    /// The number of the receiver's request for the message.
    pub(crate) receive: u32,
}

impl Body for ClearToSend {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.receive.to_ne_bytes());
    }

    fn read(mut from: Reader) -> Option<ClearToSend> {
        let receive = from.u32()?;
        from.end()?;
        Some(ClearToSend { receive })
    }
}

/// Body of a clear to write: the receive buffer. Also an entry of an announcement packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Number of bytes of the buffer that the message may fill.
    pub(crate) len: u64,
    /// The number of the notice that ends the write.
    pub(crate) notice: u32,
    /// The number of the receiver's request for the message.
    pub(crate) receive: u32,
    /// The remote key of the receiver's buffer.
    pub(crate) key: RemoteKey,
}

impl Body for Target {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.len.to_ne_bytes());
        to.extend(self.notice.to_ne_bytes());
        to.extend(self.receive.to_ne_bytes());
        self.key.encode(to);
    }

    fn read(mut from: Reader) -> Option<Target> {
        let len = from.u64()?;
        Some(Target {
            len,
            notice: from.u32()?,
            receive: from.u32()?,
            key: RemoteKey::decode(from.rest(), len)?,
        })
    }
}

/// Body of the packet that reports the start of a write to an announced buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// Length of the message in bytes.
    pub(crate) len: u64,
}

impl Body for Started {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.len.to_ne_bytes());
    }

    fn read(mut from: Reader) -> Option<Started> {
        let len = from.u64()?;
        from.end()?;
        Some(Started { len })
    }
}

/// Body of an invitation to a cooperative copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Invitation {
    /// The number of bytes that both ranks are to copy.
    pub(crate) len: u64,
    /// The number by which the piece counter knows this message.
    pub(crate) generation: u32,
    /// Length of a piece in bytes; not zero.
    pub(crate) piece: u32,
    /// The number of the receiver's request, if the sender is to push pieces through the ring.
    pub(crate) push: Option<u32>,
    /// The remote key of the receive buffer.
    pub(crate) key: RemoteKey,
}

impl Body for Invitation {
    fn write(&self, to: &mut Vec<u8>) {
        let push = self.push.map_or(0, |receive| u64::from(receive) + 1);
        to.extend(self.len.to_ne_bytes());
        to.extend(self.generation.to_ne_bytes());
        to.extend(self.piece.to_ne_bytes());
        to.extend(push.to_ne_bytes());
        self.key.encode(to);
    }

    fn read(mut from: Reader) -> Option<Invitation> {
        let len = from.u64()?;
        let invitation = Invitation {
            len,
            generation: from.u32()?,
            piece: from.u32()?,
            push: match from.u64()? {
                0 => None,
                next => Some(u32::try_from(next - 1).ok()?),
            },
            key: RemoteKey::decode(from.rest(), len)?,
        };
        (invitation.piece > 0).then_some(invitation)
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::encode;
    use super::*;
    use proptest::prelude::*;

    fn encoded_key() -> impl Strategy<Value = Vec<u8>> {
        (any::<u64>(), prop::collection::vec(any::<u32>(), 0..3)).prop_map(|(address, keys)| {
            let mut bytes = address.to_ne_bytes().to_vec();
            bytes.extend(keys.iter().flat_map(|key| key.to_ne_bytes()));
            bytes
        })
    }

    fn comes_back<B: Body + PartialEq + std::fmt::Debug>(body: &B) {
        let bytes = encode(body);
        assert_eq!(B::decode(&bytes).as_ref(), Some(body));
        for len in 0..bytes.len().min(8) {
            assert_eq!(B::decode(&bytes[..len]), None);
        }
    }

    proptest! {
        #[test]
        fn every_body_comes_back_as_it_was(
            (len, key) in (0u64..1 << 57, encoded_key()),
            (notice, receive, piece) in (any::<u32>(), any::<u32>(), 1u32..),
            (push, settled, shared) in any::<(bool, bool, bool)>(), code in 0u64..6,
        ) {
            let key = RemoteKey::decode(&key, len).unwrap();
            let target = Target { len, notice, receive, key };
            comes_back(&target);
            let runs = RunClass::from_code(code);
            comes_back(&Offer { len, shared, push, settled, runs, key });
            comes_back(&Started { len });
            let push = push.then_some(receive);
            comes_back(&Invitation { len, generation: notice, piece, push, key });
        }

        #[test]
        fn no_bytes_end_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (Offer::decode(&bytes), Target::decode(&bytes));
            let _ = (Invitation::decode(&bytes), Started::decode(&bytes), ClearToSend::decode(&bytes));
        }
    }

    /// Packets over one rail are as long as virtual time expects.
    #[test]
    fn one_rail_costs_four_bytes() {
        let mut bytes = vec![0; 8];
        bytes.extend([0; 4]);
        let key = RemoteKey::decode(&bytes, 1).unwrap();
        let offer = Offer {
            len: 1,
            shared: false,
            push: false,
            settled: false,
            runs: RunClass::ONE,
            key,
        };
        let target = Target {
            len: 1,
            notice: 2,
            receive: 3,
            key,
        };
        assert_eq!(encode(&offer).len(), 20);
        assert_eq!(
            encode(&Offer {
                key: RemoteKey::NONE,
                ..offer
            })
            .len(),
            16
        );
        assert_eq!(encode(&target).len(), 28);
        assert_eq!(
            Invitation::decode(&[0; 32]),
            None,
            "pieces without a length"
        );
    }
}
