//! The pieces into which algorithms cut long messages.

/// Bytes of a piece in a chain, or in a k-ary tree.
pub(crate) const CHAIN_PIECE: usize = 64 << 10;

/// Bytes of a piece that is copied, with its packet head, from one processor's cache to another's.
pub(crate) const CACHED_PIECE: usize = 960;

/// Bytes of a piece of a two-level broadcast: one piece crosses the network while the previous one
/// spreads within the hosts.
pub(crate) const LEVEL_PIECE: usize = 128 << 10;
