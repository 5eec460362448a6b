//! The choice of one of a port's GIDs, with its reason (IBA 4.1.1; RoCE: annex A17).

use std::net::Ipv6Addr;

/// One entry of a port's GID table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gid {
    /// The index of the entry in the table.
    pub index: u32,
    /// The 128 bits of the GID.
    pub value: u128,
    /// The kind of the GID.
    pub kind: GidKind,
}

/// The kind of a GID, which determines the packets of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GidKind {
    /// The GID belongs to an InfiniBand port.
    InfiniBand,
    /// Packets are Ethernet frames (RoCE v1).
    RoceV1,
    /// Packets are UDP packets (RoCE v2).
    RoceV2,
    /// Not a GID, but the IPv4 address of the network interface (iWARP).
    Iwarp,
}

impl Gid {
    /// The GID as text, in the form of `ibv_devinfo`.
    pub fn words(&self) -> String {
        Ipv6Addr::from(self.value).to_string()
    }

    fn is_ipv4(&self) -> bool {
        Ipv6Addr::from(self.value).to_ipv4_mapped().is_some()
    }

    fn is_link_local(&self) -> bool {
        self.value >> 118 == 0xfe80 >> 6
    }
}

/// A reason for a choice, and the condition for the GIDs that it applies to.
type Rule = (&'static str, fn(&Gid) -> bool);

/// The GID that an Ethernet port uses, and the reason. `None`: the table has none.
pub(crate) fn choose_roce(table: &[Gid]) -> Option<(Gid, String)> {
    let rules: [Rule; 4] = [
        (
            "RoCE v2 with the port's IPv4 address: it is routed, and what a network is set up for",
            |gid| gid.kind == GidKind::RoceV2 && gid.is_ipv4(),
        ),
        (
            "RoCE v2 with the port's IPv6 address: the port has no IPv4 address",
            |gid| gid.kind == GidKind::RoceV2 && !gid.is_link_local(),
        ),
        (
            "RoCE v2 with the link-local address: the port has no other address, so peers behind a router are out of \
             reach",
            |gid| gid.kind == GidKind::RoceV2,
        ),
        (
            "RoCE v1: the port speaks no other, so all peers must, and be on this very Ethernet",
            |gid| gid.kind == GidKind::RoceV1,
        ),
    ];
    for (why, holds) in rules {
        let mut fits: Vec<&Gid> = table.iter().filter(|gid| holds(gid)).collect();
        fits.sort_by_key(|gid| gid.index);
        if let Some(first) = fits.first() {
            let others = match fits.len() {
                1 => String::new(),
                count => format!("; the first of {count} such"),
            };
            return Some(((*first).clone(), format!("{why}{others}")));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(index: u32, kind: GidKind, address: &str) -> Gid {
        Gid {
            index,
            value: address.parse::<Ipv6Addr>().unwrap().into(),
            kind,
        }
    }

    #[test]
    fn the_best_address_wins_wherever_it_stands() {
        let table = [
            gid(0, GidKind::RoceV1, "fe80::1"),
            gid(1, GidKind::RoceV2, "fe80::1"),
            gid(2, GidKind::RoceV1, "::ffff:10.0.0.1"),
            gid(3, GidKind::RoceV2, "2001:db8::1"),
            gid(7, GidKind::RoceV2, "::ffff:10.0.0.2"),
            gid(5, GidKind::RoceV2, "::ffff:10.0.0.1"),
        ];
        let chosen = |table: &[Gid]| choose_roce(table).map(|(gid, why)| (gid.index, why));
        let (index, why) = chosen(&table).unwrap();
        assert_eq!(index, 5);
        assert!(why.contains("IPv4") && why.contains("first of 2"), "{why}");
        assert_eq!(chosen(&table[..4]).unwrap().0, 3);
        let (index, why) = chosen(&table[..3]).unwrap();
        assert_eq!(index, 1);
        assert!(why.contains("link-local"), "{why}");
        assert_eq!(chosen(&table[..1]).unwrap().0, 0);
        assert_eq!(chosen(&[]), None);
    }
}
