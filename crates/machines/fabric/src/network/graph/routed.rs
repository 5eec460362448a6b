//! A graph with its routes.

use std::sync::OnceLock;

use super::cabling::{Cabling, GraphLink};
use super::walk;
use crate::network::path::{Choice, Path};

/// The origin of the routes of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The routes are shortest paths, spread over equal ones.
    Shortest,
    /// The routes go up and then down a tree that spans the switches, because the shortest paths
    /// would have a cycle of dependencies.
    UpDown,
    /// A file has the routes.
    Given,
}

/// The names of a graph's parts, which only the process has that has read the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The name of each host.
    pub hosts: Vec<String>,
    /// The name of each switch.
    pub switches: Vec<String>,
}

/// The shortest paths between the switches of a graph.
#[derive(Clone, Debug)]
struct Shortest {
    /// For each pair of switches the number of links, the destination first.
    lengths: Vec<u8>,
    /// For each pair of switches the number of paths, the destination first.
    paths: Vec<u32>,
}

/// A graph with its routes.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(super) cabling: Cabling,
    /// For each host and switch the link of the route to the host, as a number among the switch's.
    pub(super) table: Vec<u8>,
    /// The virtual lane of the routes to the hosts of each switch.
    pub(super) lanes: Vec<u8>,
    pub(super) rule: Rule,
    names: Names,
    shortest: OnceLock<Shortest>,
}

impl Graph {
    /// The graph with these routes and lanes.
    pub(super) fn new(
        cabling: Cabling,
        (table, lanes): (Vec<u8>, Vec<u8>),
        rule: Rule,
        names: Names,
    ) -> Graph {
        Graph {
            cabling,
            table,
            lanes,
            rule,
            names,
            shortest: OnceLock::new(),
        }
    }

    /// The number of hosts.
    pub fn hosts(&self) -> u32 {
        self.cabling.homes.len() as u32
    }

    /// The number of switches.
    pub fn switches(&self) -> u32 {
        self.cabling.switches() as u32
    }

    /// The directed links between switches, in the order of their numbers.
    pub fn links(&self) -> &[GraphLink] {
        &self.cabling.links
    }

    /// The origin of the routes.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The number of virtual lanes that the routes need, so that no cycle of waits is possible.
    pub fn lanes(&self) -> u32 {
        self.lanes
            .iter()
            .max()
            .map_or(1, |lane| u32::from(*lane) + 1)
    }

    /// The number of hosts of each switch.
    pub fn hosts_of_switches(&self) -> Vec<u32> {
        self.cabling.hosts_of_switches()
    }

    /// The virtual lane of the route to a host.
    pub fn lane(&self, to: u32) -> u8 {
        self.lanes[self.home(to) as usize]
    }

    /// The switch of a host.
    pub fn home(&self, host: u32) -> u32 {
        self.cabling.homes[host as usize].0
    }

    /// The port of a host at its switch.
    pub fn host_port(&self, host: u32) -> u8 {
        self.cabling.homes[host as usize].1
    }

    /// The names of hosts and switches; empty in a process that has not read the file.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The name of a switch: that of the file, or its number.
    pub fn switch_name(&self, switch: u32) -> String {
        let name = self.names.switches.get(switch as usize);
        name.map_or(format!("switch {switch}"), String::clone)
    }

    /// The greatest number of ports in use at a switch.
    pub fn needs(&self) -> u64 {
        let hosts = self.cabling.hosts_of_switches();
        let used = (0..self.switches()).zip(hosts);
        let used =
            used.map(|(switch, hosts)| self.cabling.of(switch).len() as u64 + u64::from(hosts));
        used.max().unwrap_or(0)
    }

    /// The number of switches on the path between two hosts.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match from == to {
            true => 0,
            false => self.route(from, to).count() as u32 + 1,
        }
    }

    /// The number of shortest paths from one host to another that differ in their links.
    pub fn choices(&self, from: u32, to: u32) -> u32 {
        let (from, to) = (self.home(from) as usize, self.home(to) as usize);
        self.shortest().paths[to * self.cabling.switches() + from]
    }

    /// The links between switches from one host to another: those of its route, or the shortest
    /// path with a number.
    pub fn path(&self, from: u32, to: u32, choice: Choice) -> Path {
        match choice {
            Choice::ByDestination => self.route(from, to).map(u64::from).collect(),
            Choice::Number(number) => self.numbered(self.home(from), self.home(to), number),
        }
    }

    /// The links of the route from one host to another, as the table has them.
    fn route(&self, from: u32, to: u32) -> impl Iterator<Item = u32> {
        let end = self.home(to);
        let column = to as usize * self.cabling.switches();
        let mut switch = self.home(from);
        std::iter::from_fn(move || {
            if switch == end {
                return None;
            }
            let number = self.table[column + switch as usize];
            let link = self.cabling.first[switch as usize] + u32::from(number);
            switch = self.cabling.links[link as usize].to;
            Some(link)
        })
    }

    fn numbered(&self, from: u32, to: u32, number: u32) -> Path {
        let shortest = self.shortest();
        let row = to as usize * self.cabling.switches();
        let (lengths, paths) = (&shortest.lengths[row..], &shortest.paths[row..]);
        let mut rest = number % paths[from as usize].max(1);
        let (mut path, mut switch) = (Path::default(), from);
        while switch != to {
            let first = self.cabling.first[switch as usize];
            let left = lengths[switch as usize];
            let links = self.cabling.of(switch).iter().enumerate();
            let mut nearer = links.filter(|(_, link)| lengths[link.to as usize] + 1 == left);
            let chosen = nearer.find(|(_, link)| {
                let behind = paths[link.to as usize];
                let is_here = rest < behind;
                rest -= if is_here { 0 } else { behind };
                is_here
            });
            let Some((at, link)) = chosen else { break };
            path.push(u64::from(first) + at as u64);
            switch = link.to;
        }
        path
    }

    /// The shortest paths, which are computed when a route is first chosen among them.
    fn shortest(&self) -> &Shortest {
        self.shortest.get_or_init(|| {
            let switches = self.cabling.switches();
            let (mut lengths, mut paths) = (Vec::new(), Vec::new());
            for to in 0..switches as u32 {
                let (own, order) = walk::lengths(&self.cabling, to);
                let mut counts = vec![0u32; switches];
                counts[to as usize] = 1;
                for switch in order.into_iter().skip(1) {
                    let left = own[switch as usize];
                    let nearer = self.cabling.of(switch).iter();
                    let nearer = nearer.filter(|link| own[link.to as usize] + 1 == left);
                    counts[switch as usize] =
                        nearer.fold(0, |sum, link| sum.saturating_add(counts[link.to as usize]));
                }
                lengths.extend(own.iter().map(|length| (*length).min(254) as u8));
                paths.extend(counts);
            }
            Shortest { lengths, paths }
        })
    }
}
