//! Real RDMA devices, through libibverbs: InfiniBand, RoCE, and iWARP, whose queue pairs the kernel's connection manager
//! ties (`exchange`), and which has no datagrams (`socket` stands in), no immediates ([`with_immediates`](device::with_immediates))
//! and no atomics.
//!
//! [`list`] says what there is and what of it can be used, [`choose`] picks, [`VerbsDevice`] is one port of one device,
//! [`VerbsNode`] a rank's place on this host. The library is opened when it is first asked for (`library`), so whatever
//! does not use it runs without it.
//!
//! What must always hold:
//! - no retry count means for ever: a dead way gives an error after about half a second (`connection`);
//! - a request's number at the device is ours (`ledger`), so a completion, failed ones too, says exactly which request
//!   it is about, and a queue gives room back only with completions that have been taken, as the trait says;
//! - what was made of a device is unmade before it is closed, in the order that libibverbs asks for (`device`).

mod connection;
mod datagrams;
mod device;
mod event_wait;
mod events;
mod gid;
mod internet;
mod library;
mod list;
mod memory;
mod mtu;
mod node;
mod oob;
mod placement;
mod port;
mod rdmacm;
mod reliable_datagram;
mod socket;
mod sys;
mod work;

pub use self::device::VerbsDevice;
pub use gid::{Gid, GidKind};
pub use list::{Choice, Listed, choose, list, open, open_port};
pub use node::VerbsNode;
pub use oob::Directory;
pub use port::{Rate, Surroundings};
