//! The kernel's facts about interfaces: `getifaddrs`, /sys/class/net and /proc/net/if_inet6.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use super::facts::{Address, Found, Kind, Link, by_interface};

/// Types of hardware in /sys/class/net/NAME/type that are tunnels (linux/if_arp.h): PPP, IPIP,
/// IPv6 in IPv6, SIT, GRE, GRE over IPv6, and none at all (tun, WireGuard).
const TUNNELS: [u32; 7] = [512, 768, 769, 776, 778, 823, 65534];

/// Flags in /proc/net/if_inet6 of an address that cannot be used (linux/if_addr.h): duplicate, and
/// not yet checked for duplicates.
const UNUSABLE: u32 = 0x08 | 0x40;
/// Flags of an address that will disappear: temporary, and deprecated.
const FLEETING: u32 = 0x01 | 0x20;

/// The interfaces that have an address.
pub(super) fn found() -> io::Result<Vec<Found>> {
    let flags = v6_flags(&fs::read_to_string("/proc/net/if_inet6").unwrap_or_default());
    let of = |address: &Address| {
        let known = flags.iter().find(|(known, _)| *known == address.address);
        known.map_or(0, |(_, flags)| *flags)
    };
    let entries = entries()?.into_iter();
    let entries = by_interface(entries.map(|entry| (entry.index, entry)));
    let interface = |(index, entries): (u32, Vec<Entry>)| {
        let first = entries.first()?;
        let (name, up) = (first.name.clone(), first.flags);
        let mut addresses: Vec<Address> = entries.into_iter().map(|entry| entry.address).collect();
        addresses.retain(|address| of(address) & UNUSABLE == 0);
        addresses.sort_by_key(|address| of(address) & FLEETING != 0);
        let folder = folder(&name, index);
        let number = |file: &str| number(folder.as_deref()?, file);
        Some(Found {
            kind: kind(up, folder.as_deref()),
            link: link(up),
            // The kernel has -1 there for a link without a speed, and for one that is down.
            speed_mbps: number("speed").and_then(|speed| u32::try_from(speed).ok()),
            mtu: number("mtu").map_or(0, |mtu| mtu as u32),
            name,
            index,
            addresses,
        })
    };
    Ok(entries.into_iter().filter_map(interface).collect())
}

/// One address of one interface, as `getifaddrs` shows it.
struct Entry {
    name: String,
    index: u32,
    /// The interface's flags in the kernel: `IFF_UP` and others.
    flags: u32,
    address: Address,
}

/// The entries of `getifaddrs` for IPv4 and IPv6.
fn entries() -> io::Result<Vec<Entry>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call writes one pointer, to the variable that it is given.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut entries = Vec::new();
    let mut at = first;
    // SAFETY: each pointer of the list is null or leads to an element, and all of them live until
    // `freeifaddrs` below.
    while let Some(element) = unsafe { at.as_ref() } {
        at = element.ifa_next;
        // SAFETY: the same list: a name, and socket addresses or null.
        entries.extend(unsafe { entry(element) });
    }
    // SAFETY: `getifaddrs` made the list, and no reference into it is left.
    unsafe { libc::freeifaddrs(first) };
    Ok(entries)
}

/// Copies an element of the list of `getifaddrs`.
///
/// # Safety
///
/// The name is a string with its end. The address and the mask are null, or lead to a socket
/// address of the length that its family has.
unsafe fn entry(element: &libc::ifaddrs) -> Option<Entry> {
    // SAFETY: as the caller promises.
    let family = i32::from(unsafe { element.ifa_addr.as_ref() }?.sa_family);
    let (address, scope, prefix) = match family {
        libc::AF_INET => {
            let v4 = |at: *mut libc::sockaddr| {
                // SAFETY: an address of this family, as the caller promises.
                let address = unsafe { at.cast::<libc::sockaddr_in>().as_ref() }?;
                Some(u32::from_be(address.sin_addr.s_addr))
            };
            let mask = v4(element.ifa_netmask).unwrap_or(u32::MAX);
            let address = IpAddr::V4(Ipv4Addr::from(v4(element.ifa_addr)?));
            (address, 0, mask.leading_ones())
        }
        libc::AF_INET6 => {
            let v6 = |at: *mut libc::sockaddr| {
                // SAFETY: an address of this family, as the caller promises.
                let address = unsafe { at.cast::<libc::sockaddr_in6>().as_ref() }?;
                let bytes = Ipv6Addr::from(address.sin6_addr.s6_addr);
                Some((bytes, address.sin6_scope_id))
            };
            let mask = v6(element.ifa_netmask).map_or(u128::MAX, |(mask, _)| mask.into());
            let (address, scope) = v6(element.ifa_addr)?;
            (IpAddr::V6(address), scope, mask.leading_ones())
        }
        _ => return None,
    };
    // SAFETY: as the caller promises. The name of a second IPv4 address may have a label behind a
    // colon, which is no part of the interface's name.
    let label = unsafe { CStr::from_ptr(element.ifa_name) };
    let name = label.to_string_lossy().split(':').next()?.to_string();
    let terminated = std::ffi::CString::new(name.clone()).ok()?;
    // SAFETY: a string with its end.
    let index = unsafe { libc::if_nametoindex(terminated.as_ptr()) };
    Some(Entry {
        name,
        index,
        flags: element.ifa_flags,
        address: Address {
            address,
            scope,
            prefix: prefix as u8,
        },
    })
    .filter(|entry| entry.index != 0)
}

fn link(flags: u32) -> Link {
    let has = |flag: i32| flags & flag as u32 != 0;
    match (has(libc::IFF_UP), has(libc::IFF_RUNNING)) {
        (false, _) => Link::Down,
        (true, false) => Link::NoCarrier,
        (true, true) => Link::Up,
    }
}

/// The kind of an interface with these flags and this folder in /sys.
pub(super) fn kind(flags: u32, folder: Option<&Path>) -> Kind {
    let has = |flag: i32| flags & flag as u32 != 0;
    if has(libc::IFF_LOOPBACK) {
        return Kind::Loopback;
    }
    let hardware = folder.and_then(|folder| number(folder, "type"));
    let is_tunnel = hardware.is_some_and(|number| TUNNELS.iter().any(|&one| number == one.into()));
    if has(libc::IFF_POINTOPOINT) || is_tunnel {
        return Kind::Tunnel;
    }
    let Some(folder) = folder else {
        return Kind::Plain;
    };
    let events = fs::read_to_string(folder.join("uevent")).unwrap_or_default();
    let device = events
        .lines()
        .find_map(|line| line.strip_prefix("DEVTYPE="));
    if folder.join("tun_flags").exists() || matches!(device, Some("vxlan" | "geneve" | "wireguard"))
    {
        return Kind::Tunnel;
    }
    if folder.join("brport").is_dir() {
        return Kind::Port;
    }
    if folder.join("bridge").is_dir() && !bridges_a_card(folder) {
        return Kind::Bridge;
    }
    Kind::Plain
}

/// True if a port of this bridge is a network card, or is based on one, as a bond is. Such a bridge
/// carries the host's own address.
fn bridges_a_card(bridge: &Path) -> bool {
    let Ok(ports) = fs::read_dir(bridge.join("brif")) else {
        return false;
    };
    // An entry leads to the folder `brport` in the folder of the port's interface.
    let is_card = |port: PathBuf| {
        let port = port.canonicalize().ok();
        port.is_some_and(|port| port.parent().is_some_and(rests_on_a_card))
    };
    ports.flatten().any(|port| is_card(port.path()))
}

/// True if this interface is a network card, or has one below it.
fn rests_on_a_card(interface: &Path) -> bool {
    if interface.join("device").exists() {
        return true;
    }
    let Ok(entries) = fs::read_dir(interface) else {
        return false;
    };
    let mut below = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with("lower_")
    });
    below.any(|entry| entry.path().join("device").exists())
}

/// The folder of an interface in /sys. `None` where /sys belongs to another network namespace.
fn folder(name: &str, index: u32) -> Option<PathBuf> {
    let folder = Path::new("/sys/class/net").join(name);
    (number(&folder, "ifindex") == Some(index.into())).then_some(folder)
}

fn number(folder: &Path, file: &str) -> Option<i64> {
    fs::read_to_string(folder.join(file))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// The flags of IPv6 addresses, from the text of /proc/net/if_inet6.
pub(super) fn v6_flags(text: &str) -> Vec<(IpAddr, u32)> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _index, _prefix, _scope, flags, ..] = words[..] else {
            return None;
        };
        let address = Ipv6Addr::from(u128::from_str_radix(address, 16).ok()?);
        let flags = u32::from_str_radix(flags, 16).ok()?;
        Some((IpAddr::V6(address), flags))
    };
    text.lines().filter_map(line).collect()
}
