//! Packets of InfiniBand: what goes over the link for a payload (InfiniBand Architecture Specification, volume 1,
//! chapters 7 to 9).

use crate::units::Bytes;

/// Local routing header.
pub const LRH: u64 = 8;
/// Base transport header.
pub const BTH: u64 = 12;
/// RDMA extended transport header: address, key, length; in the first packet of a write and in a read's request.
pub const RETH: u64 = 16;
/// Datagram extended transport header: key and source queue pair; in each packet of UD.
pub const DETH: u64 = 8;
/// Acknowledgement extended transport header; in acknowledgements, and in first and last packets of a read's answer.
pub const AETH: u64 = 4;
/// Immediate data, in the last packet.
pub const IMMEDIATE: u64 = 4;
/// Invariant and variant checksums.
pub const CHECKSUMS: u64 = 4 + 2;
/// Start and end of a packet on the line.
pub const DELIMITERS: u64 = 2;
/// Global routing header: written before the payload of each UD receive, whether or not one was sent.
pub const GRH: u64 = 40;

/// What every packet has beside its payload.
pub const PLAIN: u64 = LRH + BTH + CHECKSUMS + DELIMITERS;
/// An acknowledgement.
pub const ACKNOWLEDGEMENT: u64 = PLAIN + AETH;
/// The request of an RDMA read.
pub const READ_REQUEST: u64 = PLAIN + RETH;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write,
    Send,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

/// Packets of a message: at least one, all but the last full.
pub fn packets(payload: Bytes, mtu: Bytes) -> u64 {
    payload.0.div_ceil(mtu.0).max(1)
}

/// Bytes on the link of one packet.
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
    // Payloads are padded to whole words.
    payload.0.next_multiple_of(4) + PLAIN + extended + datagram
}
