//! The IP interfaces of this host: those that carry a job, the address of each, and the reasons.
//!
//! Every interface with an address is a rail, unless a reason stands against it: its link is down;
//! its only address is link-local, as every interface has one by itself, also that of a host's
//! management processor; or it is a tunnel, a virtual bridge, a port of a bridge or the loopback,
//! which rarely reach another host. If no interface is left, those of the best kind are used whose
//! link is up. The choice is a pure function of the kernel's facts.

mod facts;
mod kernel;

use std::io;
use std::net::IpAddr;

pub use facts::Address;
use facts::{Found, Kind, Link};

/// An IP interface of this host, with the address that a job uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The name of the interface, such as `eth0`.
    pub name: String,
    /// The address that a job uses: the first global IPv4 one, else a global IPv6 one, else a
    /// link-local one.
    pub address: IpAddr,
    /// The number of the interface if the address is link-local IPv6, otherwise 0.
    pub scope: u32,
    /// The length of the prefix of the address's network in bits.
    pub prefix: u8,
    /// The speed of the link in Mbit/s, if the kernel reports it.
    pub speed_mbps: Option<u32>,
    /// The longest packet in bytes. 0 where the system does not show it.
    pub mtu: u32,
    /// The number of the interface in the kernel.
    pub index: u32,
    /// The decision whether a job uses the interface.
    pub verdict: Verdict,
    /// The other addresses of the interface.
    pub others: Vec<Address>,
}

/// The decision whether a job uses an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A job uses the interface.
    Used,
    /// A job does not use the interface, for the reason given.
    LeftOut(&'static str),
}

impl Interface {
    /// The reason why a job uses this address of the interface.
    pub fn why_this_address(&self) -> &'static str {
        match (reach(self.address), self.others.is_empty()) {
            (_, true) => "its only address",
            (Reach::GlobalV4, _) => "its first IPv4 address",
            (Reach::GlobalV6, _) => "an IPv6 address; it has no IPv4 address",
            (Reach::LinkV4 | Reach::LinkV6, _) => "a link-local address; it has no other",
        }
    }

    /// This interface, but with `address`, one of its other addresses, as the address that a job
    /// uses.
    fn with(&self, address: Address) -> Interface {
        let own = Address {
            address: self.address,
            scope: self.scope,
            prefix: self.prefix,
        };
        let others = self.others.iter().copied();
        let others = others.filter(|other| *other != address);
        Interface {
            address: address.address,
            scope: address.scope,
            prefix: address.prefix,
            others: others.chain([own]).collect(),
            ..self.clone()
        }
    }
}

/// The interfaces of this host that have an address, in the kernel's order.
pub fn list() -> io::Result<Vec<Interface>> {
    kernel::found().map(judge)
}

/// The positions of the interfaces that a job uses.
pub fn choose(interfaces: &[Interface]) -> Vec<usize> {
    let places = interfaces.iter().enumerate();
    let used = places.filter(|(_, interface)| interface.verdict == Verdict::Used);
    used.map(|(place, _)| place).collect()
}

/// The interface with this name or this address, such as `eth0`, `10.0.0.1` or `fe80::1%eth0`,
/// whatever its verdict. It then has the address that was named.
pub fn named(interfaces: &[Interface], wanted: &str) -> Option<Interface> {
    if let Some(interface) = interfaces.iter().find(|one| one.name == wanted) {
        return Some(interface.clone());
    }
    let (address, zone) = match wanted.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (wanted, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let mut fitting = interfaces
        .iter()
        .filter(|one| zone.is_none_or(|zone| one.name == zone || one.index.to_string() == zone));
    fitting.find_map(|interface| {
        if interface.address == address {
            return Some(interface.clone());
        }
        let mut others = interface.others.iter();
        let other = others.find(|other| other.address == address)?;
        Some(interface.with(*other))
    })
}

/// The interfaces that a job uses: those of the best available kind whose link is up.
fn judge(mut found: Vec<Found>) -> Vec<Interface> {
    for one in found.iter_mut().filter(|one| one.kind == Kind::Plain) {
        let mut reaches = one.addresses.iter().map(|at| reach(at.address));
        if reaches.all(|reach| matches!(reach, Reach::LinkV4 | Reach::LinkV6)) {
            one.kind = Kind::LinkLocal;
        }
    }
    let up = found
        .iter()
        .filter(|one| one.link == Link::Up && !one.addresses.is_empty());
    let best = up.map(|one| one.kind).min();
    let verdict = |one: &Found| match (one.link, one.kind) {
        (Link::Down, _) => Verdict::LeftOut("it is down"),
        (Link::NoCarrier, _) => Verdict::LeftOut("its link is down"),
        (Link::Up, kind) if Some(kind) == best => Verdict::Used,
        (Link::Up, Kind::Loopback) => Verdict::LeftOut("the loopback reaches this host only"),
        (Link::Up, Kind::Bridge) => Verdict::LeftOut("a bridge without a network card"),
        (Link::Up, Kind::Port) => Verdict::LeftOut("a port of a bridge"),
        (Link::Up, Kind::Tunnel) => Verdict::LeftOut("a tunnel through other interfaces"),
        (Link::Up, Kind::LinkLocal) => {
            Verdict::LeftOut("it has only a link-local address, as unused interfaces do")
        }
        // A plain interface is of the best kind.
        (Link::Up, Kind::Plain) => Verdict::Used,
    };
    let interface = |one: Found| {
        let verdict = verdict(&one);
        let mut addresses = one.addresses;
        // Stable: the kernel's order decides between equals.
        addresses.sort_by_key(|address| reach(address.address));
        let mut addresses = addresses.into_iter();
        let first = addresses.next()?;
        Some(Interface {
            name: one.name,
            address: first.address,
            scope: first.scope,
            prefix: first.prefix,
            speed_mbps: one.speed_mbps,
            mtu: one.mtu,
            index: one.index,
            verdict,
            others: addresses.collect(),
        })
    };
    found.into_iter().filter_map(interface).collect()
}

/// The reach of an address. Of the addresses of an interface, a job prefers one of an earlier
/// variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    GlobalV4,
    GlobalV6,
    LinkV4,
    LinkV6,
}

fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) if address.is_link_local() => Reach::LinkV4,
        IpAddr::V4(_) => Reach::GlobalV4,
        IpAddr::V6(address) if address.is_unicast_link_local() => Reach::LinkV6,
        IpAddr::V6(_) => Reach::GlobalV6,
    }
}

#[cfg(test)]
mod tests;
