//! A rank's node on a real host: [`HostNode`] has a device for each rail. The devices may be of
//! different kinds, such as those of crates `verbs` and `tcp`.
//!
//! The node's out-of-band messages (`oob`) use every rail: by the datagrams of devices that have
//! datagrams (`datagrams`), otherwise by UDP at the address of the network interface (`socket`).
//! They need no connection, and survive the loss of all rails but one. Where nothing arrives, the
//! hosts of peers are probed (`probes`). Every datagram carries a code made with the job's secret
//! (`datagram`); those of strangers are dropped and counted.
//!
//! Never here: protocols; code for a particular kind of device.

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
