//! Addresses of iWARP devices: the IPv4 address of the device's network interface, as an
//! IPv4-mapped address, and a TCP port instead of a queue pair's number.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ptr;

use device::{Address, Error, Result};

pub(crate) fn words(address: Address) -> String {
    match ipv4(address) {
        Some(ip) => format!("{ip}, port {}", address.qp),
        None => format!("{}, port {}", Ipv6Addr::from(address.port), address.qp),
    }
}

/// The IPv4 address. The upper half of `address.port` has another use, and is ignored.
fn ipv4(address: Address) -> Option<Ipv4Addr> {
    Ipv6Addr::from(u128::from(address.port as u64)).to_ipv4_mapped()
}

pub(crate) fn socket_address(address: Address) -> Result<libc::sockaddr_in> {
    let port = u16::try_from(address.qp).ok();
    let (Some(ip), Some(port)) = (ipv4(address), port) else {
        let words = words(address);
        return Err(Error::Invalid(format!("{words} is no address of iWARP")));
    };
    Ok(libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(ip).to_be(),
        },
        sin_zero: [0; 8],
    })
}

/// The network interface of an iWARP device, and its first IPv4 address as an IPv4-mapped address.
/// The device's GID begins with that interface's hardware address.
pub(crate) fn below(gid: u128) -> Option<(String, u128)> {
    let hardware = gid.to_be_bytes();
    let all = interfaces();
    let (name, _) = all
        .iter()
        .find(|(_, address)| matches!(address, At::Hardware(bytes) if *bytes == hardware[..6]))?;
    all.iter().find_map(|(other, address)| match address {
        At::Internet { address, .. } if other == name && is_ipv4(*address) => {
            Some((name.clone(), *address))
        }
        _ => None,
    })
}

/// True for an IPv4 address, in the form of an IPv4-mapped address.
pub(crate) fn is_ipv4(address: u128) -> bool {
    Ipv6Addr::from(address).to_ipv4_mapped().is_some()
}

/// The length of the network prefix of an address of this host, out of 128 bits. `None`: no
/// interface has the address.
pub(crate) fn prefix_bits(wanted: u128) -> Option<u8> {
    interfaces().into_iter().find_map(|(_, at)| match at {
        At::Internet { address, bits } if address == wanted => Some(bits),
        _ => None,
    })
}

enum At {
    Hardware([u8; 6]),
    /// An IP address, IPv4 as an IPv4-mapped address, and the length of its network prefix out of
    /// 128 bits.
    Internet {
        address: u128,
        bits: u8,
    },
}

/// # Safety
/// The address is null or valid. Addresses of other families are not read.
unsafe fn internet_address(address: *const libc::sockaddr) -> Option<u128> {
    // SAFETY: the family determines the layout.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let raw = u32::from_be((*address.cast::<libc::sockaddr_in>()).sin_addr.s_addr);
                Some(Ipv4Addr::from(raw).to_ipv6_mapped().into())
            }
            libc::AF_INET6 => {
                let raw = (*address.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr;
                Some(u128::from_be_bytes(raw))
            }
            _ => None,
        }
    }
}

/// The names and addresses of this host's network interfaces.
fn interfaces() -> Vec<(String, At)> {
    let mut first = ptr::null_mut();
    // SAFETY: memory for the result.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: an entry of a list that ends with null; the family of an address determines its
        // layout.
        unsafe {
            let entry = &*next;
            next = entry.ifa_next;
            let Some(address) = entry.ifa_addr.as_ref() else {
                continue;
            };
            let at = match i32::from(address.sa_family) {
                libc::AF_INET | libc::AF_INET6 => {
                    let Some(address) = internet_address(entry.ifa_addr) else {
                        continue;
                    };
                    let mask = internet_address(entry.ifa_netmask).unwrap_or(u128::MAX);
                    // The upper bits of an IPv4-mapped address are a part of every network.
                    let mask = if is_ipv4(address) {
                        mask | !0 << 32
                    } else {
                        mask
                    };
                    At::Internet {
                        address,
                        bits: mask.count_ones() as u8,
                    }
                }
                libc::AF_PACKET => {
                    let address = &*entry.ifa_addr.cast::<libc::sockaddr_ll>();
                    let mut bytes = [0; 6];
                    bytes.copy_from_slice(&address.sll_addr[..6]);
                    At::Hardware(bytes)
                }
                _ => continue,
            };
            let name = std::ffi::CStr::from_ptr(entry.ifa_name);
            found.push((name.to_string_lossy().into_owned(), at));
        }
    }
    // SAFETY: the list from above.
    unsafe { libc::freeifaddrs(first) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_port_of_an_ipv4_address_is_an_address() {
        let port: u128 = Ipv4Addr::LOCALHOST.to_ipv6_mapped().into();
        let address = socket_address(Address { port, qp: 258 }).unwrap();
        assert_eq!(address.sin_port.to_ne_bytes(), [1, 2]);
        assert_eq!(address.sin_addr.s_addr.to_ne_bytes(), [127, 0, 0, 1]);
        let secret = Address {
            port: port | 7 << 64,
            qp: 258,
        };
        assert_eq!(words(secret), "127.0.0.1, port 258");
        assert!(socket_address(Address { port, qp: 1 << 16 }).is_err());
        assert!(socket_address(Address { port: 1, qp: 1 }).is_err());
    }
}
