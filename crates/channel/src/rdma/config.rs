//! What a user can choose of the channel. Both ends of a connection must have chosen alike.

/// How packets and long messages go: the designs that "Design and Implementation of MPICH2 over InfiniBand with RDMA
/// Support" (Liu and others, IPDPS 2004) compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Data, and once that has been written the head pointer, in two writes; the tail is written back after every
    /// packet.
    Basic,
    /// One write whose last word is the flag; the tail goes back lazily, and on what goes the other way anyhow.
    Piggyback,
    /// The same with long bodies cut into chunks, so that one is copied while the one before it is written.
    Pipeline,
    /// The same for short messages; long ones are moved between the users' buffers.
    ZeroCopy,
}

impl Design {
    pub fn number(self) -> u8 {
        self as u8
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub design: Design,
    /// Memory of the ring from one peer. The packets to it are built in as much again.
    pub ring_bytes: usize,
    /// The longest body of a packet, where long bodies are cut.
    pub chunk: usize,
    /// Free space is told when one part in so many of a lane has been consumed.
    pub credit: usize,
    /// Peers that get a ring of their own; the packets of others come into buffers that they share.
    pub rings: usize,
    /// Are short packets gathered while the way is busy?
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
    pub(super) fn gathers(&self) -> bool {
        self.gather && self.design != Design::Basic
    }
}
