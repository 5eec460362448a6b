//! The header of a frame: 24 bytes, little-endian.
//!
//! | bytes | content |
//! | ---: | --- |
//! | 0 | kind |
//! | 1 | flags: there is an immediate; an acknowledgement is asked for; it is wanted at once |
//! | 2–3 | number of the last request of the peer that was executed, modulo 2^16 |
//! | 4–7 | length of the payload behind the header; of a read: length of the answer |
//! | 8–15 | address in the receiver's memory |
//! | 16–19 | key of the receiver's region |
//! | 20–23 | immediate; of a refusal: its reason |

use device::Status;

/// The length of a header, in bytes.
pub(crate) const HEADER: usize = 24;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request: the payload goes to the receiver's memory.
    Write = 1,
    /// A request: the payload goes to the next receive.
    Send = 2,
    /// A request: the receiver answers with bytes of its memory.
    Read = 3,
    /// A request: the payload is a summand of eight bytes; the answer is the old value.
    Add = 4,
    /// A request: the payload is the expected value and the new one; the answer is the old one.
    Swap = 5,
    /// The answer to the oldest request that awaits one.
    Answer = 6,
    /// A frame with nothing but the number of the last executed request.
    Acknowledgement = 7,
    /// The request behind the last executed one is refused. The connection ends.
    Refusal = 8,
}

/// The flag of a frame with an immediate.
pub(crate) const IMMEDIATE: u8 = 1;
/// The flag of a request whose sender waits for the acknowledgement.
pub(crate) const ASKED: u8 = 2;
/// The flag of a request whose sender needs the acknowledgement at once.
pub(crate) const AT_ONCE: u8 = 4;

/// The header of a frame: everything but the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub flags: u8,
    pub executed: u16,
    pub len: u32,
    pub address: u64,
    pub key: u32,
    pub immediate: u32,
}

impl Header {
    /// A frame of this kind without payload.
    pub(crate) fn of(kind: Kind, executed: u16) -> Header {
        Header {
            kind,
            flags: 0,
            executed,
            len: 0,
            address: 0,
            key: 0,
            immediate: 0,
        }
    }

    /// The immediate, if there is one.
    pub(crate) fn immediate(&self) -> Option<u32> {
        (self.flags & IMMEDIATE != 0).then_some(self.immediate)
    }

    #[inline]
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind as u8;
        bytes[1] = self.flags;
        bytes[2..4].copy_from_slice(&self.executed.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.address.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.key.to_le_bytes());
        bytes[20..].copy_from_slice(&self.immediate.to_le_bytes());
        bytes
    }

    /// The header in these bytes. `None`: they are no header.
    #[inline]
    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Option<Header> {
        let kind = match bytes[0] {
            1 => Kind::Write,
            2 => Kind::Send,
            3 => Kind::Read,
            4 => Kind::Add,
            5 => Kind::Swap,
            6 => Kind::Answer,
            7 => Kind::Acknowledgement,
            8 => Kind::Refusal,
            _ => return None,
        };
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let header = Header {
            kind,
            flags: bytes[1],
            executed: u16::from_le_bytes([bytes[2], bytes[3]]),
            len: word(4),
            address: u64::from_le_bytes(std::array::from_fn(|i| bytes[8 + i])),
            key: word(16),
            immediate: word(20),
        };
        let len_is_right = match kind {
            Kind::Add => header.len == 8,
            Kind::Swap => header.len == 16,
            Kind::Acknowledgement | Kind::Refusal => header.len == 0,
            _ => true,
        };
        let may_have_immediate = matches!(kind, Kind::Write | Kind::Send);
        let allowed = match may_have_immediate {
            true => IMMEDIATE | ASKED | AT_ONCE,
            false => ASKED | AT_ONCE,
        };
        (len_is_right && header.flags & !allowed == 0).then_some(header)
    }
}

/// The number that encodes the reason of a refusal in a frame.
pub(crate) fn reason(status: Status) -> u32 {
    match status {
        Status::RemoteInvalidRequest => 1,
        Status::RemoteAccess => 2,
        _ => 3,
    }
}

/// The status of a request that was refused for this reason. 0: the peer's queue pair has failed,
/// so that it acknowledges nothing.
pub(crate) fn status_of(reason: u32) -> Status {
    match reason {
        0 => Status::RetryExceeded,
        1 => Status::RemoteInvalidRequest,
        2 => Status::RemoteAccess,
        _ => Status::RemoteOperation,
    }
}
