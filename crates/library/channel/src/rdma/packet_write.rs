//! The length and form of the RDMA write that carries a short message alone, for the explanation of
//! a message's time on a modelled machine.

use super::Config;
use super::layout::{Layout, TRAILER, padded};
use super::qp_link::INLINE;
use knobs::RdmaDesign;

/// One RDMA write into a ring: a packet with its trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketWrite {
    /// The length of the ring write in bytes.
    pub len: usize,
    /// True if the channel posts the write inline where the device can.
    pub inline: bool,
}

impl PacketWrite {
    /// The longest message that goes in one packet, in bytes.
    pub fn longest() -> usize {
        Layout::of(&Config::default()).max_body()
    }

    /// The write that carries a message of at most [`longest`](PacketWrite::longest) bytes.
    pub fn of(message: usize) -> PacketWrite {
        debug_assert!(Config::default().design != RdmaDesign::Basic);
        let len = padded(message) + TRAILER;
        PacketWrite {
            len,
            inline: len <= INLINE,
        }
    }
}
