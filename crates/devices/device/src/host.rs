//! The interface of a real host's devices for the node that owns several of them.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::RawFd;

use crate::{Device, PortChange, Result};

/// A device of a real host: one rail of a node, which may have rails of several kinds.
pub trait HostDevice: Device + Send {
    /// The card and the protection domain of the device.
    fn identity(&self) -> Identity;

    /// Sets the numbers of the device's card and of its protection domain among those of the node.
    fn set_numbers(&mut self, card: usize, domain: usize);

    /// The address of the device's network interface, for datagrams of the node. `None` only if the
    /// device has datagrams of its own.
    fn interface_address(&self) -> Option<InterfaceAddress>;

    /// The descriptors that become readable by events of the device.
    fn event_fds(&self) -> EventFds;

    /// Handles pending events: those of completions if `completions`, all others if `others`.
    fn take_events(&mut self, completions: bool, others: bool);

    /// True if a connection has been made, or has failed, since the last call.
    fn has_connected(&mut self) -> bool;

    /// Arms the device: the next completion or arrival raises an event. True: there may have been
    /// some before, so the owner must poll once more before it sleeps.
    fn arm(&mut self) -> Result<bool>;

    /// Time until the device must be polled although nothing arrives, in nanoseconds. `None`:
    /// never.
    fn due(&self) -> Option<u64> {
        None
    }

    /// Appends the device's reports since the last call, and removes them from the device.
    fn take_notes(&mut self, notes: &mut VecDeque<String>);

    /// Removes and returns the reports that the user should see although nothing has failed.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The number of connections that processes outside the job have made to the device: those that
    /// it has dropped, and open ones that have not yet proved knowledge of the job's secret.
    fn strangers(&self) -> u64 {
        0
    }

    /// Removes and returns the changes of the port since the last call.
    fn take_changes(&mut self) -> Vec<PortChange>;

    /// Implements [`Node::written`](crate::Node::written) for the regions of this device.
    fn written(&mut self, keys: &mut Vec<u32>) -> bool {
        let _ = keys;
        false
    }
}

/// The greatest number of reports that a device keeps until its node reads them.
pub const MOST_NOTES: usize = 64;

/// The card and the protection domain of a device, by which its node groups devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The card that holds the device, if it is known. A device whose card is unknown counts as a
    /// card of its own.
    pub card: Option<String>,
    /// A number shared by devices with a common protection domain. `None`: the device has one of
    /// its own.
    pub domain: Option<usize>,
}

/// The descriptors of a device's events. Devices may share them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventFds {
    /// Readable by events of completions, and of arrivals that the device reports.
    pub completions: Option<RawFd>,
    /// Readable by all other events, such as a port that goes down.
    pub others: Option<RawFd>,
    /// Readable once a connection has been made; [`has_connected`](HostDevice::has_connected)
    /// resets it.
    pub connections: Option<RawFd>,
}

/// The address of a network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The IP address.
    pub ip: IpAddr,
    /// The index of the interface, which a link-local address needs; otherwise 0.
    pub scope: u32,
}

impl InterfaceAddress {
    /// The 128 bits of the address for [`Address::port`](crate::Address::port): IPv4 as an
    /// IPv4-mapped address.
    pub fn bits(&self) -> u128 {
        match self.ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().into(),
            IpAddr::V6(ip) => ip.into(),
        }
    }

    /// The socket address of `port` at this interface.
    pub fn at(&self, port: u16) -> SocketAddr {
        self.reach(self.bits(), port)
    }

    /// The socket address of `port` at the IP address `bits`, as reached from this interface.
    pub fn reach(&self, bits: u128, port: u16) -> SocketAddr {
        let ip = Ipv6Addr::from(bits);
        match ip.to_ipv4_mapped() {
            Some(ip) => (ip, port).into(),
            None => SocketAddrV6::new(ip, port, 0, self.scope).into(),
        }
    }
}

/// A number that identifies an IP network, for [`Attributes::subnet`](crate::Attributes::subnet).
/// It is computed from the 128 bits of an address without its host part. `prefix`: the length of
/// the network prefix, out of 128.
pub fn network(address: u128, prefix: u8) -> u64 {
    let host = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
    let network = address & !host;
    match Ipv6Addr::from(address).to_ipv4_mapped() {
        Some(_) => network as u64,
        // The lower half is included for prefixes longer than 64 bits.
        None => (network >> 64) as u64 ^ (network as u64).rotate_left(1),
    }
}
