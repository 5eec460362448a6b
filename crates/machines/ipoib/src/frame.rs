//! The packets of IP over InfiniBand. A frame has as many bytes as a real one; of the headers it
//! contains only the fields that the model uses.

use device::{Error, Result};

/// The length of IPoIB's encapsulation header, in bytes (RFC 4391).
const ENCAPSULATION: usize = 4;
/// The length of the header of IP version 4 without options, in bytes.
const IP: usize = 20;
/// The length of TCP's header with timestamps, which Linux sends in every segment, in bytes.
const TCP: usize = 20 + 12;
/// The length of UDP's header, in bytes.
const UDP: usize = 8;
/// The protocol number of TCP in the header of IP.
const TCP_NUMBER: u8 = 6;
/// The protocol number of UDP in the header of IP.
const UDP_NUMBER: u8 = 17;
/// The greatest payload of a UDP datagram, in bytes.
pub const LONGEST_DATAGRAM: usize = 65_535 - IP - UDP;

/// The length of all headers of a TCP segment, in bytes.
const SEGMENT_HEAD: usize = ENCAPSULATION + IP + TCP;
/// The length of all headers of a fragment of a UDP datagram, in bytes. Each fragment has room for
/// the header of UDP, which only the first one uses.
const FRAGMENT_HEAD: usize = ENCAPSULATION + IP + UDP;

/// The fields of a frame's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// The headers of a TCP segment.
    Segment {
        /// The sequence number of the segment's first byte.
        sequence: u64,
        /// The sequence number of the next byte that the sender of this segment expects.
        acknowledged: u64,
        /// The number of bytes from `acknowledged` on for which the sender of this segment has
        /// room.
        window: u64,
        /// True if the sender of this segment has received bytes after a gap, as selective
        /// acknowledgements report.
        gap: bool,
    },
    /// The headers of a fragment of a UDP datagram.
    Fragment {
        /// The number of the datagram.
        datagram: u64,
        /// The offset of the fragment in the datagram, in bytes.
        offset: usize,
        /// The length of the whole datagram, in bytes.
        total: usize,
    },
}

/// The number of bytes of TCP data in a frame with an IP packet of `mtu` bytes.
pub fn segment_payload(mtu: usize) -> usize {
    mtu - IP - TCP
}

/// The greatest number of bytes of a UDP datagram in a frame with an IP packet of at most `mtu`
/// bytes. Offsets of fragments are multiples of 8.
pub fn fragment_payload(mtu: usize) -> usize {
    (mtu - IP - UDP) / 8 * 8
}

/// The length of a frame with an IP packet of `mtu` bytes, in bytes.
pub(crate) fn longest(mtu: usize) -> usize {
    ENCAPSULATION + mtu
}

impl Head {
    /// The length of all headers of the frame, in bytes.
    pub fn size(&self) -> usize {
        match self {
            Head::Segment { .. } => SEGMENT_HEAD,
            Head::Fragment { .. } => FRAGMENT_HEAD,
        }
    }

    /// Encodes the headers of the frame.
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

    /// Decodes the headers at the start of a frame; returns them with the payload.
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
