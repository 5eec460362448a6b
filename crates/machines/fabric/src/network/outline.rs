//! The outline of each network.

use super::Network;
use super::graph::Graph;
use super::sketch::{Layer, Sketch};

impl Network {
    /// The outline of the network for a picture.
    pub fn sketch(&self) -> Sketch {
        match self {
            Network::Tree(tree) if tree.levels() == 0 => Sketch::Direct,
            Network::Tree(tree) => Sketch::Layers(tree.layers()),
            Network::Dragonfly(dragonfly) => dragonfly.sketch(),
            Network::Grouped(grouped) => Sketch::Groups {
                groups: grouped.groups,
                sizes: [grouped.columns, grouped.rows],
                cables: grouped.cables,
                hosts: grouped.hosts,
            },
            Network::Grid(grid) => grid.sketch(),
            Network::Levels(levels) => {
                let layer = |level| Layer {
                    switches: levels.switches(level),
                    hosts: if level == 1 { levels.hosts() } else { 0 },
                    up: levels.links_up(level),
                    cables: levels.switches(level) * levels.links_up(level),
                    within: 0,
                };
                Sketch::Layers((1..=levels.levels()).map(layer).collect())
            }
            Network::Graph(key) => Sketch::Layers(layers(key.graph())),
        }
    }
}

/// The levels of a graph: the switches by their distance to the nearest one with hosts.
fn layers(graph: &Graph) -> Vec<Layer> {
    let hosts = graph.hosts_of_switches();
    let mut levels: Vec<Option<usize>> = hosts
        .iter()
        .map(|hosts| (*hosts > 0).then_some(0))
        .collect();
    let mut layers = vec![Layer::default()];
    let mut is_new = true;
    while is_new {
        let last = layers.len() - 1;
        let behind = graph
            .links()
            .iter()
            .filter(|link| levels[link.from as usize] == Some(last));
        let found: Vec<u32> = behind
            .map(|link| link.to)
            .filter(|to| levels[*to as usize].is_none())
            .collect();
        found
            .iter()
            .for_each(|switch| levels[*switch as usize] = Some(last + 1));
        is_new = !found.is_empty();
        layers.extend(is_new.then(Layer::default));
    }
    let mut up = vec![0; hosts.len()];
    for link in graph.links() {
        let ends = [link.from, link.to].map(|switch| levels[switch as usize]);
        let [Some(from), Some(to)] = ends else {
            continue;
        };
        match to > from {
            true => {
                layers[from].cables += 1;
                up[link.from as usize] += 1;
            }
            // Each cable within a level has two links.
            false => layers[from].within += u64::from(to == from),
        }
    }
    for ((level, hosts), up) in levels.iter().zip(&hosts).zip(&up) {
        if let Some(level) = level {
            let layer = &mut layers[*level];
            layer.switches += 1;
            layer.hosts = layer.hosts.max(u64::from(*hosts));
            layer.up = layer.up.max(*up);
        }
    }
    layers.iter_mut().for_each(|layer| layer.within /= 2);
    layers
}

#[cfg(all(test, feature = "toml"))]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_a_graph_follow_from_its_hosts() {
        let text = include_str!("../../../../../examples/networks/cluster.txt");
        let graph = Graph::read(("cluster.txt", text), None).unwrap();
        let leaves = Layer {
            switches: 3,
            hosts: 4,
            up: 4,
            cables: 12,
            within: 0,
        };
        let spines = Layer {
            switches: 2,
            ..Layer::default()
        };
        assert_eq!(layers(&graph), [leaves, spines]);
    }
}
