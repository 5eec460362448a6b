//! The lengths and forms of the RDMA writes that carry a short message alone, for the explanation
//! of a message's time on a modelled machine.

use super::Config;
use super::layout::{Layout, TRAILER, WORD, padded};
use super::qp_link::INLINE;
use knobs::RdmaDesign;

/// One RDMA write into a peer's memory: a packet with its trailer, or a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketWrite {
    /// The length of the write in bytes.
    pub len: usize,
    /// True if the channel posts the write inline where the device can.
    pub inline: bool,
}

impl PacketWrite {
    /// The longest message that a design sends in one packet, in bytes.
    pub fn longest(design: RdmaDesign) -> usize {
        let config = Config {
            design,
            ..Config::default()
        };
        Layout::of(&config).max_body()
    }

    /// The write that carries a message of at most [`longest`](PacketWrite::longest) bytes. In the
    /// design `Basic` it ends before the head pointer.
    pub fn of(design: RdmaDesign, message: usize) -> PacketWrite {
        let whole = padded(message) + TRAILER;
        PacketWrite::with(match design {
            RdmaDesign::Basic => whole - WORD,
            _ => whole,
        })
    }

    /// The write of a head pointer or of a tail pointer in the design `Basic`; the other designs
    /// send both pointers in packets. `None`: this design has no such write.
    pub fn pointer(design: RdmaDesign) -> Option<PacketWrite> {
        (design == RdmaDesign::Basic).then(|| PacketWrite::with(WORD))
    }

    fn with(len: usize) -> PacketWrite {
        PacketWrite {
            len,
            inline: len <= INLINE,
        }
    }
}
