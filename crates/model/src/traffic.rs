//! What has gone over links, counted.

use super::Net;
use super::record::{Act, Doing};

/// Since the machine was made, whatever became of it on the way. What stays within a host counts too, where its HCA
/// carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets of all kinds.
    pub packets: u64,
    /// Those that only acknowledge.
    pub acknowledgements: u64,
    /// Of all packets, with all that they have on the line.
    pub bytes: u64,
}

impl Traffic {
    #[inline]
    pub(super) fn count(&mut self, doing: Doing) {
        self.packets += 1;
        self.acknowledgements += u64::from(doing.act == Act::Acknowledgement);
        self.bytes += u64::from(doing.bytes);
    }
}

impl Net {
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }
}
