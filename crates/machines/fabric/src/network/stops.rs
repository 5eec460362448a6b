//! The names of the switches and links on a path, for people.

use super::Network;
use super::path::Path;
use super::stop::Stop;

impl Network {
    /// The switches on a path that begins at a host, in order.
    pub fn stops(&self, from: u32, path: &Path) -> Vec<Stop> {
        let links = path.links().iter().map(|link| self.stop(u64::from(*link)));
        let first = self.first_stop(from);
        first.into_iter().chain(links).collect()
    }

    /// The switch of a host; `None`: it has none.
    fn first_stop(&self, host: u32) -> Option<Stop> {
        let (switch, link) = match self {
            Network::Tree(tree) if tree.levels() == 0 => return None,
            Network::Tree(tree) => (tree.leaf_name(host), String::new()),
            Network::Dragonfly(dragonfly) => (dragonfly.switch_name(host), String::new()),
            Network::Grouped(grouped) => (grouped.switch_name(host), String::new()),
            Network::Grid(grid) => (grid.switch_name(host), String::new()),
            Network::Levels(levels) => (levels.leaf(host).to_string(), String::new()),
            Network::Graph(key) => {
                let graph = key.graph();
                let port = format!(", port {}", graph.host_port(host));
                (graph.switch_name(graph.home(host)), port)
            }
        };
        let link = format!("host link{link}");
        Some(Stop { switch, link })
    }

    /// The end of a link between switches.
    fn stop(&self, link: u64) -> Stop {
        match self {
            Network::Tree(tree) => tree.stop(link),
            Network::Dragonfly(dragonfly) => dragonfly.stop(link),
            Network::Grouped(grouped) => grouped.stop(link),
            Network::Grid(grid) => grid.stop(link),
            Network::Levels(levels) => levels.stop(link),
            Network::Graph(key) => {
                let graph = key.graph();
                let link = graph.links()[link as usize];
                Stop {
                    switch: graph.switch_name(link.to),
                    link: format!("port {}", link.port),
                }
            }
        }
    }

    /// The name of a host: its number, and its name in the graph of a file.
    pub fn host_name(&self, host: u32) -> String {
        let name = match self {
            Network::Graph(key) => key.graph().names().hosts.get(host as usize),
            _ => None,
        };
        name.map_or(format!("host {host}"), |name| {
            format!("host {host}, {name}")
        })
    }

    /// The number of the host with this name in the graph of a file.
    pub fn host_named(&self, name: &str) -> Option<u32> {
        let Network::Graph(key) = self else {
            return None;
        };
        let hosts = &key.graph().names().hosts;
        let at = hosts.iter().position(|known| known == name);
        at.map(|host| host as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::counts::Counts;
    use crate::network::path::Choice;
    use crate::network::{Shape, Topology};

    fn stops(shape: Shape, nodes: u32, to: u32) -> Vec<[String; 2]> {
        shape.check(nodes).unwrap();
        let network = Network::new(&shape, nodes);
        let path = network.path(0, to, Choice::ByDestination);
        let stops = network.stops(0, &path).into_iter();
        stops.map(|stop| [stop.link, stop.switch]).collect()
    }

    #[test]
    fn each_topology_names_the_switches_of_a_path() {
        let of = |topology, hosts, dimensions: &[u32], cables: &[u32]| Shape {
            topology,
            ports: 36,
            oversubscription: 1,
            hosts,
            dimensions: Counts::of(dimensions),
            cables: Counts::of(cables),
            ..Shape::default()
        };
        let tree = of(Topology::FatTree, None, &[], &[]);
        assert_eq!(stops(tree, 36, 5), [["host link", "switch"]]);
        assert_eq!(
            stops(tree, 72, 40),
            [
                ["host link", "leaf 0"],
                ["up, link 4", "top 0"],
                ["down, link 4", "leaf 2"]
            ]
        );
        let far = stops(tree, 1296, 1290);
        let names: Vec<&str> = far.iter().map(|[_, switch]| switch.as_str()).collect();
        assert_eq!(
            names,
            [
                "leaf 0",
                "pod 0, switch 12",
                "top 35",
                "pod 3, switch 12",
                "leaf 71"
            ]
        );
        let levels = of(Topology::FatTree, Some(18), &[18, 4], &[9, 3]);
        let far = stops(levels, 1296, 1290);
        let names: Vec<&str> = far.iter().map(|[_, switch]| switch.as_str()).collect();
        assert_eq!(
            names,
            [
                "leaf 0",
                "level 2, group 0, switch 3",
                "level 3, switch 21",
                "level 2, group 3, switch 3",
                "leaf 71"
            ]
        );
        let torus = of(Topology::Torus, Some(2), &[4, 3], &[2, 1]);
        assert_eq!(
            stops(torus, 24, 15),
            [
                ["host link", "switch (0, 0)"],
                ["along dimension 0, down, cable 1", "switch (3, 0)"],
                ["along dimension 1, up, cable 0", "switch (3, 1)"]
            ]
        );
        let grouped = of(Topology::Dragonfly, Some(2), &[3, 2], &[1, 1, 2]);
        assert_eq!(
            stops(grouped, 36, 35),
            [
                ["host link", "group 0, row 0, column 0"],
                ["in a column, cable 0", "group 0, row 1, column 0"],
                ["between groups, cable 1", "group 2, row 0, column 1"],
                ["in a column, cable 0", "group 2, row 1, column 1"],
                ["in a row, cable 0", "group 2, row 1, column 2"]
            ]
        );
        let balanced = Shape {
            ports: 8,
            ..of(Topology::Dragonfly, None, &[], &[])
        };
        let far = stops(balanced, 72, 70);
        let names: Vec<&str> = far.iter().map(|[_, switch]| switch.as_str()).collect();
        assert_eq!(
            (names[0], names[names.len() - 1]),
            ("group 0, switch 0", "group 8, switch 3")
        );
    }

    #[test]
    fn the_last_switch_of_a_path_is_that_of_its_host() {
        for (topology, hosts, dimensions, cables, nodes) in [
            (Topology::FatTree, None, &[][..], &[][..], 500),
            (Topology::FatTree, Some(5), &[4, 3], &[3, 2], 60),
            (Topology::Torus, Some(2), &[4, 3, 3], &[2], 72),
            (Topology::Mesh, Some(1), &[5, 4], &[1], 20),
            (Topology::Hypercube, Some(3), &[], &[3, 2], 48),
            (Topology::Dragonfly, Some(2), &[3, 2], &[1, 2, 5], 60),
            (Topology::Dragonfly, None, &[], &[], 800),
        ] {
            let shape = Shape {
                topology,
                ports: 24,
                oversubscription: 2,
                hosts,
                dimensions: Counts::of(dimensions),
                cables: Counts::of(cables),
                ..Shape::default()
            };
            shape.check(nodes).unwrap();
            let network = Network::new(&shape, nodes);
            for (from, to) in (0..nodes).map(|host| (host, host * 7 % nodes)) {
                let path = network.path(from, to, Choice::ByDestination);
                let stops = network.stops(from, &path);
                let last = stops.last().map(|stop| stop.switch.clone());
                let own = network.first_stop(to).map(|stop| stop.switch);
                assert_eq!(last, own, "{topology:?} {from} {to}");
            }
        }
    }
}
