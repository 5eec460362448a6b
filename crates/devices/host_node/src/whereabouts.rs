//! The host of a rank: its name, and the network namespace of the rank's process.

use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;

/// The longest name of a host, in bytes.
const NAME: usize = 64;
/// The greatest number of addresses in a text for the user.
const ADDRESSES: usize = 4;

/// The host of a rank: where it runs, and which network it sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    name: String,
    /// A number that is equal for processes in the same network namespace. 0: unknown.
    network: u64,
}

impl Whereabouts {
    /// The location of this process: its host and its network.
    pub fn own() -> Whereabouts {
        let uname = rustix::system::uname();
        Whereabouts::named(&uname.nodename().to_string_lossy(), network().unwrap_or(0))
    }

    pub(crate) fn named(name: &str, network: u64) -> Whereabouts {
        let name = name.chars().filter(char::is_ascii_graphic);
        Whereabouts {
            name: name.take(NAME).collect(),
            network,
        }
    }

    /// True if both networks are known and differ. The loopback interfaces of such processes are
    /// not connected.
    pub fn is_apart_from(&self, other: &Whereabouts) -> bool {
        self.network != other.network && self.network != 0 && other.network != 0
    }

    /// Appends the encoded location to `bytes`.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.network.to_le_bytes());
        bytes.push(self.name.len() as u8);
        bytes.extend(self.name.as_bytes());
    }

    /// Decodes a value from the start of `bytes`, and returns it with the remaining bytes. `None`:
    /// the bytes are malformed.
    pub fn read(bytes: &[u8]) -> Option<(Whereabouts, &[u8])> {
        let (network, rest) = bytes.split_first_chunk()?;
        let (len, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*len))?;
        let is_name = name.len() <= NAME && name.iter().all(u8::is_ascii_graphic);
        let name = is_name.then(|| String::from_utf8_lossy(name).into_owned())?;
        let network = u64::from_le_bytes(*network);
        Some((Whereabouts { name, network }, rest))
    }

    /// The host with addresses, as text for the user: `node-1 (10.0.0.1)`.
    pub fn with_addresses(&self, ips: impl IntoIterator<Item = IpAddr>) -> String {
        let mut words: Vec<String> = Vec::new();
        for ip in ips {
            let ip = ip.to_string();
            if !words.contains(&ip) {
                words.push(ip);
            }
        }
        if words.len() > ADDRESSES {
            words.truncate(ADDRESSES);
            words.push("...".into());
        }
        match words.is_empty() {
            true => self.name.clone(),
            false => format!("{} ({})", self.name, words.join(", ")),
        }
    }
}

/// The number of this process's network namespace, combined with the boot ID of its kernel. `None`:
/// the system does not report them.
fn network() -> Option<u64> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::metadata("/proc/self/ns/net").ok()?.ino();
    let digits: String = boot.chars().filter(char::is_ascii_hexdigit).collect();
    let boot = u128::from_str_radix(&digits, 16).ok()?;
    let boot = (boot >> 64) as u64 ^ boot as u64;
    // The namespaces of one kernel have different numbers, so the results differ, too.
    Some((boot ^ namespace).max(1))
}

/// The IP address with these 128 bits.
pub(crate) fn ip_of(bits: u128) -> IpAddr {
    let ip = Ipv6Addr::from(bits);
    ip.to_ipv4_mapped().map_or(ip.into(), IpAddr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whereabouts_read_what_was_written() {
        let made = Whereabouts::named("node-1\n\u{1b}[2J\u{e9}", 9);
        assert_eq!(made.name, "node-1[2J");
        let mut bytes = Vec::new();
        made.write(&mut bytes);
        bytes.extend(b"rest");
        assert_eq!(Whereabouts::read(&bytes), Some((made, &b"rest"[..])));
        assert_eq!(Whereabouts::read(&bytes[..12]), None);
        // A name with a control character.
        bytes[10] = 7;
        assert_eq!(Whereabouts::read(&bytes), None);
    }

    #[test]
    fn this_process_is_where_it_is() {
        let [one, other] = [(); 2].map(|()| Whereabouts::own());
        assert_eq!(one, other);
        assert!(!one.is_apart_from(&other) && !one.name.is_empty());
        let elsewhere = Whereabouts::named("x", one.network.wrapping_add(1).max(1));
        assert_eq!(one.is_apart_from(&elsewhere), one.network != 0);
    }

    #[test]
    fn words_name_few_addresses_once() {
        let ip = |last| IpAddr::from([10, 0, 0, last]);
        let host = Whereabouts::named("a", 1);
        assert_eq!(host.with_addresses([]), "a");
        assert_eq!(host.with_addresses([ip(1), ip(1)]), "a (10.0.0.1)");
        let many = host.with_addresses((1..9).map(ip));
        assert_eq!(many, "a (10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4, ...)");
    }
}
