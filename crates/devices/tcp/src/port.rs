//! A network interface with one of its addresses, as a rail.

use std::net::IpAddr;

use device::{Attributes, InterfaceAddress, LinkLayer, Placement, RequestCosts, network};

/// The longest message, in bytes.
const LONGEST: u64 = 1 << 30;
/// The longest inline payload, in bytes.
const INLINE: usize = 1024;
/// The bandwidth assumed for an interface without a stated speed, in bytes per second: that of a
/// copy in memory, because such an interface is usually the loopback.
const MEMORY_SPEED: u64 = 5_000_000_000;
/// The bytes of each Ethernet packet that are no payload: preamble, gap, and the headers of
/// Ethernet, IP and TCP with time stamps.
const AROUND: u64 = 90;
/// The part of `AROUND` that the MTU includes: the headers of IP and TCP, in bytes.
const INSIDE: u64 = 52;
/// The typical latency of a short write over the loopback interface, in nanoseconds.
const LOOPBACK_NS: u64 = 5_000;
/// The typical latency of a short write over a network, in nanoseconds.
const NETWORK_NS: u64 = 15_000;
/// The time of a system call that hands a frame to the kernel, or takes one, in nanoseconds.
const CALL_NS: u64 = 1_000;

/// A network interface with one of its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The name of the port for users, such as `tcp:eth0`.
    pub name: String,
    /// The address that peers use.
    pub address: InterfaceAddress,
    /// The length of the address's network prefix, in bits.
    pub prefix: u8,
    /// The speed of the interface in Mbit/s, if the system knows it.
    pub speed_mbps: Option<u32>,
    /// The largest packet of IP, in bytes.
    pub mtu: u32,
}

impl Port {
    /// A port of the loopback interface, for ranks of one host.
    pub fn loopback(ip: IpAddr) -> Port {
        Port {
            name: "tcp:lo".into(),
            address: InterfaceAddress { ip, scope: 0 },
            prefix: 8,
            speed_mbps: None,
            mtu: 65536,
        }
    }

    /// The payload that the interface carries in one direction, in bytes per second: an estimate.
    fn bandwidth(&self) -> u64 {
        let Some(mbps) = self.speed_mbps.filter(|mbps| *mbps > 0) else {
            return MEMORY_SPEED;
        };
        let mtu = u64::from(self.mtu).max(576);
        u64::from(mbps) * 125_000 * (mtu - INSIDE) / (mtu + AROUND - INSIDE)
    }

    /// The attributes of a device on this port.
    pub fn attributes(&self) -> Attributes {
        let is_ipv4 = self.address.ip.is_ipv4();
        let bits = if is_ipv4 {
            96 + self.prefix
        } else {
            self.prefix
        };
        let latency_ns = match self.address.ip.is_loopback() {
            true => LOOPBACK_NS,
            false => NETWORK_NS,
        };
        Attributes {
            name: self.name.clone(),
            mtu: 4096,
            inline: INLINE,
            longest: LONGEST,
            // The owner itself copies each byte, in the order of the stream.
            placement: Placement::Ordered,
            immediates: true,
            datagrams: false,
            answered: true,
            by_processor: false,
            polled: true,
            resets: true,
            link_layer: LinkLayer::Internet,
            subnet: network(self.address.bits(), bits),
            bandwidth: self.bandwidth(),
            latency_ns,
            request: RequestCosts {
                post_ns: CALL_NS,
                poll_ns: CALL_NS,
                // The kernel copies, and streams while it does.
                line_ns: 0,
                fetch_ns: 0,
                store_ps: 0,
                read_ns: 2 * latency_ns,
            },
            card: 0,
            domain: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabit_carries_less_than_its_speed_and_less_in_short_packets() {
        let of = |mtu| Port {
            name: "tcp:eth0".into(),
            address: InterfaceAddress {
                ip: [10, 0, 0, 1].into(),
                scope: 0,
            },
            prefix: 24,
            speed_mbps: Some(1000),
            mtu,
        };
        let (usual, jumbo) = (of(1500).bandwidth(), of(9000).bandwidth());
        assert!((117_000_000..118_000_000).contains(&usual), "{usual}");
        assert!((123_000_000..125_000_000).contains(&jumbo), "{jumbo}");
        let unknown = Port {
            speed_mbps: None,
            ..of(1500)
        };
        assert_eq!(unknown.bandwidth(), MEMORY_SPEED);
    }
}
