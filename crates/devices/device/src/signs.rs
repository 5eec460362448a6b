//! Signs that a peer is alive though no path reaches it.
//!
//! A request cannot tell a path that carries nothing from a process that computes: neither answers.
//! The host of a process that computes still answers, and this tells them apart.

/// The signs that one peer is alive. Times are those of [`Node::now`](crate::Node::now).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The time of the last sign: a datagram of the peer's process, or an answer of its host.
    pub last: Option<u64>,
    /// A living peer gives signs even while its process computes or is stopped, so a peer without
    /// a sign cannot be reached. If false, its process may only be busy.
    pub tell: bool,
    /// The time since which the peer's host says that the process is not there.
    pub refused: Option<u64>,
    /// The time since which no path to the peer carries anything. Only a node that
    /// [knows](crate::Node::knows_cuts) this without a request says it.
    pub cut: Option<u64>,
}
