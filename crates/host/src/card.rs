//! Cards, by which ranks find each other: a rank's nonce, and the place and address of each rail.
//!
//! The nonce is a random number of this node of the rank. It is no secret: datagrams are bound to
//! it, so those for an earlier node are not taken.

use device::{Address, Attributes, LinkLayer};

/// The network of a rail, as far as datagrams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The carrier and the link layer.
    kind: u8,
    subnet: u64,
}

impl Place {
    /// The place with these parts, whatever they are.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn from_parts(kind: u8, subnet: u64) -> Place {
        Place { kind, subnet }
    }

    /// The place of a device.
    pub(crate) fn of(attributes: &Attributes) -> Place {
        let layer = match attributes.link_layer {
            LinkLayer::InfiniBand => 0,
            LinkLayer::Ethernet => 1,
            LinkLayer::Internet => 2,
        };
        Place {
            kind: 2 * layer + u8::from(attributes.datagrams),
            subnet: attributes.subnet,
        }
    }
}

const VERSION: u8 = 3;
const HEAD: usize = 1 + 8;
const ENTRY: usize = 1 + 8 + 16 + 4;

/// The bytes of a card.
pub(crate) fn write(nonce: u64, entries: &[(Place, Address)]) -> Vec<u8> {
    let mut card = vec![VERSION];
    card.extend(nonce.to_le_bytes());
    for (place, address) in entries {
        card.push(place.kind);
        card.extend(place.subnet.to_le_bytes());
        card.extend(address.port.to_le_bytes());
        card.extend(address.qp.to_le_bytes());
    }
    card
}

/// The nonce and the entries on a card. None: the card is malformed.
pub(crate) fn read(card: &[u8]) -> Option<(u64, Vec<(Place, Address)>)> {
    let (head, rest) = card.split_at_checked(HEAD)?;
    if head[0] != VERSION || rest.is_empty() || rest.len() % ENTRY != 0 {
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
    let entries = rest.chunks(ENTRY).map(entry).collect::<Option<_>>()?;
    Some((u64::from_le_bytes(head[1..].try_into().ok()?), entries))
}

/// The peer's address for each own rail that leads to it. Rails of one network pair by their order
/// there. If no networks are equal, the first rails of one kind may still meet through a router.
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

    #[test]
    fn a_card_says_what_was_put_on_it() {
        let entries = [(place(3, 9), address(1)), (place(1, 8), address(2))];
        let card = write(7, &entries);
        assert_eq!(read(&card), Some((7, entries.to_vec())));
        assert_eq!(read(&card[1..]), None);
        assert_eq!(read(&card[..HEAD]), None);
        assert_eq!(read(&[]), None);
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
        // Different networks meet through a router, and only with the same kind of datagrams.
        assert_eq!(pairs(&own, &[(1, 7), (3, 7)]), [(0, 1)]);
        assert_eq!(pairs(&own[..1], &[(1, 7)]), [(0, 0)]);
    }
}
