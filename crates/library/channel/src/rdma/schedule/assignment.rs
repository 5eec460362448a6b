//! The parts of a transfer that links are given.

use crate::rdma::rail_set::MAX_RAILS;

/// The most predicted work that a link of a short latency holds, in nanoseconds.
pub(super) const HORIZON: u64 = 100_000;
/// The shortest piece that is worth a request of its own, in bytes.
pub(super) const SHORTEST_PIECE: u64 = 4 << 10;

/// The bytes of a transfer for each link.
pub(in crate::rdma) type Shares = [u64; MAX_RAILS];

/// The links of the next bytes of a bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rdma) enum Assignment {
    /// All bytes that are left.
    Final(Shares),
    /// The next `len` bytes.
    Piece { link: usize, len: u64 },
    /// Every useful link holds its horizon of work.
    Wait,
}
