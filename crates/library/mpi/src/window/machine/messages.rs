//! Active messages: the bytes with which an origin requests an access from a target, and with which
//! the two synchronise.
//!
//! Operations and their synchronisation form one stream from an origin to a target, whose order the
//! target keeps. Answers and posts form another stream, which nothing delays.

use crate::{Class, Error};

/// The tag of the messages from origin to target: operations and the synchronisation that they need
/// in order.
pub(super) const OPERATIONS: i32 = 0;
/// The tag of the messages that do not wait for operations: the target's acknowledgements and
/// grants, and notifications of `MPI_Win_post`.
pub(super) const ANSWERS: i32 = 1;
/// The tag of a long type description, or of long data, sent after the message of an operation.
pub(super) const FOLLOWING: i32 = 0;
/// The tag of the data that an operation returns to its origin.
pub(super) const RETURNED: i32 = 1;

/// The most bytes of data in one operation. Longer vectors are cut; longer puts are sent as
/// separate messages.
pub(super) const PIECE: usize = 64 << 10;
/// The greatest length of a message that is kept in a memory allocation of its own, in bytes.
pub(super) const SHORT: usize = 1 << 10;
/// The longest description of a type in an operation, in bytes. A longer one is sent as a separate
/// message. A type with a description of this length needs so little memory that the library
/// allocates it like any other memory.
pub(super) const DESCRIPTION: usize = 2 << 20;
/// The greatest number of bytes of memory that a type needs for each byte of its description, while
/// it is made: 15.4 were measured, with blocks of a type that is not contiguous.
pub(super) const MADE: usize = 16;
/// The longest message of an operation, in bytes.
pub(super) const LONGEST: usize = HEAD + DESCRIPTION + 2 * PIECE;
/// The greatest number of messages of an origin that its target has not acknowledged.
pub(super) const CREDIT: u64 = 64;
/// The longest text of an error in a message, in bytes.
const TEXT: usize = 500;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$row:meta])* $kind:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name { $($(#[$row])* $kind = $code),* }

        impl $name {
            fn from_code(code: u8) -> Option<$name> {
                $(if code == $code { return Some($name::$kind); })*
                None
            }

            #[cfg(test)]
            const ALL: &[$name] = &[$($name::$kind),*];
        }
    };
}

codes! {
    /// The kind of a message from an origin to a target.
    Kind {
        /// The message contains data for the window.
        Put = 1,
        /// A put whose data are sent as a separate message behind this one.
        LongPut = 2,
        /// The message requests data of the window.
        Get = 3,
        /// The message contains operands of an accumulate.
        Accumulate = 4,
        /// The message contains operands of an accumulate that returns the old contents.
        GetAccumulate = 5,
        /// A value to compare with and a new value. The old contents are returned.
        CompareAndSwap = 6,
        /// The type of the following operations. Its description is sent as a separate message.
        Describe = 7,
        /// A request for the lock. Later messages of the origin wait for the grant.
        Lock = 16,
        /// A release of the lock, and a request for the answer `Synced`.
        Unlock = 17,
        /// The message requests the answer `Synced`.
        Flush = 18,
        /// The message ends the origin's access epoch of `MPI_Win_start`.
        Complete = 19,
    }
}

/// Flag: the operation has the type of the previous operation in the stream.
pub(super) const SAME_TYPE: u8 = 1;
/// The flag of a request for an exclusive lock.
pub(super) const EXCLUSIVE: u8 = 2;
/// Flag: the origin waits for the lock, so the target must report the grant.
pub(super) const WAITS: u8 = 4;

/// The head of a message in the stream of operations. The description of the target's type and the
/// data follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// The handle of the predefined operation of an accumulate.
    pub(super) op: u16,
    pub(super) flags: u8,
    /// Bytes of the description of the type; 0 with [`SAME_TYPE`].
    pub(super) description: u32,
    /// The position at the target: bytes from the start of the window, or an address.
    pub(super) at: i64,
    /// The number of elements of the type at the target.
    pub(super) count: u64,
    /// The position of the data in the packed form of the elements at the target, in bytes.
    pub(super) position: u64,
    /// Bytes of data, or of a description, in this message or in the one that follows or returns.
    pub(super) len: u64,
}

/// The length of an encoded head in bytes.
pub(super) const HEAD: usize = 40;

impl Head {
    /// A head of this kind whose other fields are zero.
    pub(super) fn of(kind: Kind) -> Head {
        Head {
            kind,
            op: 0,
            flags: 0,
            description: 0,
            at: 0,
            count: 0,
            position: 0,
            len: 0,
        }
    }

    pub(super) fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.kind as u8;
        bytes[1] = self.flags;
        bytes[2..4].copy_from_slice(&self.op.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.description.to_ne_bytes());
        let words = [self.at as u64, self.count, self.position, self.len];
        for (place, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Decodes a message into its head, the description of the type and the data. `None`: the bytes
    /// are not a valid message.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Head, &[u8], &[u8])> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| head[at + byte]));
        let head = Head {
            kind: Kind::from_code(head[0])?,
            flags: head[1],
            op: u16::from_ne_bytes([head[2], head[3]]),
            description: word(0).to_ne_bytes()[4..]
                .try_into()
                .map(u32::from_ne_bytes)
                .ok()?,
            at: word(8) as i64,
            count: word(16),
            position: word(24),
            len: word(32),
        };
        let (description, data) = rest.split_at_checked(head.description as usize)?;
        let carries = match head.kind {
            Kind::Put | Kind::Accumulate | Kind::GetAccumulate => true,
            // The data of a compare-and-swap are two values of equal length.
            Kind::CompareAndSwap => {
                return (data.len() % 2 == 0).then_some((head, description, data));
            }
            _ => false,
        };
        let fits = match carries {
            // If the operation does not read operands, they are not sent.
            true => data.is_empty() || data.len() as u64 == head.len,
            false => data.is_empty(),
        };
        fits.then_some((head, description, data))
    }
}

codes! {
    /// The code of an [`Answer`] in its message.
    Code {
        Post = 1,
        Processed = 2,
        Synced = 3,
        Granted = 4,
        Failed = 5,
    }
}

/// A message from a target to an origin, or a notification of `MPI_Win_post`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// The sender exposes its window to the receiver.
    Post,
    /// The number of messages of the stream of operations that the target has processed.
    Processed(u64),
    /// The target has completed all operations before a flush or an unlock. The number is that of
    /// processed messages.
    Synced(u64),
    /// The target has granted the lock.
    Granted,
    /// An operation has failed at the target for this reason.
    Failed(Error),
}

impl Answer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (code, number) = match self {
            Answer::Post => (Code::Post, 0),
            Answer::Processed(count) => (Code::Processed, *count),
            Answer::Synced(count) => (Code::Synced, *count),
            Answer::Granted => (Code::Granted, 0),
            Answer::Failed(error) => (Code::Failed, error.class.0 as u64),
        };
        let mut bytes = vec![code as u8];
        bytes.extend(number.to_ne_bytes());
        if let Answer::Failed(error) = self {
            bytes.extend(error.detail.as_bytes().iter().take(TEXT));
        }
        bytes
    }

    /// Decodes an answer. `None`: the bytes are not a valid answer.
    pub(super) fn decode(bytes: &[u8]) -> Option<Answer> {
        let (code, rest) = bytes.split_first()?;
        let (number, text) = rest.split_first_chunk()?;
        let number = u64::from_ne_bytes(*number);
        let answer = match Code::from_code(*code)? {
            Code::Post => Answer::Post,
            Code::Processed => Answer::Processed(number),
            Code::Synced => Answer::Synced(number),
            Code::Granted => Answer::Granted,
            Code::Failed => {
                let class = Class(i32::try_from(number).ok()?);
                let text = String::from_utf8_lossy(text).into_owned();
                return (text.len() <= 4 * TEXT).then(|| Answer::Failed(Error::new(class, text)));
            }
        };
        text.is_empty().then_some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_comes_back_as_it_was(
            kind in prop::sample::select(Kind::ALL),
            (op, flags, at) in any::<(u16, u8, i64)>(),
            (count, position) in any::<(u64, u64)>(),
            description in prop::collection::vec(any::<u8>(), 0..40),
            data in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let data = match kind {
                Kind::Put | Kind::Accumulate | Kind::GetAccumulate => &data[..],
                Kind::CompareAndSwap => &data[..data.len() / 2 * 2],
                _ => &[],
            };
            let head = Head {
                kind, op, flags, at, count, position,
                description: description.len() as u32,
                len: data.len() as u64,
            };
            let bytes = [&head.encode()[..], &description, data].concat();
            prop_assert_eq!(Head::decode(&bytes), Some((head, &description[..], data)));
            for len in 0..HEAD + description.len() {
                prop_assert_eq!(Head::decode(&bytes[..len]), None);
            }
        }

        #[test]
        fn no_bytes_end_the_decoders(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (Head::decode(&bytes), Answer::decode(&bytes));
        }
    }

    #[test]
    fn an_answer_comes_back_as_it_was() {
        let error = Error::new(Class::RMA_RANGE, "outside of the window");
        for answer in [
            Answer::Post,
            Answer::Processed(u64::MAX),
            Answer::Synced(7),
            Answer::Granted,
            Answer::Failed(error),
        ] {
            let bytes = answer.encode();
            assert_eq!(Answer::decode(&bytes), Some(answer));
            assert_eq!(Answer::decode(&bytes[..8]), None);
        }
        assert_eq!(Code::ALL.len(), 5);
        assert_eq!(Answer::decode(&[9; 20]), None);
    }
}
