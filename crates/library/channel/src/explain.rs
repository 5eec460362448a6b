//! Descriptions for the user: of the rails on which a message travels, and of the costs of a rank's
//! paths.

use crate::PathCosts;

/// The choice of rails for messages of one length to one peer, and its alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RailChoice {
    /// The chosen rails as text, such as `rail 0` or `split 50:50`.
    pub choice: String,
    /// The numbers of the rails that carry the message, and the bytes on each.
    pub shares: Vec<(usize, u64)>,
    /// The predicted time from the post to the arrival of the last byte, in nanoseconds.
    pub predicted_ns: u64,
    /// The choices that were not made, as text, and their predicted times in nanoseconds.
    pub alternatives: Vec<(String, u64)>,
    /// The resource that limits the bandwidth of long messages, such as `link`, `bus` or `memory`,
    /// if it is known.
    pub limit: Option<String>,
}

/// The costs of a rank's paths, by the location of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnNetwork {
    /// The costs of the path to other hosts, and of the path within the host where devices, or
    /// processors without shared memory, carry messages there. `None`: the rank has no device.
    pub device: Option<[PathCosts; 2]>,
    /// True if the rank shares memory with the other ranks of its host.
    pub shares_memory: bool,
}
