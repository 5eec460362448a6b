//! The two directions of an endpoint's bytes: writes to the peer, and reads from it. Each has
//! schedules and queues of its own.

/// The direction in which the bytes of a transfer move. A link carries both flows at once, each at
/// its full bandwidth, so neither waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Writes, whose bytes go to the peer.
    Out,
    /// Reads, whose bytes come from the peer.
    In,
}

impl Flow {
    pub(super) const COUNT: usize = 2;
    pub(super) const ALL: [Flow; Flow::COUNT] = [Flow::Out, Flow::In];
}
