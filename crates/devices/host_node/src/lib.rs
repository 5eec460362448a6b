//! A rank's place on a real host: [`HostNode`] has a device of any kind for each rail, such as
//! those of crates `verbs` and `tcp`, side by side.
//!
//! The node's out-of-band messages (`oob`) go over every rail: by the datagrams of devices that
//! have some (`datagrams`), by UDP at the address of the network interface elsewhere (`socket`).
//! They need no connection, and survive the loss of all rails but one. Where nothing comes, the
//! hosts of peers are asked whether they are there (`probes`). Every datagram carries a
//! code by the job's secret (`datagram`); those of strangers are dropped and counted.
//!
//! Never here: protocols; what kind a device is.

mod board;
mod card;
mod datagram;
mod datagrams;
mod event_wait;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod node;
mod oob;
mod probes;
mod reliable_datagram;
mod serials;
mod socket;
mod whereabouts;

pub use board::Board;
pub use node::HostNode;
pub use oob::Directory;
pub use whereabouts::Whereabouts;
