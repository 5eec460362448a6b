//! The rails of a message, explained for its user.

use crate::rdma::Rdma;

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

impl Rdma {
    /// The choice of rails for a message of `len` bytes to `peer`. Every peer has one rail.
    pub(crate) fn explain_rails(&mut self, _peer: usize, len: usize) -> RailChoice {
        const RAIL: usize = 0;
        let attributes = self.node().rail(RAIL).attributes();
        let on_link = len as u128 * 1_000_000_000 / u128::from(attributes.bandwidth.max(1));
        RailChoice {
            choice: format!("rail {RAIL}"),
            shares: vec![(RAIL, len as u64)],
            predicted_ns: attributes.latency_ns + on_link as u64,
            alternatives: Vec::new(),
            limit: None,
        }
    }
}
