//! Pairing: the links between the rails of two hosts.
//!
//! A rail reaches the rails of the peer's host with the same link layer and the same subnet. Of
//! those the first pairs with the first, the second with the second. Hosts may have unequal numbers
//! of rails; a rail without a partner carries nothing to that peer.
//!
//! Invariant: both ends compute the same pairs, because a pair depends only on the two lists of
//! rails, which the handshake exchanges.

use device::LinkLayer;

/// The network that a rail belongs to. Rails of the same network can reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// The link layer of the rail's port.
    pub link_layer: LinkLayer,
    /// The identification of the port's subnet: [`Attributes::subnet`](device::Attributes::subnet).
    pub subnet: u64,
}

/// The pairs of this rank's rails and the peer's, as positions in the two lists, in ascending order
/// of this rank's positions.
pub fn pairs(ours: &[Network], theirs: &[Network]) -> Vec<(usize, usize)> {
    let partner = |at: usize| {
        let network = ours[at];
        let before = ours[..at].iter().filter(|other| **other == network).count();
        let of_network = theirs.iter().enumerate();
        let mut partners = of_network.filter(|(_, other)| **other == network);
        partners.nth(before).map(|(partner, _)| (at, partner))
    };
    (0..ours.len()).filter_map(partner).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn network(number: u64) -> Network {
        Network {
            link_layer: match number % 3 {
                0 => LinkLayer::InfiniBand,
                1 => LinkLayer::Ethernet,
                _ => LinkLayer::Internet,
            },
            subnet: number / 3,
        }
    }

    fn networks(numbers: &[u64]) -> Vec<Network> {
        numbers.iter().map(|number| network(*number)).collect()
    }

    #[test]
    fn rails_pair_by_network_and_then_by_their_order() {
        let of = |ours: &[u64], theirs: &[u64]| pairs(&networks(ours), &networks(theirs));
        assert_eq!(of(&[0, 0], &[0, 0]), [(0, 0), (1, 1)]);
        assert_eq!(of(&[0, 0], &[0]), [(0, 0)]);
        assert_eq!(of(&[0, 3], &[3, 0]), [(0, 1), (1, 0)]);
        // RoCE and TCP in one subnet.
        assert_eq!(of(&[1, 2, 2], &[2, 1, 2]), [(0, 1), (1, 0), (2, 2)]);
        assert_eq!(of(&[0, 1, 0], &[0, 0]), [(0, 0), (2, 1)]);
        assert_eq!(of(&[0], &[1]), []);
    }

    proptest! {
        #[test]
        fn both_ends_compute_the_same_pairs(
            ours in prop::collection::vec(0u64..6, 0..8),
            theirs in prop::collection::vec(0u64..6, 0..8),
        ) {
            let (ours, theirs) = (networks(&ours), networks(&theirs));
            let here = pairs(&ours, &theirs);
            let mut there: Vec<_> = pairs(&theirs, &ours)
                .into_iter()
                .map(|(at, partner)| (partner, at))
                .collect();
            there.sort_unstable();
            prop_assert_eq!(&here, &there);
            for (at, partner) in here {
                prop_assert_eq!(ours[at], theirs[partner]);
            }
        }
    }
}
