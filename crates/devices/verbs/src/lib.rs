//! RDMA devices of this host, through libibverbs: InfiniBand, RoCE and iWARP. The queue pairs of
//! iWARP are connected by the kernel's connection manager (`rdmacm`). iWARP has no datagrams, no
//! immediates ([`with_immediates`](device::with_immediates)) and no atomics.
//!
//! [`list`] reports the devices and whether each can be used, [`choose`] selects some of them,
//! [`VerbsDevice`] is one port of one device. The library is opened at its first use (`library`),
//! so a program that uses no RDMA runs without it.
//!
//! Invariants:
//! - no retry count means "without limit": a dead path gives an error after about half a second
//!   (`connection`);
//! - the number that is posted with a request is an index of ours (`wr_table`), so every completion
//!   identifies its request, even that of a failed one; and a queue has room again only after
//!   completions have been polled, as the trait requires;
//! - all objects of a device are destroyed before the device is closed, in the order that
//!   libibverbs requires (`device`).
//!
//! Never here: protocols.

mod connection;
mod device;
mod estimates;
mod events;
mod gid;
mod hosted;
mod internet;
mod keys;
mod library;
mod list;
mod memory;
mod mtu;
mod open_device;
mod opening;
mod owned;
mod placement;
mod port;
mod rdmacm;
mod sys;
mod work;

pub use self::device::VerbsDevice;
pub use gid::{Gid, GidKind};
pub use list::{Choice, Listed, choose, list, named_port, open};
pub use port::{Rate, Surroundings};
