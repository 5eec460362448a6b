//! Counts of traffic on links.

use super::span::{Activity, Doing};

/// The traffic on links since the machine was made, lost packets included. Messages within a host
/// count if its HCA carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// All packets.
    pub packets: u64,
    /// Packets that only acknowledge.
    pub acknowledgements: u64,
    /// The bytes of all packets, headers included.
    pub bytes: u64,
}

impl Traffic {
    #[inline]
    pub(crate) fn count(&mut self, doing: Doing) {
        self.packets += 1;
        self.acknowledgements += u64::from(doing.activity == Activity::Acknowledgement);
        self.bytes += u64::from(doing.bytes);
    }
}
