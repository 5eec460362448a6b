//! Packets: the kinds, their heads, and their bodies.
//!
//! A head has three words. The head of a message is its envelope: kind and tag; context; token and
//! source. The head of a control packet names a request: kind; argument; token. A token is the
//! number of a request, of the receiver of the packet in an answer, and of its sender where an
//! answer is expected.
//!
//! Invariant: each kind has one layout, whatever the values in it; a body that does not
//! decode is an error of the peer, and is reported as one.

mod announcements;
mod bodies;
mod codec;

pub(crate) use announcements::{AnnouncementPacket, Progress, Run, decode_runs};
pub(crate) use bodies::{ClearToSend, Invitation, Offer, Started, Target};
pub(crate) use codec::{Body, encode};

use channel::Head;
use datatype::{Buffer, Direction};

use crate::matching::Key;

/// The families of packet kinds, each with its kinds, and their codes.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident = $high:literal {
        $($(#[$kind_doc:meta])* $kind:ident = $low:literal),+ $(,)?
    })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) enum $family { $($(#[$kind_doc])* $kind),+ }
        )+

        /// The kind of a packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($(#[$doc])* $family($family)),+ }

        impl Kind {
            /// The code in the lowest byte of a head.
            pub(crate) const fn code(self) -> u8 {
                match self {
                    $($(Kind::$family($family::$kind) => $high << 4 | $low,)+)+
                }
            }

            /// The kind with this code. `None`: no packet has it.
            #[inline(always)]
            pub(crate) fn from_code(code: u8) -> Option<Kind> {
                const {
                    $($(assert!($high < 16 && $low < 16);)+)+
                }
                $($(
                    if code == $high << 4 | $low {
                        return Some(Kind::$family($family::$kind));
                    }
                )+)+
                None
            }

            /// Every kind.
            #[cfg(any(test, feature = "fuzzing"))]
            pub(crate) const ALL: &[Kind] = &[$($(Kind::$family($family::$kind)),+),+];
        }

        $(
            impl From<$family> for Kind {
                #[inline(always)]
                fn from(kind: $family) -> Kind {
                    Kind::$family(kind)
                }
            }
        )+
    };
}

families! {
    /// Messages that leave at once.
    Eager = 1 {
        /// A whole message.
        Whole = 1,
        /// A whole message whose sender waits for its match. Token: the sender's request.
        Synchronous = 2,
        /// The first piece of a message in several packets. Token: the length of the message.
        FirstPiece = 3,
        /// Another piece of that message.
        NextPiece = 4,
    }
    /// Messages that stay with their sender until a receive is matched.
    Rendezvous = 2 {
        /// Request to send (RTS): the message is announced. Token: the sender's request. Body:
        /// [`Offer`].
        RequestToSend = 1,
        /// The receiver asks for the message as packets. Token: the sender's request. Body:
        /// [`ClearToSend`].
        ClearToSend = 2,
        /// The receiver asks for a write to its buffer. Token: the sender's request. Body:
        /// [`Target`].
        ClearToWrite = 3,
        /// A piece of the message. Token: the receiver's request.
        Data = 4,
        /// The receiver has the message, or has matched it. Token: the sender's request.
        Finished = 5,
    }
    /// Messages that both ranks copy together.
    Cooperative = 3 {
        /// The receiver asks the sender to copy pieces too. Token: the sender's request. Body:
        /// [`Invitation`].
        Invite = 1,
        /// A piece of the message. Token: the receiver's request. Argument: the number of the
        /// piece.
        Pushed = 2,
    }
    /// Receives that are announced before their message.
    ReadyToReceive = 4 {
        /// Ready to receive (RTR): buffers of posted receives, the first with this key. Token and
        /// body: those of an [`AnnouncementPacket`].
        Announce = 1,
        /// The sender writes the message to an announced buffer. Token: the receiver's request.
        /// Body: [`Started`].
        Start = 2,
        /// The receiver revokes an announcement. Token: its request.
        Revoke = 3,
        /// The sender will not write to that buffer. Token: the receiver's request.
        Revoked = 4,
    }
    /// Flow control of unexpected messages.
    Flow = 5 {
        /// The receiver has no room for more unexpected bytes: announce every message.
        HeadersOnly = 1,
        /// The receiver has room again.
        BodiesAllowed = 2,
    }
    /// Cancellation of sends.
    Cancellation = 6 {
        /// The sender takes a message back. Envelope of the message; token: the sender's request.
        Cancel = 1,
        /// The message was taken back. Token: the sender's request.
        Cancelled = 2,
        /// The message had been matched. Token: the sender's request.
        TooLate = 3,
    }
    /// Losses of peers.
    Loss = 7 {
        /// The sender has left a collective operation on the communicator of the key, and takes
        /// part in none there any more. Token: the class of the error. Body: its text.
        LeftCollective = 1,
    }
}

/// Code of a whole eager message, the most frequent packet.
const WHOLE: u8 = Kind::Eager(Eager::Whole).code();
/// In a head's first word, beside the kind: the body is best copied out backward.
const BACKWARD: u64 = 1 << 8;

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) token: u32,
}

impl Envelope {
    #[inline(always)]
    pub(crate) fn encode(&self) -> Head {
        [
            u64::from(self.key.tag as u32) << 32 | u64::from(self.kind.code()),
            self.key.context,
            u64::from(self.token) << 32 | u64::from(self.key.source as u32),
        ]
    }

    /// The head of a whole message that asks for no answer: the most frequent one, which is
    /// encoded without a look at its kind.
    #[inline(always)]
    pub(crate) fn whole(key: &Key) -> Head {
        [
            u64::from(key.tag as u32) << 32 | u64::from(WHOLE),
            key.context,
            u64::from(key.source as u32),
        ]
    }

    /// The head is that of a whole message that asks for no answer.
    #[inline(always)]
    pub(crate) fn is_whole(head: Head) -> bool {
        head[0] as u8 == WHOLE
    }

    /// The key of the message.
    #[inline(always)]
    pub(crate) fn key(head: Head) -> Key {
        Key {
            context: head[1],
            source: head[2] as u32 as i32,
            tag: (head[0] >> 32) as i32,
        }
    }

    /// `None`: no packet has this head.
    #[inline(always)]
    pub(crate) fn decode(head: Head) -> Option<Envelope> {
        Some(Envelope {
            kind: Kind::from_code(head[0] as u8)?,
            key: Envelope::key(head),
            token: (head[2] >> 32) as u32,
        })
    }
}

/// The head of a packet whose body is to be copied out in this direction.
#[inline(always)]
pub(crate) fn copied_out([first, second, third]: Head, copy_out: Direction) -> Head {
    match copy_out {
        Direction::Backward => [first | BACKWARD, second, third],
        Direction::Forward => [first, second, third],
    }
}

/// The head of a control packet, which belongs to no communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) kind: Kind,
    pub(crate) token: u32,
    pub(crate) argument: u64,
}

impl Control {
    /// A control packet about a request.
    pub(crate) fn about(kind: impl Into<Kind>, token: u32) -> Control {
        Control {
            kind: kind.into(),
            token,
            argument: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn encode(&self) -> Head {
        [
            u64::from(self.kind.code()),
            self.argument,
            u64::from(self.token) << 32,
        ]
    }

    /// The argument of a control packet.
    #[inline(always)]
    pub(crate) fn argument(head: Head) -> u64 {
        head[1]
    }
}

impl From<Envelope> for Head {
    fn from(envelope: Envelope) -> Head {
        envelope.encode()
    }
}

impl From<Control> for Head {
    fn from(control: Control) -> Head {
        control.encode()
    }
}

/// The body of a packet, as it is copied to a receive.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a> {
    pub(crate) bytes: &'a [u8],
    copy_out: Direction,
}

impl<'a> Contents<'a> {
    #[inline(always)]
    pub(crate) fn of(head: Head, bytes: &'a [u8]) -> Contents<'a> {
        let copy_out = match head[0] & BACKWARD != 0 {
            true => Direction::Backward,
            false => Direction::Forward,
        };
        Contents { bytes, copy_out }
    }

    /// Bytes that have been taken out of their packets.
    pub(crate) fn kept(bytes: &'a [u8]) -> Contents<'a> {
        Contents {
            bytes,
            copy_out: Direction::Forward,
        }
    }

    /// Copies the bytes to `position` of a receive's buffer.
    #[inline(always)]
    pub(crate) fn unpack(self, buffer: &Buffer, position: usize) {
        buffer.unpack_in(self.copy_out, position, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_as_it_was() {
        for &kind in Kind::ALL {
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
                for copy_out in [Direction::Forward, Direction::Backward] {
                    assert_eq!(
                        Envelope::decode(copied_out(sent.encode(), copy_out)),
                        Some(sent)
                    );
                }
            }
            let control = Control {
                argument: u64::MAX - 9,
                ..Control::about(kind, 5)
            };
            let decoded = Envelope::decode(control.encode()).unwrap();
            assert_eq!((decoded.kind, decoded.token), (kind, 5));
            assert_eq!(Control::argument(control.encode()), u64::MAX - 9);
        }
        assert_eq!(Envelope::decode([0, 0, 0]), None);
        assert_eq!(Envelope::decode([0x7f, 0, 0]), None);
    }

    #[test]
    fn codes_are_distinct() {
        let mut codes: Vec<u8> = Kind::ALL.iter().map(|kind| kind.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Kind::ALL.len());
    }
}
