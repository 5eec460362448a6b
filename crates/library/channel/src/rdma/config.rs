//! The settings of the RDMA transport. All ranks of a job must have the same, except where a field
//! says otherwise.

use device::Node;
use knobs::{QueuePairs, RailPolicy, RdmaDesign};

use super::outage::Patience;

/// The number of a design in the handshake, by which two ranks check that their designs are equal.
pub(crate) fn number(design: RdmaDesign) -> u8 {
    design as u8
}

/// The settings for several rails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RailSettings {
    /// The rule that chooses the rails of a message.
    pub policy: RailPolicy,
    /// The longest message, in bytes, that `Stripe` and `RoundRobin` do not cut.
    pub stripe_above: usize,
    /// The queue pairs of each link.
    pub queue_pairs: QueuePairs,
    /// The most rails that the rank uses.
    pub most: usize,
    /// The number of this rank among the ranks of its host.
    pub local_rank: usize,
}

impl Default for RailSettings {
    fn default() -> RailSettings {
        RailSettings {
            policy: RailPolicy::Adaptive,
            stripe_above: 16 << 10,
            queue_pairs: QueuePairs::Separate,
            most: usize::MAX,
            local_rank: 0,
        }
    }
}

/// The configuration of the RDMA transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The design of the ring and of long messages.
    pub design: RdmaDesign,
    /// The length of the ring from one peer, in bytes. The packets to that peer are built in a
    /// block of equal length.
    pub ring_bytes: usize,
    /// The longest body of a packet in the designs that cut long bodies, in bytes.
    pub chunk: usize,
    /// The receiver reports its tail when one part in `credit` of a size class has been consumed
    /// since the last report.
    pub credit: usize,
    /// The most peers with a ring. The packets of other peers arrive in buffers that they share.
    pub rings: usize,
    /// True if short packets are coalesced while the queue pair is busy.
    pub gather: bool,
    /// True if registrations of users' memory are kept after their use, where the system reports
    /// that memory is unmapped.
    pub keep_registrations: bool,
    /// Settings for several rails. Ranks may have different ones.
    pub rails: RailSettings,
    /// The longest silence of a peer that is not lost. Ranks may have different ones.
    pub patience: Patience,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            design: RdmaDesign::ZeroCopy,
            ring_bytes: 256 << 10,
            chunk: 16 << 10,
            credit: 4,
            rings: 64,
            gather: true,
            keep_registrations: true,
            rails: RailSettings::default(),
            patience: Patience::default(),
        }
    }
}

/// The patience in virtual time where the user sets no limit, in nanoseconds: a day. A run must
/// end.
const VIRTUAL_DAY: u64 = 24 * 3600 * 1_000_000_000;

impl Config {
    /// The configuration for this node: in virtual time the patience has a limit.
    pub(super) fn on(mut self, node: &dyn Node) -> Config {
        if node.is_virtual() {
            self.patience.silence.get_or_insert(VIRTUAL_DAY);
        }
        self
    }

    /// True if short packets are coalesced.
    pub(super) fn coalesces(&self) -> bool {
        self.gather && self.design != RdmaDesign::Basic
    }
}
