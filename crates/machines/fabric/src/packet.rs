//! Sizes of InfiniBand packets (InfiniBand Architecture Specification, volume 1, chapters 7 to 9).
//! All constants are numbers of bytes.

use crate::units::Bytes;

/// The length of the local routing header.
pub const LRH: u64 = 8;
/// The length of the base transport header.
pub const BTH: u64 = 12;
/// The RDMA extended transport header: address, key, length. Part of the first packet of a write
/// and of a read request.
pub const RETH: u64 = 16;
/// The datagram extended transport header: key and source queue pair. Part of each UD packet.
pub const DETH: u64 = 8;
/// The acknowledgement extended transport header. Part of acknowledgements and of the first and
/// last packets of a read response.
pub const AETH: u64 = 4;
/// Immediate data, part of the last packet of a message.
pub const IMMEDIATE: u64 = 4;
/// The length of the invariant and the variant CRC.
pub const CHECKSUMS: u64 = 4 + 2;
/// The start and end delimiters of a packet on the line.
pub const DELIMITERS: u64 = 2;
/// The global routing header. The receiver of a UD message always writes one before the payload,
/// even where none was sent.
pub const GRH: u64 = 40;

/// The length of the headers, checksums and delimiters that every packet has.
pub const PLAIN: u64 = LRH + BTH + CHECKSUMS + DELIMITERS;
/// The length of an acknowledgement packet.
pub const ACKNOWLEDGEMENT: u64 = PLAIN + AETH;
/// The length of a packet that requests an RDMA read.
pub const READ_REQUEST: u64 = PLAIN + RETH;

/// The verbs operation that moves a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// RDMA write.
    Write,
    /// Send, which consumes a posted receive of the peer.
    Send,
    /// RDMA read.
    Read,
}

/// The transport service of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

/// The number of packets of a message, at least one. All but the last have the largest payload.
pub fn packets(payload: Bytes, mtu: Bytes) -> u64 {
    payload.0.div_ceil(mtu.0).max(1)
}

/// The size on the link of one packet with `payload`, the `first` or `last` of its message.
pub fn wire(
    payload: Bytes,
    operation: Operation,
    transport: Transport,
    first: bool,
    last: bool,
) -> u64 {
    let extended = match operation {
        Operation::Write if first => RETH,
        Operation::Read if first || last => AETH,
        _ => 0,
    };
    let datagram = if transport == Transport::Ud { DETH } else { 0 };
    // Payloads are padded to multiples of 4 bytes.
    payload.0.next_multiple_of(4) + PLAIN + extended + datagram
}
