//! Reports of a rank's transports for its user: rails, their changes, strangers, outages.

use crate::rdma::Outages;
use crate::{OwnNetwork, RailChoice, Router};

/// Access to what a rank's transports report to the user: rails, costs, strangers, outages.
pub struct Report<'a>(pub(crate) &'a mut Router);

impl Router {
    /// The interface to what this rank's transports report to the user.
    pub fn report(&mut self) -> Report<'_> {
        Report(self)
    }
}

impl Report<'_> {
    /// The choice of rails for a message of `len` bytes to `peer`. `None`: no rails lead to `peer`.
    pub fn rails(&mut self, peer: usize, len: usize) -> Option<RailChoice> {
        let rdma = self.0.via(peer).rdma();
        rdma.map(|rdma| rdma.explain_rails(peer, len))
    }

    /// The names of the devices on the rails to `peer`, in the order of the rails. Empty if no
    /// rails lead there, or if their devices are modelled.
    pub fn rail_names(&mut self, peer: usize) -> Vec<String> {
        let rdma = self.0.via(peer).rdma();
        rdma.map_or_else(Vec::new, |rdma| rdma.rail_names())
    }

    /// The costs of this rank's paths, as its devices report them.
    pub fn network(&mut self) -> OwnNetwork {
        OwnNetwork {
            device: self.0.transports.rdma.as_mut().map(|rdma| rdma.paths()),
            shares_memory: self.0.transports.shm.is_some(),
        }
    }

    /// Removes and returns the messages about rails since the last call: topic and text of each.
    pub fn take_messages(&mut self) -> Vec<(String, String)> {
        let rdma = self.0.transports.rdma.as_mut();
        rdma.map_or_else(Vec::new, |rdma| rdma.take_reports())
    }

    /// The rails to which strangers have connected: number of the rail, device, number of
    /// connections.
    pub fn strangers(&mut self) -> Vec<(usize, String, u64)> {
        let rdma = self.0.transports.rdma.as_mut();
        rdma.map_or_else(Vec::new, |rdma| rdma.strangers())
    }

    /// The outages that have ended: their number, and the sum of their lengths in nanoseconds.
    pub fn outages(&self) -> Outages {
        let rdma = self.0.transports.rdma.as_ref();
        rdma.map_or(Outages::default(), |rdma| rdma.outages())
    }
}
