//! The user's choices for the RDMA transport. All ranks of a job must have the same.

/// A design of the ring and of long messages: one of those that "Design and Implementation of
/// MPICH2 over InfiniBand with RDMA Support" (Liu and others, IPDPS 2004) compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Two writes for each packet: the data, and the head pointer once the data has been written.
    /// The tail is written back after every packet.
    Basic,
    /// One write for each packet, whose last word is the flag. The tail goes back lazily, and in
    /// packets of the other direction.
    Piggyback,
    /// As `Piggyback`, with long bodies cut into chunks: one chunk is copied while the one before
    /// it is written.
    Pipeline,
    /// As `Pipeline` for short messages. Long messages go between the users' buffers without a
    /// copy.
    ZeroCopy,
}

impl Design {
    /// The number by which ranks compare their designs.
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// The configuration of the RDMA transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The design of the ring and of long messages.
    pub design: Design,
    /// The length of the ring from one peer. The packets to that peer are built in a block of equal
    /// length.
    pub ring_bytes: usize,
    /// The longest body of a packet in the designs that cut long bodies.
    pub chunk: usize,
    /// The receiver reports its tail when one part in `credit` of a size class has been consumed
    /// since the last report.
    pub credit: usize,
    /// The number of peers with a ring. The packets of other peers come into buffers that they
    /// share.
    pub rings: usize,
    /// Short packets are coalesced while the queue pair is busy.
    pub gather: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            design: Design::ZeroCopy,
            ring_bytes: 256 << 10,
            chunk: 16 << 10,
            credit: 4,
            rings: 64,
            gather: true,
        }
    }
}

impl Config {
    /// Short packets are coalesced.
    pub(super) fn coalesces(&self) -> bool {
        self.gather && self.design != Design::Basic
    }
}
