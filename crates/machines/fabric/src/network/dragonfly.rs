//! Balanced dragonflies of one kind of switch (Kim, Dally, Scott, Abts, "Technology-Driven,
//! Highly-Scalable Dragonfly Topology", ISCA 2008), with minimal routes.
//!
//! A switch has *p* hosts. *2p* switches form a group. Each switch is linked with all others of its
//! group, and has *p* global links to other groups. All pairs of groups have equally many global
//! links.

use super::path::Choice;
use super::sketch::Sketch;
use super::stop::Stop;

/// The size of a balanced dragonfly network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// The number of hosts of a switch, which is also that of its global links.
    hosts: u64,
    groups: u64,
    /// The number of hosts of the network, rounded up to full groups.
    width: u64,
}

/// The number of hosts of a switch with `ports` ports: the other 3p - 1 ports are links to
/// switches.
const fn hosts(ports: u32) -> u64 {
    (ports as u64 + 1) / 4
}

impl Dragonfly {
    /// The greatest number of hosts of a dragonfly of switches with `ports` ports. It has one
    /// global link for each pair of groups.
    pub const fn room(ports: u32) -> u64 {
        let hosts = hosts(ports);
        2 * hosts * hosts * (2 * hosts * hosts + 1)
    }

    /// The dragonfly of `nodes` hosts. Panics for more than [`room`](Dragonfly::room) hosts; a
    /// checked system never has that many.
    pub fn new(nodes: u32, ports: u32) -> Dragonfly {
        let nodes = u64::from(nodes);
        assert!(
            nodes <= Dragonfly::room(ports),
            "{nodes} hosts on {ports} ports"
        );
        let hosts = hosts(ports);
        let group = 2 * hosts * hosts;
        Dragonfly {
            hosts,
            groups: nodes.div_ceil(group),
            width: nodes.next_multiple_of(group),
        }
    }

    /// The number of hosts that the groups have room for.
    pub(super) fn width(&self) -> u64 {
        self.width
    }

    /// The number of switches on the path between two hosts.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match from == to {
            true => 0,
            false => self.path(from.into(), to.into(), to.into()).count() as u32 - 1,
        }
    }

    /// The upper bound of link numbers: each link has a number below it. Links are directed, and
    /// those of hosts are included. Some numbers belong to no link.
    pub fn links(&self) -> u64 {
        let switches = self.width / self.hosts;
        2 * self.width + switches * self.switches() + switches * self.hosts
    }

    /// The directed links from one host to another, in order, as numbers below
    /// [`links`](Dragonfly::links). The destination host selects one of the global links between
    /// two groups.
    pub fn route(&self, from: u32, to: u32) -> impl Iterator<Item = u64> + use<> {
        self.route_by(from, to, Choice::ByDestination)
    }

    /// The directed links of one of the shortest paths, as [`route`](Dragonfly::route).
    pub(super) fn route_by(
        &self,
        from: u32,
        to: u32,
        choice: Choice,
    ) -> impl Iterator<Item = u64> + use<> {
        let (same, among) = (from == to, choice.among(to.into()));
        self.path(from.into(), to.into(), among)
            .filter(move |_| !same)
    }

    /// The number of shortest paths from one host to another that differ in their links.
    pub(super) fn choices(&self, from: u32, to: u32) -> u32 {
        let group = |host: u32| u64::from(host) / self.hosts / self.switches();
        match group(from) == group(to) {
            true => 1,
            false => (self.switches() * self.hosts / (self.groups - 1)) as u32,
        }
    }

    /// The number of virtual lanes with which packets cannot wait for each other in a cycle: one
    /// before and one behind the link between two groups.
    pub(super) fn lanes(&self) -> u32 {
        1 + u32::from(self.groups > 1)
    }

    /// The number of switches in each group of the network.
    fn switches(&self) -> u64 {
        2 * self.hosts
    }

    fn path(&self, from: u64, to: u64, among: u64) -> impl Iterator<Item = u64> + use<> {
        let own = *self;
        let (start, end) = (from / self.hosts, to / self.hosts);
        let [here, there] = [start, end].map(|switch| switch / own.switches());
        let gates =
            (here != there).then(|| [own.gate(here, there, among), own.gate(there, here, among)]);
        let links = match gates {
            None => [own.local(start, end), None, None],
            Some([out, into]) => [
                own.local(start, out / self.hosts),
                Some(own.global(out)),
                own.local(into / self.hosts, end),
            ],
        };
        let links = links.into_iter().flatten();
        let first = std::iter::once(from).chain(links);
        first.chain(std::iter::once(own.width + to))
    }

    /// The name of a host's switch: its number in its group.
    pub(super) fn switch_name(&self, host: u32) -> String {
        self.name(u64::from(host) / self.hosts)
    }

    fn name(&self, switch: u64) -> String {
        let (group, own) = (switch / self.switches(), switch % self.switches());
        format!("group {group}, switch {own}")
    }

    /// The outline of the dragonfly: a group is a row of switches.
    pub(super) fn sketch(&self) -> Sketch {
        let all = self.switches() * self.hosts;
        let between = all / (self.groups - 1).max(1);
        Sketch::Groups {
            groups: self.groups,
            sizes: [self.switches(), 1],
            cables: [1, 1, between],
            hosts: self.hosts,
        }
    }

    /// The end of a link between switches.
    pub(super) fn stop(&self, link: u64) -> Stop {
        let (number, each) = (link - 2 * self.width, self.switches());
        let locals = self.width / self.hosts * each;
        let Some(gate) = number.checked_sub(locals) else {
            let from = number / each;
            return Stop {
                switch: self.name(from - from % each + number % each),
                link: "within the group".into(),
            };
        };
        let all = each * self.hosts;
        let (group, own) = (gate / all, gate % all);
        let cables = all / (self.groups - 1);
        let (other, cable) = (own / cables, own % cables);
        let there = (group + 1 + other) % self.groups;
        Stop {
            switch: self.name(self.gate(there, group, cable) / self.hosts),
            link: format!("between groups, cable {cable}"),
        }
    }

    /// The number, among all global links, of a link that leads from one group to another: the one
    /// for traffic to the host `host`.
    fn gate(&self, from: u64, to: u64, host: u64) -> u64 {
        let all = self.switches() * self.hosts;
        // The number of the other group, counted from the group after this one.
        let other = (to + self.groups - from - 1) % self.groups;
        let each = all / (self.groups - 1);
        from * all + other * each + host % each
    }

    /// The directed link between two switches of a group, if they differ.
    fn local(&self, from: u64, to: u64) -> Option<u64> {
        let number = from * self.switches() + to % self.switches();
        (from != to).then_some(2 * self.width + number)
    }

    fn global(&self, gate: u64) -> u64 {
        let switches = self.width / self.hosts;
        2 * self.width + switches * self.switches() + gate
    }
}
