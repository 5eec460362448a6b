//! The connections of the tree of agents: TCP, from each agent to its parent, beside the streams
//! to the launcher.
//!
//! The launcher decides ([`build`]): when all ranks have been started, it orders inner agents to
//! listen at the addresses that their children need ([`place`]), and children to call. Both prove
//! that they know the job's secret. If a connection cannot be made, or breaks, all agents return to
//! their streams; the job goes on. [`links`] are the sockets of one agent.

pub(crate) mod build;
pub(crate) mod links;
pub(crate) mod place;

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// An order of the launcher about the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TreeOrder {
    /// Listen at these addresses for the children.
    Listen(Vec<IpAddr>),
    /// Call the parent at this address.
    Join(SocketAddr),
    /// All connections are made: use them.
    Use,
    /// Close all connections and use the stream.
    Leave,
}

/// A report of an agent about the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TreeReport {
    /// The place of this agent's host on networks.
    Placed(place::Place),
    /// It listens at these addresses, one for each that was ordered.
    Listening(Vec<SocketAddr>),
    /// All its children have come.
    Complete,
    /// A connection could not be made, or has broken, for this reason.
    Failed(String),
}
