//! The two flows of an endpoint: what it writes to the peer, and what it reads from it.

/// The direction in which the bytes of a transfer go. A link carries both flows at once, each at
/// its full bandwidth, so neither waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the peer: writes.
    Out,
    /// From the peer: reads.
    In,
}

impl Flow {
    pub(super) const COUNT: usize = 2;
    pub(super) const ALL: [Flow; Flow::COUNT] = [Flow::Out, Flow::In];
}
