//! The facts of the kernel about interfaces, before any choice.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// An IP address of an interface, with its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The IP address.
    pub address: IpAddr,
    /// The number of the interface for a link-local IPv6 address, which means nothing without it.
    /// Otherwise 0.
    pub scope: u32,
    /// The length of the prefix of the address's network, in bits.
    pub prefix: u8,
}

/// The kernel's facts about one network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub name: String,
    pub index: u32,
    /// The usable addresses of the interface, in the kernel's order.
    pub addresses: Vec<Address>,
    pub kind: Kind,
    pub link: Link,
    pub speed_mbps: Option<u32>,
    pub mtu: u32,
}

/// The kind of an interface. Interfaces of an earlier kind are more likely to lead to another host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    #[default]
    Plain,
    /// An interface with link-local addresses only.
    LinkLocal,
    Tunnel,
    Bridge,
    /// A port of a bridge.
    Port,
    Loopback,
}

/// The state of an interface's link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Link {
    #[default]
    Up,
    NoCarrier,
    Down,
}

/// Groups entries by the number of their interface, in ascending order.
pub(super) fn by_interface<T>(
    entries: impl IntoIterator<Item = (u32, T)>,
) -> BTreeMap<u32, Vec<T>> {
    let mut all: BTreeMap<u32, Vec<T>> = BTreeMap::new();
    for (index, entry) in entries {
        all.entry(index).or_default().push(entry);
    }
    all
}
