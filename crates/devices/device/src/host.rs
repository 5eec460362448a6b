//! Devices of real hosts, as the node that owns several of them sees them.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::RawFd;

use crate::{Device, PortChange, Result};

/// A device of a real host: one rail of a node, which may have rails of several kinds.
pub trait HostDevice: Device + Send {
    /// The identity of the device among those of its host.
    fn identity(&self) -> Identity;

    /// Sets the numbers of its card and of its protection domain among the node's.
    fn set_numbers(&mut self, card: usize, domain: usize);

    /// The address of its network interface, for datagrams of the node. Only a device that has
    /// datagrams of its own has none.
    fn interface_address(&self) -> Option<InterfaceAddress>;

    /// The descriptors that are readable when the device has events.
    fn event_fds(&self) -> EventFds;

    /// Takes events: of completions, and others.
    fn take_events(&mut self, completions: bool, others: bool);

    /// True if a connection has been made, or has failed, since the last call.
    fn has_connected(&mut self) -> bool;

    /// Makes the next completion or arrival raise an event. True: there may have been some before,
    /// so the owner must poll once more before it sleeps.
    fn arm(&mut self) -> Result<bool>;

    /// Nanoseconds until the device must be polled, though nothing arrives. None: never.
    fn due(&self) -> Option<u64> {
        None
    }

    /// Appends its reports since the last call.
    fn take_notes(&mut self, notes: &mut VecDeque<String>);

    /// Takes its reports that the user should see though nothing has failed.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The number of connections that processes outside the job have made to it so far: those that
    /// it has dropped, and those that are there and have proved nothing.
    fn strangers(&self) -> u64 {
        0
    }

    /// Takes the changes of the port since the last call.
    fn take_changes(&mut self) -> Vec<PortChange>;

    /// As [`Node::written`](crate::Node::written).
    fn written(&mut self, keys: &mut Vec<u32>) -> bool {
        let _ = keys;
        false
    }
}

/// The most reports that a device keeps until its node takes them.
pub const MOST_NOTES: usize = 64;

/// The identity of a device among those of its host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The card that holds it, if that is known. Devices of unknown cards count as cards of their
    /// own.
    pub card: Option<String>,
    /// A number that devices with a common protection domain share; None: its domain is its own.
    pub domain: Option<usize>,
}

/// The descriptors of a device's events. Devices may share them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventFds {
    /// Of completions, and of arrivals that the device reports.
    pub completions: Option<RawFd>,
    /// Of everything else, such as a port that goes down.
    pub others: Option<RawFd>,
    /// Of connections that have been made; [`has_connected`](HostDevice::has_connected) empties it.
    pub connections: Option<RawFd>,
}

/// The address of a network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub ip: IpAddr,
    /// The number of the interface, which a link-local address needs; otherwise 0.
    pub scope: u32,
}

impl InterfaceAddress {
    /// The 128 bits of [`Address::port`](crate::Address::port): IPv4 as a mapped address.
    pub fn bits(&self) -> u128 {
        match self.ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().into(),
            IpAddr::V6(ip) => ip.into(),
        }
    }

    /// The socket address with a port at this interface.
    pub fn at(&self, port: u16) -> SocketAddr {
        self.reach(self.bits(), port)
    }

    /// The socket address with these 128 bits and a port, as reached from this interface.
    pub fn reach(&self, bits: u128, port: u16) -> SocketAddr {
        let ip = Ipv6Addr::from(bits);
        match ip.to_ipv4_mapped() {
            Some(ip) => (ip, port).into(),
            None => SocketAddrV6::new(ip, port, 0, self.scope).into(),
        }
    }
}

/// The number of an IP network, for [`Attributes::subnet`](crate::Attributes::subnet): the 128 bits
/// of an address without its host part. `prefix` is the length of the prefix, of 128.
pub fn network(address: u128, prefix: u8) -> u64 {
    let host = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
    let network = address & !host;
    match Ipv6Addr::from(address).to_ipv4_mapped() {
        Some(_) => network as u64,
        // Both halves count where the prefix is longer than one.
        None => (network >> 64) as u64 ^ (network as u64).rotate_left(1),
    }
}
