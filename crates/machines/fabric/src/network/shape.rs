//! The values of a rail's keys that determine its network, and their check.

use super::counts::{self, Counts};
use super::dragonfly::Dragonfly;
use super::graph::files::NetworkFile;
use super::graph::{Graph, GraphKey};
use super::grid::Grid;
use super::grouped::Grouped;
use super::levels::Levels;
use super::path::MOST_LINKS;
use super::topology::Topology;
use super::tree::Tree;
use crate::components::InvalidValue;
use crate::quantity::Quantity;

/// The greatest number of directed links of a fat tree with given levels.
const MOST_TREE_LINKS: u64 = 1 << 22;

/// The values of a rail's keys that determine its network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The topology.
    pub topology: Topology,
    /// The number of ports of a switch; 0: no switch.
    pub ports: u32,
    /// The number of hosts of a leaf switch for each of its links up.
    pub oversubscription: u32,
    /// The number of hosts of a switch; `None`: the usual one of the topology.
    pub hosts: Option<u32>,
    /// The switches along each dimension, or the columns and rows of a dragonfly's group.
    pub dimensions: Option<Counts>,
    /// The cables between two neighbours, by dimension; of a dragonfly between two switches of a
    /// row, of a column, and between two groups.
    pub cables: Option<Counts>,
    /// The file with the graph of the network, which then determines the topology.
    pub graph: Option<NetworkFile>,
    /// The file with the routes of the graph.
    pub routes: Option<NetworkFile>,
}

impl Shape {
    /// The number of cables of which there is one unless a key says otherwise.
    fn cables(&self) -> Counts {
        let one = Counts::of(&[1]);
        self.cables.or(one).expect("one number is valid")
    }

    pub(super) fn grid(&self, nodes: u32) -> Option<Grid> {
        let hosts = u64::from(self.hosts.unwrap_or(1).max(1));
        let sizes = match self.topology {
            Topology::Hypercube => Grid::cube(u64::from(nodes).div_ceil(hosts)),
            _ => self.dimensions,
        };
        let wraps = self.topology == Topology::Torus;
        sizes.map(|sizes| Grid::new(hosts, sizes, self.cables(), wraps))
    }

    /// The key of the graph that is the network; `None`: the topology determines the network.
    pub fn graph_key(&self) -> Option<GraphKey> {
        let key = |graph| GraphKey {
            graph,
            routes: self.routes,
        };
        self.graph.map(key)
    }

    fn graph(&self) -> Option<&'static Graph> {
        self.graph_key()?.find()
    }

    /// The fat tree with given levels, if the shape has them.
    pub(super) fn levels(&self) -> Option<Levels> {
        let below = self
            .dimensions
            .filter(|_| self.topology == Topology::FatTree)?;
        let hosts = u64::from(self.hosts.unwrap_or(1).max(1));
        Some(Levels::new(hosts, below, self.cables))
    }

    pub(super) fn grouped(&self, nodes: u32) -> Option<Grouped> {
        let sizes = self.dimensions?;
        let hosts = u64::from(self.hosts.unwrap_or(1).max(1));
        let [columns, rows] = [
            sizes.at(0),
            if sizes.as_slice().len() > 1 {
                sizes.at(1)
            } else {
                1
            },
        ];
        let cables = self.cables();
        Some(Grouped {
            hosts,
            columns,
            rows,
            cables: [cables.at(0), cables.at(1), cables.at(2)],
            groups: u64::from(nodes).div_ceil(hosts * columns * rows),
        })
    }

    /// The number of hosts for which a network of this shape has room. Without ports it is two
    /// hosts back to back.
    pub fn room(&self) -> u64 {
        match self.topology {
            _ if self.ports == 0 => 2,
            _ if self.graph.is_some() => self.graph().map_or(0, |graph| graph.hosts().into()),
            Topology::FatTree => match self.levels() {
                Some(levels) => levels.room(),
                None => Tree::room(self.ports, self.oversubscription),
            },
            Topology::Dragonfly if self.dimensions.is_none() => Dragonfly::room(self.ports),
            // A group has a port for each other group at least.
            Topology::Dragonfly => self.grouped(1).map_or(0, |one| {
                one.room() * (one.columns * one.rows * u64::from(self.ports) + 1)
            }),
            Topology::Hypercube => u64::from(self.hosts.unwrap_or(1)) << counts::MOST_DIMENSIONS,
            Topology::Torus | Topology::Mesh => self.grid(1).map_or(0, |grid| grid.room()),
        }
    }

    /// The ports that a switch of the network needs; 0: as many as it has.
    fn needs(&self, nodes: u32) -> u64 {
        match self.topology {
            _ if self.graph.is_some() => self.graph().map_or(0, |graph| graph.needs()),
            Topology::FatTree => self.levels().map_or(0, |levels| levels.needs()),
            Topology::Dragonfly => self.grouped(nodes).map_or(0, |network| {
                let [row, column, between] = network.cables;
                let switches = network.columns * network.rows;
                let global = (network.groups.saturating_sub(1) * between).div_ceil(switches);
                network.hosts + (network.columns - 1) * row + (network.rows - 1) * column + global
            }),
            _ => self.grid(nodes).map_or(0, |grid| grid.needs()),
        }
    }

    /// Checks the keys of the network of `nodes` hosts.
    pub fn check(&self, nodes: u32) -> Result<(), InvalidValue> {
        self.check_keys()?;
        if let Some(key) = self.graph_key() {
            key.load().map_err(|(key, why)| InvalidValue { key, why })?;
        }
        let is_graph = self.graph.is_some();
        InvalidValue::unless(is_graph || self.routes.is_none(), "routes", || {
            "routes are those of a graph from a file; name it: graph = \"FILE\"".into()
        })?;
        self.check_room(nodes)?;
        let needs = self.needs(nodes);
        InvalidValue::unless(needs <= u64::from(self.ports), "switch", || {
            format!(
                "the network needs switches with {needs} ports, and this one has {}",
                self.ports
            )
        })?;
        let links = self.levels().map_or(0, |levels| levels.links());
        InvalidValue::unless(is_graph || links <= MOST_TREE_LINKS, "dimensions", || {
            format!(
                "a tree with {} links between switches is not possible; at most {} are",
                links / 2,
                MOST_TREE_LINKS / 2
            )
        })?;
        let longest = match self.topology {
            _ if is_graph => 0,
            Topology::FatTree | Topology::Dragonfly => 0,
            _ => self.grid(nodes).map_or(0, |grid| grid.longest()),
        };
        let is_short = longest <= MOST_LINKS as u64 / 2;
        InvalidValue::unless(is_short, "dimensions", || {
            format!(
                "paths of {longest} links between switches are not possible; at most {} are",
                MOST_LINKS / 2
            )
        })
    }

    /// Checks that the keys fit the topology.
    fn check_keys(&self) -> Result<(), InvalidValue> {
        let is_graph = self.graph.is_some();
        let is_grid = matches!(self.topology, Topology::Torus | Topology::Mesh);
        let has_sizes = is_graph || !is_grid || self.dimensions.is_some();
        InvalidValue::unless(has_sizes, "dimensions", || {
            format!(
                "a {} needs the number of its switches along each dimension, such as \"4x4x4\"",
                self.topology.show()
            )
        })?;
        let has_parts = self.hosts.is_some() || self.dimensions.is_some() || self.cables.is_some();
        let is_direct = self.topology == Topology::FatTree && !has_parts && !is_graph;
        InvalidValue::unless(self.ports > 0 || is_direct, "topology", || {
            "hosts back to back have no network of switches; name a switch".into()
        })?;
        if is_graph {
            return Ok(());
        }
        let has_levels = self.dimensions.is_some() || !has_parts;
        InvalidValue::unless(
            self.topology != Topology::FatTree || has_levels,
            "switch_hosts",
            || {
                "a fat tree without dimensions follows from the ports of its switches and from oversubscription: give dimensions, the \
             switches below a switch of each level from the second on, such as \"18x12\", or leave switch_hosts and cables out"
                .into()
            },
        )?;
        let is_cube = self.topology == Topology::Hypercube && self.dimensions.is_some();
        InvalidValue::unless(!is_cube, "dimensions", || {
            "the dimensions of a hypercube follow from its hosts; leave them out".into()
        })?;
        let is_flat = self
            .dimensions
            .is_none_or(|sizes| sizes.as_slice().len() <= 2);
        InvalidValue::unless(
            self.topology != Topology::Dragonfly || is_flat,
            "dimensions",
            || "a group of a dragonfly has columns and rows, such as \"16x6\"".into(),
        )
    }

    /// Checks that the network has room for `nodes` hosts.
    fn check_room(&self, nodes: u32) -> Result<(), InvalidValue> {
        let (room, ports) = (self.room(), self.ports);
        let is_there = (2..=room).contains(&u64::from(nodes));
        InvalidValue::unless(is_there, "nodes", || match self.topology {
            _ if ports == 0 => format!(
                "{nodes} hosts cannot be connected back to back; name a switch, or set nodes = 2"
            ),
            _ if self.graph.is_some() => {
                format!("the graph has {room} hosts, not {nodes}; valid are 2 to {room}")
            }
            Topology::FatTree if self.dimensions.is_some() => {
                format!(
                    "a fat tree of these levels has {room} hosts, not {nodes}; valid are 2 to {room}"
                )
            }
            Topology::FatTree => format!(
                "three levels of {ports}-port switches cannot connect {nodes} hosts; valid are 2 to {room}"
            ),
            _ => format!(
                "a {} of {ports}-port switches cannot connect {nodes} hosts; valid are 2 to {room}",
                self.topology.show(),
            ),
        })
    }
}
