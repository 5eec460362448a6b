//! Signs that a peer is alive though no path reaches it.
//!
//! Requests alone cannot distinguish a dead path from a process that computes: neither answers. The
//! host of a computing process still answers, so these signs distinguish the two.

/// The signs that one peer is alive. Times are those of [`Node::now`](crate::Node::now).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The time of the last sign: a datagram of the peer's process, or an answer of its host's
    /// kernel.
    pub last: Option<u64>,
    /// True if a living peer gives signs even while its process computes or is stopped, so that a
    /// peer without signs cannot be reached. If false, its process may only be busy.
    pub tell: bool,
    /// The time since which the peer's host reports that the process does not exist.
    pub refused: Option<u64>,
    /// The time since which no path to the peer works. Only a node that
    /// [detects](crate::Node::knows_cuts) this without a request reports it.
    pub cut: Option<u64>,
}
