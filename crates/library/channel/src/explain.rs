//! The rails of a message, explained for its user.

use crate::PathCosts;

/// The choice of rails for messages of one length to one peer, and the choices not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RailChoice {
    /// The choice, such as `rail 0` or `split 50:50`.
    pub choice: String,
    /// The rails that carry the message, and the bytes on each.
    pub shares: Vec<(usize, u64)>,
    /// The predicted time to the arrival of the last byte, in nanoseconds.
    pub predicted_ns: u64,
    /// The choices not taken, and their predicted times in nanoseconds.
    pub alternatives: Vec<(String, u64)>,
    /// The resource that bounds long messages, such as `link`, `bus` or `memory`, if it is known.
    pub limit: Option<String>,
}

/// The network of a rank's devices, and its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnNetwork {
    /// The paths to other hosts, and within the host where devices or processors carry messages
    /// there without shared memory. `None`: the rank has no device.
    pub device: Option<[PathCosts; 2]>,
    /// The rank shares memory with the other ranks of its host.
    pub shares_memory: bool,
}
