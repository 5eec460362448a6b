//! The pieces into which algorithms cut long messages.

/// Bytes of a piece in a chain, or in a k-ary tree.
pub(crate) const CHAIN_PIECE: usize = 64 << 10;

/// Bytes of a piece that is copied from one processor's cache to another's, with its head.
pub(crate) const CACHED_PIECE: usize = 960;

/// Bytes of a piece of a broadcast in two levels: one piece crosses the network while the last one
/// spreads within the hosts.
pub(crate) const LEVEL_PIECE: usize = 128 << 10;
