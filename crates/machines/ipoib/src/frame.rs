//! The packets of IP over InfiniBand. A frame has as many bytes as a real one; of the headers it
//! has the fields that the model uses.

use device::{Error, Result};

/// The encapsulation header of IPoIB (RFC 4391).
const ENCAPSULATION: usize = 4;
/// The header of IP version 4, without options.
const IP: usize = 20;
/// The header of TCP with timestamps, which Linux sends in every segment.
const TCP: usize = 20 + 12;
/// The header of UDP.
const UDP: usize = 8;
/// The numbers of the protocols in the header of IP.
const TCP_NUMBER: u8 = 6;
const UDP_NUMBER: u8 = 17;
/// The greatest payload of a UDP datagram.
pub const LONGEST_DATAGRAM: usize = 65_535 - IP - UDP;

/// The length of all headers of a TCP segment.
const SEGMENT_HEAD: usize = ENCAPSULATION + IP + TCP;
/// The length of all headers of a fragment of a UDP datagram. Each has room for the header of UDP,
/// which only the first one uses.
const FRAGMENT_HEAD: usize = ENCAPSULATION + IP + UDP;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// A segment of TCP.
    Segment {
        /// The number of its first byte.
        sequence: u64,
        /// The number of the next byte that its sender expects.
        acknowledged: u64,
        /// The bytes after this one that its sender has room for.
        window: u64,
        /// The sender of this segment has received later bytes, as selective acknowledgements
        /// report.
        gap: bool,
    },
    /// A fragment of a UDP datagram.
    Fragment {
        /// The number of the datagram.
        datagram: u64,
        /// The place of the fragment in the datagram.
        offset: usize,
        /// The length of the datagram.
        total: usize,
    },
}

/// The bytes of a frame's payload that belong to TCP, for an IP packet of at most `mtu`.
pub fn segment_payload(mtu: usize) -> usize {
    mtu - IP - TCP
}

/// The bytes of a frame's payload that belong to a UDP datagram, for an IP packet of at most `mtu`.
/// The places of fragments are multiples of 8.
pub fn fragment_payload(mtu: usize) -> usize {
    (mtu - IP - UDP) / 8 * 8
}

/// The length of a frame with an IP packet of `mtu` bytes.
pub(crate) fn longest(mtu: usize) -> usize {
    ENCAPSULATION + mtu
}

impl Head {
    /// The length of all headers.
    pub fn size(&self) -> usize {
        match self {
            Head::Segment { .. } => SEGMENT_HEAD,
            Head::Fragment { .. } => FRAGMENT_HEAD,
        }
    }

    /// The bytes of all headers.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, words) = match *self {
            Head::Segment {
                sequence,
                acknowledged,
                window,
                gap,
            } => ([TCP_NUMBER, gap.into()], [sequence, acknowledged, window]),
            Head::Fragment {
                datagram,
                offset,
                total,
            } => ([UDP_NUMBER, 0], [datagram, offset as u64, total as u64]),
        };
        let mut bytes = kind.to_vec();
        for word in words {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(self.size(), 0);
        bytes
    }

    /// Reads the header at the start of a frame; returns it with the payload.
    pub fn decode(frame: &[u8]) -> Result<(Head, &[u8])> {
        let wrong = || Error::Invalid(format!("a frame of {} bytes is not of IP", frame.len()));
        let fields = frame.first_chunk::<26>().ok_or_else(wrong)?;
        let word = |at: usize| {
            let bytes: [u8; 8] = std::array::from_fn(|byte| fields[2 + at * 8 + byte]);
            u64::from_le_bytes(bytes)
        };
        let head = match fields[0] {
            TCP_NUMBER => Head::Segment {
                sequence: word(0),
                acknowledged: word(1),
                window: word(2),
                gap: fields[1] != 0,
            },
            UDP_NUMBER => Head::Fragment {
                datagram: word(0),
                offset: word(1) as usize,
                total: word(2) as usize,
            },
            _ => return Err(wrong()),
        };
        let payload = frame.get(head.size()..).ok_or_else(wrong)?;
        Ok((head, payload))
    }
}
