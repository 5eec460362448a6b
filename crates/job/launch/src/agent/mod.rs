//! Agents: the launcher's counterparts on other hosts.
//!
//! For each host the launcher starts one command, such as `ssh HOST fishplate agent`, and exchanges
//! frames with it over its standard streams only. The agent ([`serve`]) starts the ranks of its
//! host as a launcher on one host would, and forwards their packets, their output and their ends.
//! It executes orders; all decisions are the launcher's. It ends with its ranks, and they with it,
//! so nothing is left behind. Agents do not communicate with each other, and no process opens a
//! port.

pub(crate) mod beating;
pub(crate) mod contact;
pub(crate) mod frame;
pub(crate) mod link;
pub(crate) mod liveness;
mod local_ranks;
mod order;
mod rank_input;
pub(crate) mod serve;
pub(crate) mod session;
mod start_ranks;
