//! The place of a host on IP networks, and the choice of an address at which one host reaches
//! another.

use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tcp::interfaces;

/// The most addresses of a host.
const MOST_ADDRESSES: usize = 16;

/// An address of a host, and the length of the prefix of its network in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NetworkAddress {
    pub address: IpAddr,
    pub prefix: u8,
}

/// The place of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The running kernel and the network namespace. Processes with the same share the loopback.
    /// Empty where the system does not show them.
    pub machine: String,
    /// The addresses that lead to other hosts, the best first.
    pub addresses: Vec<NetworkAddress>,
}

impl Place {
    /// The place of this host.
    pub(crate) fn here() -> Place {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let network = std::fs::read_link(Path::new("/proc/self/ns/net"));
        let machine = match (boot, network) {
            (Ok(boot), Ok(network)) => format!("{} {}", boot.trim(), network.display()),
            _ => String::new(),
        };
        let found = interfaces::list().unwrap_or_default();
        let used = interfaces::choose(&found).into_iter();
        let used = used.map(|at| &found[at]).filter(|one| one.scope == 0);
        let addresses = used.map(|interface| NetworkAddress {
            address: interface.address,
            prefix: interface.prefix,
        });
        Place {
            machine,
            addresses: addresses.take(MOST_ADDRESSES).collect(),
        }
    }

    /// Whether the place could be one.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.addresses.len() <= MOST_ADDRESSES && self.machine.len() <= 128 {
            true => Ok(()),
            false => Err("it has reported an impossible place".into()),
        }
    }

    /// The address at which a process at `other` reaches one here: the loopback on one machine,
    /// else an address in a network of both, else the best one, behind a router.
    pub(crate) fn address_for(&self, other: &Place) -> Option<IpAddr> {
        if !self.machine.is_empty() && self.machine == other.machine {
            return Some(IpAddr::from([127, 0, 0, 1]));
        }
        // An address that both have, such as that of a bridge within each host, leads nowhere.
        let unique = || {
            let is_unique = |own: &&NetworkAddress| !other.has(own.address);
            self.addresses.iter().filter(is_unique)
        };
        let shared = unique().find(|own| other.addresses.iter().any(|theirs| own.shares(theirs)));
        shared.or(unique().next()).map(|own| own.address)
    }

    fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address == address)
    }
}

impl NetworkAddress {
    /// Whether two addresses are in one network.
    fn shares(&self, other: &NetworkAddress) -> bool {
        let network = |address: IpAddr| match address {
            IpAddr::V4(address) => (4, u128::from(u32::from(address)) << 96),
            IpAddr::V6(address) => (6, u128::from(address)),
        };
        let free = 128u32.saturating_sub(u32::from(self.prefix));
        let part = |(kind, bits): (u8, u128)| (kind, bits.checked_shr(free).unwrap_or(0));
        self.prefix == other.prefix && part(network(self.address)) == part(network(other.address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(machine: &str, addresses: &[(&str, u8)]) -> Place {
        let addresses = addresses.iter().map(|(address, prefix)| NetworkAddress {
            address: address.parse().unwrap(),
            prefix: *prefix,
        });
        Place {
            machine: machine.into(),
            addresses: addresses.collect(),
        }
    }

    fn address(one: &Place, other: &Place) -> Option<String> {
        one.address_for(other).map(|address| address.to_string())
    }

    #[test]
    fn a_network_of_both_is_chosen() {
        let one = place(
            "a",
            &[("172.17.0.1", 16), ("192.0.2.7", 24), ("10.1.2.3", 8)],
        );
        let other = place("b", &[("172.17.0.1", 16), ("10.9.9.9", 8)]);
        assert_eq!(address(&one, &other).as_deref(), Some("10.1.2.3"));
        let far = place("c", &[("172.17.0.1", 16), ("198.51.100.1", 24)]);
        assert_eq!(address(&one, &far).as_deref(), Some("192.0.2.7"));
        let longer = place("d", &[("10.9.9.9", 16)]);
        assert_eq!(address(&one, &longer).as_deref(), Some("172.17.0.1"));
        let new = place("e", &[("2001:db8::1", 64)]);
        let newer = place("f", &[("2001:db8::2", 64), ("10.1.1.1", 0)]);
        assert_eq!(address(&new, &newer).as_deref(), Some("2001:db8::1"));
    }

    #[test]
    fn one_machine_needs_no_network() {
        assert_eq!(
            address(&place("a", &[]), &place("a", &[])).as_deref(),
            Some("127.0.0.1")
        );
        assert_eq!(address(&place("", &[]), &place("", &[])), None);
        assert_eq!(address(&place("a", &[]), &place("b", &[])), None);
    }

    #[test]
    fn the_place_of_this_host_is_a_place() {
        let here = Place::here();
        assert_eq!(here.check(), Ok(()));
        assert_eq!(address(&here, &here).as_deref(), Some("127.0.0.1"));
        let many = place("a", &[("10.0.0.1", 8); MOST_ADDRESSES + 1]);
        assert!(many.check().is_err());
    }
}
