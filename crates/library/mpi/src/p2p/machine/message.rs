//! Messages that no receive has matched yet, and the statuses that their receives will have.

use datatype::Buffer;

use crate::matching::Key;
use crate::packet::Offer;
use crate::{Class, Status};

/// A message that no receive has matched yet.
pub(crate) struct Message {
    /// World rank of the sender.
    pub peer: usize,
    /// The bytes of the message, or its announcement.
    pub body: Body,
}

/// The state of a message without a receive.
pub(crate) enum Body {
    /// The message has arrived.
    Here {
        /// The bytes of the message.
        bytes: Bytes,
        /// The number of the sender's request, if the sender waits for the match.
        sync: Option<u32>,
    },
    /// The sender keeps the message and has announced it.
    Offered(Announcement),
}

/// A message that its sender has announced.
#[derive(Clone, Copy)]
pub(crate) struct Announcement {
    /// The number of the sender's request.
    pub(crate) request: u32,
    pub(crate) offer: Offer,
}

impl Body {
    /// Number of bytes of the message that this rank keeps.
    pub(crate) fn kept(&self) -> usize {
        match self {
            Body::Here { bytes, .. } => bytes.len(),
            Body::Offered(_) => 0,
        }
    }

    /// Length of the message in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Body::Here { bytes, .. } => bytes.len(),
            Body::Offered(announcement) => announcement.offer.len as usize,
        }
    }
}

/// The bytes of an unexpected message. Short ones, the majority, need no memory of their own.
pub enum Bytes {
    /// At most [`SHORT`] bytes.
    Short {
        /// The number of bytes of the message.
        len: u8,
        /// The bytes of the message, and unused ones behind them.
        bytes: [u8; SHORT],
    },
    /// More than [`SHORT`] bytes.
    Long(Box<[u8]>),
}

/// Length of a message that needs no memory of its own, in bytes.
pub(crate) const SHORT: usize = 32;

impl From<&[u8]> for Bytes {
    #[inline]
    fn from(from: &[u8]) -> Bytes {
        if from.len() > SHORT {
            return Bytes::Long(from.into());
        }
        let mut bytes = [0; SHORT];
        bytes[..from.len()].copy_from_slice(from);
        Bytes::Short {
            len: from.len() as u8,
            bytes,
        }
    }
}

impl From<Bytes> for Box<[u8]> {
    fn from(bytes: Bytes) -> Box<[u8]> {
        match bytes {
            Bytes::Short { .. } => (*bytes).into(),
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Short { len, bytes } => &bytes[..*len as usize],
            Bytes::Long(bytes) => bytes,
        }
    }
}

/// A message that a matched probe has claimed.
pub(crate) struct Found {
    /// The envelope of the message.
    pub key: Key,
    /// The message.
    pub message: Message,
}

impl Found {
    /// The status that the receive of the message will have.
    pub(crate) fn status(&self) -> Status {
        status_of(&self.key, &self.message)
    }
}

/// The status that the receive of an unexpected message will have.
pub(super) fn status_of(sent: &Key, message: &Message) -> Status {
    Status {
        source: sent.source,
        tag: sent.tag,
        error: Class::SUCCESS,
        bytes: message.body.bytes() as u64,
        dropped: 0,
        cancelled: false,
    }
}

/// The status of the receive of a message of `len` bytes. A message longer than the buffer is an
/// error in the status.
#[inline(always)]
pub(crate) fn received(buffer: &Buffer, sent: Key, len: usize) -> Status {
    let dropped = len.saturating_sub(buffer.len());
    let mut status = Status {
        source: sent.source,
        tag: sent.tag,
        error: Class::SUCCESS,
        bytes: len as u64,
        dropped: 0,
        cancelled: false,
    };
    if dropped > 0 {
        status.error = Class::TRUNCATE;
        status.bytes = buffer.len() as u64;
        status.dropped = dropped as u64;
    }
    status
}

/// A message of the library that has been taken without a receive.
pub(crate) enum Taken {
    /// The message has arrived: the world rank of its sender, the source of its envelope, and its
    /// bytes.
    Here(usize, i32, Box<[u8]>),
    /// The message stays with its sender until it is received.
    Announced(Found),
}

impl Taken {
    /// The world rank of the sender, and the source of the envelope.
    pub(crate) fn sender(&self) -> (usize, i32) {
        match self {
            Taken::Here(peer, source, _) => (*peer, *source),
            Taken::Announced(found) => (found.message.peer, found.key.source),
        }
    }
}
