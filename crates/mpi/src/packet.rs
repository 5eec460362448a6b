//! What stands in the head of a packet.
//!
//! Three words: kind, flags and tag; the context; the sender's rank in the communicator and a token. The token names a
//! request of the receiver of the packet (in answers) or of its sender (where an answer is expected).

use channel::{Head, Place};
use datatype::{Buffer, Direction};

use crate::matching::Key;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A whole message.
    Eager = 1,
    /// A whole message whose sender waits to hear that it was matched.
    EagerSync,
    /// A message that stays with its sender until a receive is there for it. Body: length, address (0: none to read),
    /// and by RDMA the key to it.
    RequestToSend,
    /// The receiver wants the message as packets. Token: the sender's request. Body: the receiver's request.
    ClearToSend,
    /// The next piece of a message. Token: the receiver's request.
    Data,
    /// The receiver has the message, or has matched it. Token: the sender's request.
    Finished,
    /// The sender would rather not have sent it. Key as sent; token: the sender's request.
    Cancel,
    /// The answer. Tag: 1 if the message was taken back.
    Cancelled,
    /// The receiver has no room for more unexpected bytes (tag 1), or has again (tag 0).
    HeadersOnly,
    /// The receiver asks the sender to help with moving a message. Token: the sender's request. Body: where to.
    Invite,
    /// The receiver wants the message written to its memory. Token: the sender's request. Body: where to.
    ClearToWrite,
    /// No packet: the device has moved a message. Token: the request.
    Moved,
    /// Where the next message with this key is wanted, before it was offered. Body: where, and what the receiver had seen.
    Ahead,
    /// The message for a receive that was told ahead is being written. Token: the receiver's request. Body: its length.
    Started,
    /// The receiver would rather have that receive back. Token: its request.
    Revoke,
    /// The answer: nothing more will be written for it. Token: the receiver's request.
    Revoked,
    /// The first piece of a message that comes in several packets with nothing between them. Token: its length.
    EagerPieces,
    /// The next piece of it.
    Piece,
    /// A piece of a message that its sender helps to move. Token: the receiver's request. Tag: which piece.
    Pushed,
}

impl Kind {
    #[inline(always)]
    fn from_bits(bits: u8) -> Option<Kind> {
        use Kind::*;
        const ALL: [Kind; 19] = [
            Eager,
            EagerSync,
            RequestToSend,
            ClearToSend,
            Data,
            Finished,
            Cancel,
            Cancelled,
            HeadersOnly,
            Invite,
            ClearToWrite,
            Moved,
            Ahead,
            Started,
            Revoke,
            Revoked,
            EagerPieces,
            Piece,
            Pushed,
        ];
        ALL.get(usize::from(bits).wrapping_sub(1)).copied()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub kind: Kind,
    pub key: Key,
    pub token: u32,
}

impl Envelope {
    /// A packet about a request, with no message of its own.
    pub fn about(kind: Kind, token: u32) -> Envelope {
        Envelope {
            kind,
            key: Key {
                context: 0,
                source: 0,
                tag: 0,
            },
            token,
        }
    }

    #[inline(always)]
    pub fn encode(&self) -> Head {
        [
            u64::from(self.key.tag as u32) << 32 | self.kind as u64,
            self.key.context,
            u64::from(self.token) << 32 | u64::from(self.key.source as u32),
        ]
    }

    /// The same, of a message, or a piece of a short one, whose body is in a cache that both share.
    #[inline(always)]
    pub fn encode_near(&self) -> Head {
        let [first, second, third] = self.encode();
        [first | IN_A_SHARED_CACHE, second, third]
    }

    /// Is it the head of a whole message that asks for no answer?
    #[inline(always)]
    pub fn is_eager(head: Head) -> bool {
        head[0] as u8 == Kind::Eager as u8
    }

    /// What the message is matched by.
    #[inline(always)]
    pub fn key(head: Head) -> Key {
        Key {
            context: head[1],
            source: head[2] as u32 as i32,
            tag: (head[0] >> 32) as i32,
        }
    }

    /// `None`: no packet of ours looks like this.
    #[inline(always)]
    pub fn decode(head: Head) -> Option<Envelope> {
        Some(Envelope {
            kind: Kind::from_bits(head[0] as u8)?,
            key: Envelope::key(head),
            token: (head[2] >> 32) as u32,
        })
    }
}

/// In a head's first word, beside the kind.
const IN_A_SHARED_CACHE: u64 = 1 << 8;

/// The body of a packet, as it goes to a receive.
#[derive(Clone, Copy)]
pub struct Contents<'a> {
    pub bytes: &'a [u8],
    near: bool,
}

impl<'a> Contents<'a> {
    #[inline(always)]
    pub fn of(head: Head, bytes: &'a [u8]) -> Contents<'a> {
        let near = head[0] & IN_A_SHARED_CACHE != 0;
        Contents { bytes, near }
    }

    /// Bytes that have been taken out of their packets.
    pub fn kept(bytes: &'a [u8]) -> Contents<'a> {
        Contents { bytes, near: false }
    }

    /// Copies them to where they belong. What another core has just written to a cache that both share is read backward: whoever
    /// reads forward fetches lines beyond the end too, which the other is about to write. Of long messages, which come as
    /// streams, those are the next piece, and most often written already: they are read forward.
    #[inline(always)]
    pub fn unpack(self, buffer: &Buffer, position: usize) {
        let direction = match self.near {
            true => Direction::Backward,
            false => Direction::Forward,
        };
        buffer.unpack_in(direction, position, self.bytes);
    }
}

/// Body of a [`Kind::RequestToSend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub len: u64,
    /// Where the bytes lie in the sender's memory in one piece; 0: they do not.
    pub address: u64,
    /// The sender will move them through shared memory, if it helps: the cores are near.
    pub near: bool,
    /// What opens them to a peer's device.
    pub key: Option<u32>,
}

/// Stands beside the length of what is offered.
const NEAR: u64 = 1 << 63;

impl Offer {
    pub const BYTES: usize = 16;

    /// To let the peer fetch what is in this buffer.
    pub fn of(buffer: &Buffer) -> Offer {
        let address = buffer.as_dense().map_or(0, |(address, _)| address as u64);
        Offer {
            len: buffer.len() as u64,
            address,
            near: false,
            key: None,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES + 4);
        let near = if self.near { NEAR } else { 0 };
        bytes.extend((self.len | near).to_ne_bytes());
        bytes.extend(self.address.to_ne_bytes());
        bytes.extend(self.key.iter().flat_map(|key| key.to_ne_bytes()));
        bytes
    }

    pub fn decode(body: &[u8]) -> Option<Offer> {
        let (bytes, key) = body.split_at_checked(Self::BYTES)?;
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let key = match key {
            [] => None,
            key => Some(u32::from_ne_bytes(key.try_into().ok()?)),
        };
        Some(Offer {
            len: word(0) & !NEAR,
            address: word(8),
            near: word(0) & NEAR != 0,
            key,
        })
    }
}

/// Body of a [`Kind::ClearToWrite`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub place: Place,
    pub len: u64,
    /// The number by which the receiver's device is told.
    pub notice: u32,
    /// The receiver's request.
    pub receive: u32,
}

impl Target {
    pub const BYTES: usize = 28;

    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.place.address.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.place.key.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.notice.to_ne_bytes());
        bytes[24..].copy_from_slice(&self.receive.to_ne_bytes());
        bytes
    }

    pub fn decode(body: &[u8]) -> Option<Target> {
        let bytes: &[u8; Self::BYTES] = body.try_into().ok()?;
        let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let short = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        Some(Target {
            place: Place {
                address: long(0),
                key: short(16),
            },
            len: long(8),
            notice: short(20),
            receive: short(24),
        })
    }
}

/// Body of a [`Kind::Ahead`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    pub target: Target,
    /// Packets of the sender's that the receiver had taken.
    pub seen: u64,
}

impl Ahead {
    pub const BYTES: usize = Target::BYTES + 8;

    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..Target::BYTES].copy_from_slice(&self.target.encode());
        bytes[Target::BYTES..].copy_from_slice(&self.seen.to_ne_bytes());
        bytes
    }

    pub fn decode(body: &[u8]) -> Option<Ahead> {
        let (target, seen) = body.split_at_checked(Target::BYTES)?;
        Some(Ahead {
            target: Target::decode(target)?,
            seen: u64::from_ne_bytes(seen.try_into().ok()?),
        })
    }
}

/// Body of a [`Kind::Invite`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The receive buffer.
    pub address: u64,
    pub len: u64,
    pub generation: u32,
    /// Bytes of a piece.
    pub piece: u32,
    /// The receiver's request, if pieces should come through the ring.
    pub push: Option<u32>,
}

impl Invitation {
    pub const BYTES: usize = 32;

    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let push = self.push.map_or(0, |receive| u64::from(receive) + 1);
        bytes[..8].copy_from_slice(&self.address.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.generation.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.piece.to_ne_bytes());
        bytes[24..].copy_from_slice(&push.to_ne_bytes());
        bytes
    }

    /// `None`: no invitation, or one with pieces of no length.
    pub fn decode(body: &[u8]) -> Option<Invitation> {
        let bytes: &[u8; Self::BYTES] = body.try_into().ok()?;
        let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let short = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let invitation = Invitation {
            address: long(0),
            len: long(8),
            generation: short(16),
            piece: short(20),
            push: match long(24) {
                0 => None,
                next => Some(u32::try_from(next - 1).ok()?),
            },
        };
        (invitation.piece > 0).then_some(invitation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_as_it_was() {
        for kind in (1..=19).filter_map(Kind::from_bits) {
            for (tag, source) in [(0, 0), (i32::MAX, 17), (7, i32::MAX)] {
                let sent = Envelope {
                    kind,
                    key: Key {
                        context: u64::MAX - 3,
                        source,
                        tag,
                    },
                    token: 0x7fff_ffff,
                };
                assert_eq!(Envelope::decode(sent.encode()), Some(sent));
            }
        }
        assert_eq!(Envelope::decode([0, 0, 0]), None);
        assert_eq!(Envelope::decode([20, 0, 0]), None);
    }

    #[test]
    fn an_invitation_comes_back_as_it_was() {
        let invitation = Invitation {
            address: 1 << 46,
            len: 1 << 33,
            generation: u32::MAX,
            piece: 4096,
            push: Some(0),
        };
        assert_eq!(Invitation::decode(&invitation.encode()), Some(invitation));
        assert_eq!(Invitation::decode(&[0; Invitation::BYTES]), None);
    }

    #[test]
    fn an_offer_comes_back_as_it_was() {
        for key in [None, Some(u32::MAX - 1)] {
            let offer = Offer {
                len: 1 << 40,
                near: key.is_none(),
                address: 0xdead_beef,
                key,
            };
            assert_eq!(Offer::decode(&offer.encode()), Some(offer));
        }
        assert_eq!(Offer::decode(&[0; 15]), None);
        assert_eq!(Offer::decode(&[0; 17]), None);
    }

    #[test]
    fn what_is_told_ahead_comes_back_as_it_was() {
        let ahead = Ahead {
            target: Target {
                place: Place {
                    address: 1 << 40,
                    key: 9,
                },
                len: 3 << 20,
                notice: 4,
                receive: u32::MAX,
            },
            seen: u64::MAX - 1,
        };
        assert_eq!(Ahead::decode(&ahead.encode()), Some(ahead));
        assert_eq!(Ahead::decode(&[0; Ahead::BYTES - 1]), None);
    }

    #[test]
    fn a_target_comes_back_as_it_was() {
        let target = Target {
            place: Place {
                address: 1 << 46,
                key: 7,
            },
            len: 1 << 33,
            notice: u32::MAX,
            receive: 3,
        };
        assert_eq!(Target::decode(&target.encode()), Some(target));
        assert_eq!(Target::decode(&[0; Target::BYTES - 1]), None);
    }
}
