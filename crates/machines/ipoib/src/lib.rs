//! IP over InfiniBand on a modelled machine: sockets of TCP and UDP, in virtual time.
//!
//! The kernel's driver is a user of verbs like any other: in datagram mode each IP packet is a send
//! of an unreliable datagram, in connected mode a send over a reliable connection (RFC 4391, RFC
//! 4755). So packets pass the queue pairs, buses, links and switches of the model, and their bytes
//! are really moved. This crate adds the work of processors: system calls, copies, checksums,
//! interrupts, and what TCP, UDP and IP do for each packet ([`fabric::Kernel`] has the times).
//!
//! Each host has processes, and one core that takes the interrupts of its HCA; each is a rank of
//! the model. All ranks are coroutines of one process, and share the state of their host.
//!
//! Invariants:
//!
//! - [`tcp`] and [`udp`] are state machines without devices: time is an argument.
//! - TCP delivers all bytes, once and in order, whatever is lost. UDP delivers whole datagrams or
//!   nothing.
//! - No more bytes of a connection than its window are in flight or unread, and a UDP socket keeps
//!   no more than its buffer.
//! - The addresses of the hosts are known from the start: address resolution and the making of
//!   connections take no time.
//!
//! Never here: MPI; real devices.

mod context;
pub mod frame;
mod interrupts;
mod memory;
mod network;
mod process;
mod rings;
pub mod tcp;
pub mod udp;

pub use interrupts::take_interrupts;
pub use network::{Mode, Network, Place};
pub use process::Process;
