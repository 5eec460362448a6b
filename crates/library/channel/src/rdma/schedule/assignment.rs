//! The answer of a schedule to a transfer: which links carry its next bytes, and how many each.

use crate::rdma::rail_set::MAX_RAILS;

/// The most predicted work that a link of a short latency holds, in nanoseconds.
pub(super) const HORIZON: u64 = 100_000;
/// The shortest piece that is worth a request of its own, in bytes.
pub(super) const SHORTEST_PIECE: u64 = 4 << 10;

/// For each link, the number of bytes of a transfer that it carries.
pub(in crate::rdma) type Shares = [u64; MAX_RAILS];

/// The answer of a schedule: the links that carry the next bytes of a bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rdma) enum Assignment {
    /// All bytes that are left are assigned: the share of each link.
    Final(Shares),
    /// The next `len` bytes, which go to `link`.
    Piece { link: usize, len: u64 },
    /// No bytes are assigned now: every useful link has work up to its horizon.
    Wait,
}
