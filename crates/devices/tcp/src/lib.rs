//! A device over TCP: hosts without RDMA hardware run the protocols of RDMA.
//!
//! A queue pair is a connection, a request a frame (`frame`): the bytes of a write are
//! received straight into the registered memory that they are for. The owner's polls do all the
//! work; no thread runs beside it. [`TcpDevice`] is one network interface with one of its
//! addresses.
//!
//! **Connections.** A device listens at its interface's address. When both ends of a connection
//! know each other's address, the one with the lower address calls. Before any frame both prove
//! that they know the job's secret (crate `secret`); later bytes are not authenticated, and nothing
//! is encrypted. Requests may be posted at once: they leave when the connection is made.
//!
//! **The listener** is there as long as a peer *can come*: one that may call a queue pair whose
//! connection is not made (`listening`). Strangers are dropped and counted.
//!
//! **Failures.** The device resends nothing over a new connection. If one breaks, the oldest
//! request in flight fails as one that nobody acknowledges does ([`RetryExceeded`]), the others are
//! flushed, and failover writes what the peer lacks over another rail or a new connection, from the
//! memory that its requests still name. A payload that was copied (inline) is repeated too: the
//! layer above still has it in its ring. The kernel decides that a path is dead, by retransmissions
//! that nobody acknowledges; a peer that computes is not dead.
//!
//! Invariants:
//! - no byte of a peer is parsed as a frame before the peer has proved that it belongs to the job;
//! - no address of a peer is followed without a check of key, bounds and access (`regions`);
//! - everything that a peer can fill has a bound (`frame`, `calls`).
//!
//! [`RetryExceeded`]: device::Status::RetryExceeded
//!
//! Never here: protocols.

mod calls;
mod choice;
mod connecting;
mod cork;
mod device;
mod events;
mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod hosted;
pub mod interfaces;
mod listening;
mod pair;
mod paths;
mod port;
mod progress;
mod queues;
mod regions;
mod verbs;
mod wire;

pub use self::device::TcpDevice;
pub use choice::{TAKEN, choose, ports};
pub use port::Port;
