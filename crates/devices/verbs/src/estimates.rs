//! Estimates of a port's bandwidth and latency, from which crate `channel` starts and which it
//! corrects by what it observes; and the number that identifies the port's subnet, by which rails
//! find those that they can reach.

use super::gid::GidKind;
use super::internet;
use super::list::Listed;
use super::port::Rate;

/// The share of payload in the bytes on a PCI Express slot: packets of 256 bytes with 26 bytes of
/// headers (PCI Express Base Specification, 2.2 and 3.6).
const SLOT_PAYLOAD: f64 = 256.0 / 282.0;
/// Bytes around the payload of a packet on InfiniBand (IBA 5.2: LRH, BTH, ICRC, VCRC).
const AROUND_INFINIBAND: f64 = 26.0;
/// Bytes around the payload of a packet on Ethernet with preamble and gap, IPv4 and UDP (annex
/// A17); nearly the same with TCP.
const AROUND_ETHERNET: f64 = 82.0;
/// Latency of a short write over InfiniBand, in nanoseconds.
const INFINIBAND_NS: u64 = 1_300;
/// Latency of a short write over RoCE and iWARP in hardware, in nanoseconds.
const ETHERNET_NS: u64 = 2_000;
/// Latency of a short write to a device in software, in nanoseconds.
const SOFTWARE_NS: u64 = 20_000;
/// Assumed prefix length of an IPv4 address that no interface of this host has, as in a container
/// with a network of its own.
const ASSUMED_IPV4_BITS: u8 = 24;
/// Assumed prefix length of an IPv6 address that no interface of this host has.
const ASSUMED_IPV6_BITS: u8 = 64;

impl Listed {
    /// Estimated bandwidth of payload through link and slot in one direction, in bytes per second.
    /// It follows from the rate and the coding of the link, the headers of full packets, and the
    /// rate and width of the slot. A device in software is assumed to be as fast as its network
    /// interface; its processor may be slower.
    pub fn bandwidth(&self) -> u64 {
        let software = self.surroundings.driver.is_none();
        let (link, around) = match self.link_layer {
            "InfiniBand" => (coded(self.rate), AROUND_INFINIBAND),
            _ => (self.rate.gbit() * 1e9 / 8.0, AROUND_ETHERNET),
        };
        let link = match self.surroundings.interface_mbit {
            Some(mbit) if software => f64::from(mbit) * 1e6 / 8.0,
            _ => link,
        };
        let packet = self.mtu.max(256) as f64;
        let link = link * packet / (packet + around);
        let slot = self.surroundings.slot_bytes_per_s;
        let slot = slot.map_or(f64::INFINITY, |slot| slot as f64 * SLOT_PAYLOAD);
        (link.min(slot) as u64).max(1)
    }

    /// Estimated time from the post of a short write to its arrival in the peer's memory, in
    /// nanoseconds: a typical value of the kind of device.
    pub fn latency_ns(&self) -> u64 {
        match (self.surroundings.driver.is_none(), self.link_layer) {
            (true, _) => SOFTWARE_NS,
            (false, "InfiniBand") => INFINIBAND_NS,
            _ => ETHERNET_NS,
        }
    }

    /// The number that identifies the port's subnet: on InfiniBand the subnet prefix; otherwise a
    /// number computed from the IP network of the address that peers use. All link-local addresses
    /// count as one network.
    pub fn subnet(&self) -> u64 {
        let Some(gid) = &self.gid else { return 0 };
        match gid.kind {
            GidKind::InfiniBand => (gid.value >> 64) as u64,
            _ => network(gid.value, self.surroundings.prefix_bits),
        }
    }
}

/// The data rate of an InfiniBand link, in bytes per second (IBA vol. 2, 5.2 and 5.11: 8b/10b up to
/// QDR, 64b/66b above).
fn coded(rate: Rate) -> f64 {
    let coding = match rate.speed {
        "SDR" | "DDR" | "QDR" => 8.0 / 10.0,
        _ => 64.0 / 66.0,
    };
    rate.gbit() * 1e9 / 8.0 * coding
}

/// A number that identifies the IP network of an address. `bits`: the length of the prefix, out of
/// 128; `None`: unknown.
fn network(address: u128, bits: Option<u8>) -> u64 {
    let is_ipv4 = internet::is_ipv4(address);
    let bits = bits.unwrap_or(match is_ipv4 {
        true => 96 + ASSUMED_IPV4_BITS,
        false => ASSUMED_IPV6_BITS,
    });
    device::network(address, bits)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::super::port::slot;
    use super::*;

    fn v4(address: [u8; 4]) -> u128 {
        Ipv4Addr::from(address).to_ipv6_mapped().into()
    }

    #[test]
    fn addresses_of_one_network_are_equal_and_others_are_not() {
        let of = |address, bits: u8| network(v4(address), Some(96 + bits));
        assert_eq!(of([10, 77, 0, 1], 24), of([10, 77, 0, 2], 24));
        assert_ne!(of([10, 77, 0, 1], 24), of([10, 77, 1, 1], 24));
        assert_eq!(of([10, 77, 0, 1], 16), of([10, 77, 1, 1], 16));
        // An address that no interface has gets a prefix of 24 bits.
        assert_eq!(network(v4([10, 77, 0, 9]), None), of([10, 77, 0, 1], 24));
        let v6 = |text: &str| u128::from(text.parse::<Ipv6Addr>().unwrap());
        let local = ["fe80::1", "fe80::2"].map(|one| network(v6(one), None));
        assert_eq!(local[0], local[1]);
        let far = ["2001:db8::1", "2001:db8:0:1::1"].map(|one| network(v6(one), None));
        assert_ne!(far[0], far[1]);
        let long = ["2001:db8::1:1", "2001:db8::2:1"].map(|one| network(v6(one), Some(112)));
        assert_ne!(long[0], long[1]);
    }

    #[test]
    fn qdr_carries_less_than_its_rate_and_a_slot_may_carry_less_still() {
        let mut port = super::super::list::closed("mlx4_0".into(), String::new());
        port.surroundings.driver = Some("mlx4_core".into());
        (port.link_layer, port.rate, port.mtu) = ("InfiniBand", Rate::of(2, 4), 2048);
        let whole = port.bandwidth();
        assert!((3_900_000_000..4_000_000_000).contains(&whole), "{whole}");
        port.surroundings.slot_bytes_per_s = slot("5.0 GT/s PCIe", "8");
        let slot = port.bandwidth();
        assert!((3_500_000_000..3_700_000_000).contains(&slot), "{slot}");
        port.surroundings.driver = None;
        port.surroundings.slot_bytes_per_s = None;
        port.surroundings.interface_mbit = Some(1000);
        let soft = port.bandwidth();
        assert!((120_000_000..125_000_000).contains(&soft), "{soft}");
    }
}
