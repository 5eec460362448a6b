//! Names of links between switches, for a user.

use crate::network::Network;

/// The name of a link between switches by its number in the network. In a fat tree it has the
/// switch below it, the direction, and its number among the links up from there, all from 0.
pub fn link_name(network: &Network, link: u32) -> String {
    let named = match network {
        Network::Tree(tree) if tree.levels() > 1 => {
            let levels = u64::from(tree.levels());
            let width = tree.links() / levels / 2;
            let (row, position) = (u64::from(link) / width, u64::from(link) % width);
            // The hosts below one switch, or one group of switches, of the level.
            let apart = |host: &u32| u64::from(network.hops(0, *host)) + 1 > row / 2 * 2;
            let group = (1..network.hosts()).find(apart).filter(|_| row >= 2);
            group.map(|group| {
                let (at, lane) = (position / u64::from(group), position % u64::from(group));
                let below = if row < 4 { "leaf" } else { "group" };
                let direction = if row % 2 == 0 { "up" } else { "down" };
                format!("{below} {at} {direction}, link {lane}")
            })
        }
        _ => None,
    };
    named.unwrap_or_else(|| format!("link {link} between switches"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::path::Choice;
    use crate::network::tree::Tree;

    #[test]
    fn links_of_a_tree_have_the_switch_below_them() {
        let names = |nodes: u32, from: u32, to: u32| -> Vec<String> {
            let network = Network::Tree(Tree::new(nodes, 8, 1));
            let path = network.path(from, to, Choice::ByDestination);
            let links = path.links().iter();
            links.map(|link| link_name(&network, *link)).collect()
        };
        assert_eq!(
            names(32, 1, 10),
            ["leaf 0 up, link 2", "leaf 2 down, link 2"]
        );
        let far = names(128, 1, 127);
        assert_eq!(far.len(), 4);
        assert_eq!(
            (far[0].as_str(), far[3].as_str()),
            ("leaf 0 up, link 3", "leaf 31 down, link 3")
        );
        assert!(
            far[1].starts_with("group 0 up") && far[2].starts_with("group 7 down"),
            "{far:?}"
        );
    }
}
