//! Counts of packets and bytes on the links of a modelled machine.

use super::span::{Activity, Doing};

/// The traffic on links since the machine was made, lost packets included. Messages within a host
/// count if the HCA carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of packets that have crossed links.
    pub packets: u64,
    /// The number of those packets that only acknowledge.
    pub acknowledgements: u64,
    /// The number of bytes of all those packets, headers included.
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
