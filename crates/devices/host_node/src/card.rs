//! Cards, by which ranks find each other: a rank's nonce, its host, and the network and address of
//! each of its rails.
//!
//! The nonce is a random number of this rank's node. It is not secret: datagrams carry it, so those
//! for an earlier node of the rank are dropped.

use std::net::IpAddr;

use device::{Address, Attributes, LinkLayer};

use super::whereabouts::{Whereabouts, ip_of};

/// The network of a rail: rails of equal networks can exchange datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Twice the link layer, plus 1 if the device has datagrams of its own.
    kind: u8,
    subnet: u64,
}

impl Place {
    /// The network with these values, which need not be valid.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn from_parts(kind: u8, subnet: u64) -> Place {
        Place { kind, subnet }
    }

    /// The network that a device with these attributes belongs to.
    pub(crate) fn of(attributes: &Attributes) -> Place {
        let layer = match attributes.link_layer {
            LinkLayer::InfiniBand => INFINIBAND,
            LinkLayer::Ethernet => 1,
            LinkLayer::Internet => 2,
        };
        Place {
            kind: 2 * layer + u8::from(attributes.datagrams),
            subnet: attributes.subnet,
        }
    }

    /// The IP address of a rail of this network. `None`: on InfiniBand the bits of the address are
    /// not an IP address.
    pub(crate) fn ip(self, address: Address) -> Option<IpAddr> {
        (self.kind / 2 != INFINIBAND).then(|| ip_of(address.port))
    }
}

/// The link layer in [`Place::kind`] that has no IP addresses.
const INFINIBAND: u8 = 0;

const VERSION: u8 = 4;
const ENTRY: usize = 1 + 8 + 16 + 4;

/// The contents of a card, by which ranks find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) nonce: u64,
    pub(crate) whereabouts: Whereabouts,
    /// The network and the address of each rail.
    pub(crate) entries: Vec<(Place, Address)>,
}

impl Card {
    /// The entries that the host `own` can reach: not the loopback of another host.
    pub(crate) fn entries_from(&self, own: &Whereabouts) -> Vec<(Place, Address)> {
        let is_apart = self.whereabouts.is_apart_from(own);
        let inside = |(place, address): &(Place, Address)| {
            place.ip(*address).is_some_and(|ip| ip.is_loopback())
        };
        let entries = self.entries.iter().copied();
        entries.filter(|one| !(is_apart && inside(one))).collect()
    }

    /// The host of the card's rank and its addresses, as text for the user.
    pub(crate) fn words(&self) -> String {
        let ips = self.entries.iter().filter_map(|(place, at)| place.ip(*at));
        self.whereabouts.with_addresses(ips)
    }
}

/// The encoding of a card.
pub(crate) fn write(card: &Card) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(card.nonce.to_le_bytes());
    card.whereabouts.write(&mut bytes);
    for (place, address) in &card.entries {
        bytes.push(place.kind);
        bytes.extend(place.subnet.to_le_bytes());
        bytes.extend(address.port.to_le_bytes());
        bytes.extend(address.qp.to_le_bytes());
    }
    bytes
}

/// The card with this encoding. `None`: it is malformed.
pub(crate) fn read(bytes: &[u8]) -> Option<Card> {
    let (version, rest) = bytes.split_first()?;
    let (nonce, rest) = rest.split_first_chunk()?;
    let (whereabouts, rest) = Whereabouts::read(rest)?;
    if *version != VERSION || rest.is_empty() || rest.len() % ENTRY != 0 {
        return None;
    }
    let entry = |bytes: &[u8]| {
        let place = Place {
            kind: bytes[0],
            subnet: u64::from_le_bytes(bytes[1..9].try_into().ok()?),
        };
        let address = Address {
            port: u128::from_le_bytes(bytes[9..25].try_into().ok()?),
            qp: u32::from_le_bytes(bytes[25..].try_into().ok()?),
        };
        Some((place, address))
    };
    Some(Card {
        nonce: u64::from_le_bytes(*nonce),
        whereabouts,
        entries: rest.chunks(ENTRY).map(entry).collect::<Option<_>>()?,
    })
}

/// For each own rail that leads to the peer, the rail and the peer's address. Rails of one network
/// pair in their order. If no networks are equal, the first rails of one kind pair, since a router
/// may connect them.
pub(crate) fn pair(own: &[Place], peer: &[(Place, Address)]) -> Vec<(usize, Address)> {
    let mut pairs = Vec::new();
    for (rail, place) in own.iter().enumerate() {
        let there: Vec<_> = peer.iter().filter(|(other, _)| other == place).collect();
        let before = own[..rail].iter().filter(|other| *other == place).count();
        if !there.is_empty() {
            pairs.push((rail, there[before % there.len()].1));
        }
    }
    if pairs.is_empty() {
        let routed = own.iter().enumerate().find_map(|(rail, place)| {
            let same = peer.iter().find(|(other, _)| other.kind == place.kind)?;
            Some((rail, same.1))
        });
        pairs.extend(routed.or_else(|| Some((0, peer.first()?.1))));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(kind: u8, subnet: u64) -> Place {
        Place { kind, subnet }
    }

    fn address(qp: u32) -> Address {
        Address {
            port: u128::MAX - 5,
            qp,
        }
    }

    fn card(network: u64, entries: &[(Place, Address)]) -> Card {
        Card {
            nonce: 7,
            whereabouts: Whereabouts::named("node-1", network),
            entries: entries.to_vec(),
        }
    }

    #[test]
    fn a_card_says_what_was_put_on_it() {
        let made = card(4, &[(place(3, 9), address(1)), (place(1, 8), address(2))]);
        let bytes = write(&made);
        assert_eq!(read(&bytes), Some(made));
        assert_eq!(read(&bytes[1..]), None);
        assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        assert_eq!(read(&write(&card(4, &[]))), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn the_loopback_of_another_host_leads_nowhere() {
        let ip = |ip: [u8; 4]| Address {
            port: std::net::Ipv4Addr::from(ip).to_ipv6_mapped().into(),
            qp: 1,
        };
        let inside = (place(4, 1), ip([127, 0, 0, 1]));
        let outside = (place(4, 2), ip([10, 0, 0, 1]));
        // On InfiniBand these bits are not an IP address.
        let gid = (place(1, 1), inside.1);
        let peer = card(4, &[inside, outside, gid]);
        let from = |network| peer.entries_from(&Whereabouts::named("node-2", network));
        assert_eq!(from(4), peer.entries);
        assert_eq!(from(0), peer.entries, "it is not known");
        assert_eq!(from(5), [outside, gid]);
        assert_eq!(peer.words(), "node-1 (127.0.0.1, 10.0.0.1)");
    }

    #[test]
    fn rails_pair_by_network_and_then_by_order() {
        let pairs = |own: &[Place], peer: &[(u8, u64)]| {
            let peer: Vec<_> = (0..)
                .zip(peer)
                .map(|(at, (kind, subnet))| (place(*kind, *subnet), address(at)))
                .collect();
            let pairs = pair(own, &peer).into_iter();
            pairs.map(|(rail, to)| (rail, to.qp)).collect::<Vec<_>>()
        };
        let own = [place(3, 1), place(3, 2)];
        assert_eq!(pairs(&own, &[(3, 1), (3, 2)]), [(0, 0), (1, 1)]);
        assert_eq!(pairs(&own, &[(3, 2), (3, 1)]), [(0, 1), (1, 0)]);
        assert_eq!(pairs(&own, &[(3, 2)]), [(1, 0)]);
        let same = [place(1, 5); 3];
        assert_eq!(pairs(&same, &[(1, 5), (1, 5)]), [(0, 0), (1, 1), (2, 0)]);
        // A router may connect different networks, but only those with the same kind of datagrams.
        assert_eq!(pairs(&own, &[(1, 7), (3, 7)]), [(0, 1)]);
        assert_eq!(pairs(&own[..1], &[(1, 7)]), [(0, 0)]);
    }
}
