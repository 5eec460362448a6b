//! Messages without a receive.

use crate::packet::Offer;

/// A message that no receive has matched yet.
pub struct Message {
    /// World rank of the sender.
    pub peer: usize,
    /// The message, or its announcement.
    pub body: Body,
}

/// The state of a message without a receive.
pub enum Body {
    /// The message has arrived.
    Here {
        /// The message.
        bytes: Bytes,
        /// The sender's request, if the sender waits for the match.
        sync: Option<u32>,
    },
    /// The sender keeps the message and has announced it.
    Offered(Announcement),
}

/// A message that its sender has announced.
#[derive(Clone, Copy)]
pub struct Announcement {
    /// The sender's request.
    pub(crate) request: u32,
    pub(crate) offer: Offer,
}

impl Body {
    /// Length of the message in bytes.
    pub fn bytes(&self) -> usize {
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
        /// Length in bytes.
        len: u8,
        /// The bytes.
        bytes: [u8; SHORT],
    },
    /// More bytes.
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
