//! Fat trees of one kind of switch. A tree has the smallest number of levels that connects its
//! hosts. A leaf switch may have fewer links up than hosts (over-subscription); above the leaves no
//! level is narrower than the one below.

use super::path::Choice;
use super::sketch::Layer;
use super::stop::Stop;

/// A fat tree of up to three levels, or two hosts without a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The number of hosts of a leaf switch, and that of its links up.
    leaf: [u64; 2],
    /// The number of links down of a switch between leaf and top, which is also that of its links
    /// up.
    half: u64,
    levels: u32,
    /// The number of hosts, rounded up to full groups below the top level. It is also the number of
    /// link numbers of one level and direction.
    width: u64,
}

/// The number of hosts of a leaf switch with `ports` ports, and that of its links up, for
/// `oversubscription` hosts for each link up.
const fn leaf(ports: u32, oversubscription: u32) -> [u64; 2] {
    let up = (ports / (oversubscription + 1)) as u64;
    let up = if up == 0 && ports > 0 { 1 } else { up };
    [ports as u64 - up, up]
}

impl Tree {
    /// The greatest number of hosts that three levels of switches with `ports` ports can connect.
    pub const fn room(ports: u32, oversubscription: u32) -> u64 {
        match ports {
            0 => 2,
            ports => Self::room_of(3, ports as u64, leaf(ports, oversubscription)[0]),
        }
    }

    /// The greatest number of hosts of a tree with `levels` levels, whose leaf switches have
    /// `hosts` hosts: a top switch has a link to each of up to `ports` groups.
    const fn room_of(levels: u32, ports: u64, hosts: u64) -> u64 {
        match levels {
            1 => ports,
            2 => ports * hosts,
            _ => ports * (ports / 2) * hosts,
        }
    }

    /// The smallest tree for `nodes` hosts. Panics for more than [`room`](Tree::room) hosts; a
    /// checked system never has that many.
    pub fn new(nodes: u32, ports: u32, oversubscription: u32) -> Tree {
        let nodes = u64::from(nodes);
        assert!(
            nodes <= Tree::room(ports, oversubscription),
            "{nodes} hosts on {ports} ports"
        );
        let leaf = leaf(ports, oversubscription);
        let room = |levels: &u32| nodes <= Tree::room_of(*levels, ports.into(), leaf[0]);
        let levels = match ports {
            0 => 0,
            _ => (1..=3).find(room).unwrap_or(3),
        };
        let mut tree = Tree {
            leaf,
            half: u64::from(ports / 2),
            levels,
            width: nodes,
        };
        tree.width = nodes.next_multiple_of(tree.group(levels.saturating_sub(1)));
        tree
    }

    /// The number of levels of switches; 0: two hosts without a switch.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// The number of hosts that the leaf switches have room for.
    pub(super) fn width(&self) -> u64 {
        self.width
    }

    /// The number of hosts below a group of connected switches of levels 1 to `level`.
    fn group(&self, level: u32) -> u64 {
        match level {
            0 => 1,
            1 => self.leaf[0],
            _ => self.leaf[0] * self.half.pow(level - 1),
        }
    }

    /// The number of switches. The top level has only as many as the links up to it need.
    pub fn switches(&self) -> u64 {
        let leaves = self.leaves();
        let up = leaves * self.leaf[1];
        let top = up.div_ceil(2 * self.half.max(1));
        match self.levels {
            0 => 0,
            1 => 1,
            2 => leaves + top,
            _ => leaves + up.div_ceil(self.half) + top,
        }
    }

    /// The number of cables between switches. All levels have equally many: no level is narrower
    /// than the one below.
    pub fn inner_cables(&self) -> u64 {
        self.leaves() * self.leaf[1] * u64::from(self.levels.saturating_sub(1))
    }

    fn leaves(&self) -> u64 {
        self.width.div_ceil(self.leaf[0].max(1))
    }

    /// The number of switches on the path between two hosts: up to the lowest switch above both,
    /// and down.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match (from == to, self.climb(from, to)) {
            (true, _) | (_, 0) => 0,
            (false, level) => 2 * level - 1,
        }
    }

    /// The lowest level at which one group of switches is above both hosts.
    fn climb(&self, from: u32, to: u32) -> u32 {
        let (from, to) = (u64::from(from), u64::from(to));
        (1..self.levels)
            .find(|&level| from / self.group(level) == to / self.group(level))
            .unwrap_or(self.levels)
    }

    /// The upper bound of link numbers: each link has a number below it. Links are directed, and
    /// those of hosts are included. Where groups are not full, some numbers belong to no link.
    pub fn links(&self) -> u64 {
        2 * self.width * u64::from(self.levels.max(1))
    }

    /// The directed links from one host to another, in order, as numbers below
    /// [`links`](Tree::links).
    ///
    /// A route depends on the destination alone, as a subnet manager computes routes for a fat tree
    /// (D-mod-K): without over-subscription all traffic to one host comes down on links that only
    /// this host uses, and in a shift pattern no two flows share a link.
    pub fn route(&self, from: u32, to: u32) -> impl Iterator<Item = u64> + use<> {
        self.route_by(from, to, Choice::ByDestination)
    }

    /// The directed links of one of the shortest paths, as [`route`](Tree::route).
    pub(super) fn route_by(
        &self,
        from: u32,
        to: u32,
        choice: Choice,
    ) -> impl Iterator<Item = u64> + use<> {
        let [hosts, up] = self.leaf;
        // The host to which the destination's route has the links of this number.
        let among = match choice {
            Choice::ByDestination => to.into(),
            Choice::Number(number) => {
                let number = u64::from(number);
                number / up.max(1) % self.half.max(1) * hosts + number % up.max(1)
            }
        };
        let (tree, top) = match from == to {
            true => (*self, 0),
            false => (*self, self.climb(from, to)),
        };
        let direct = u32::from(top == 0 && from != to && self.levels == 0);
        let (from, to) = (u64::from(from), u64::from(to));
        let up = (0..top + direct).map(move |level| tree.link(level, false, from, among));
        let down = (0..top)
            .rev()
            .map(move |level| tree.link(level, true, to, among));
        up.chain(down)
    }

    /// The number of shortest paths from one host to another that differ in their links.
    pub(super) fn choices(&self, from: u32, to: u32) -> u32 {
        match self.climb(from, to) {
            0 | 1 => 1,
            2 => self.leaf[1] as u32,
            _ => (self.leaf[1] * self.half) as u32,
        }
    }

    /// The number of the link between level `level` and the next, on the route to the host `to`.
    /// The link belongs to the group of switches above the host `below`.
    fn link(&self, level: u32, is_down: bool, below: u64, to: u64) -> u64 {
        let group = self.group(level);
        let number = below / group * group + self.lane(level, to);
        u64::from(2 * level + u32::from(is_down)) * self.width + number
    }

    /// The name of a host's leaf switch.
    pub(super) fn leaf_name(&self, host: u32) -> String {
        let own = u64::from(host) / self.leaf[0];
        match self.levels {
            1 => "switch".into(),
            _ => format!("leaf {own}"),
        }
    }

    /// The levels of switches, from the leaves on.
    pub(super) fn layers(&self) -> Vec<Layer> {
        let leaves = self.leaves();
        let up = leaves * self.leaf[1];
        let (middle, top) = (
            up.div_ceil(self.half.max(1)),
            up.div_ceil(2 * self.half.max(1)),
        );
        let switches = match self.levels {
            1 => vec![1],
            2 => vec![leaves, top],
            _ => vec![leaves, middle, top],
        };
        let last = switches.len() - 1;
        let layer = |(at, switches): (usize, u64)| Layer {
            switches,
            hosts: match (at, last) {
                (0, 0) => self.width,
                (0, _) => self.leaf[0],
                _ => 0,
            },
            up: if at == last {
                0
            } else {
                [self.leaf[1], self.half][at.min(1)]
            },
            cables: if at == last { 0 } else { up },
            within: 0,
        };
        switches.into_iter().enumerate().map(layer).collect()
    }

    /// The end of a link between switches.
    pub(super) fn stop(&self, link: u64) -> Stop {
        let level = (link / self.width / 2) as u32;
        let is_down = link / self.width % 2 == 1;
        let (below, lane) = (
            link % self.width / self.group(level),
            link % self.width % self.group(level),
        );
        let [hosts, up] = self.leaf;
        let pods = self.width.div_ceil(hosts * self.half.max(1));
        let switch = match (level, is_down) {
            (1, true) => format!("leaf {below}"),
            (2, true) => format!("pod {below}, switch {}", lane % up),
            (1, false) if self.levels > 2 => {
                format!("pod {}, switch {lane}", below / self.half)
            }
            _ => {
                // The links up of one number, those of all groups, lead to one switch.
                let (lanes, groups) = match self.levels {
                    2 => (up, self.leaves()),
                    _ => (up * self.half, pods),
                };
                let tops = (lanes * groups).div_ceil(2 * self.half.max(1));
                format!("top {}", lane * tops / lanes)
            }
        };
        let direction = if is_down { "down" } else { "up" };
        let number = if level == 2 { lane / up } else { lane };
        let link = format!("{direction}, link {number}");
        Stop { switch, link }
    }

    /// The number, among the links up from a group, of the link on the route to a host.
    fn lane(&self, level: u32, to: u64) -> u64 {
        let [hosts, up] = self.leaf;
        match level {
            0 => 0,
            1 => to % hosts % up,
            _ => to / hosts % self.half * up + to % hosts % up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_as_many_switches_and_cables_as_its_hosts_need() {
        // The columns are hosts, ports of a switch, switches, cables between switches.
        for (hosts, ports, switches, cables) in [
            (2, 0, 0, 0),
            (16, 36, 1, 0),
            (36, 36, 1, 0),
            (37, 36, 3 + 2, 3 * 18),
            (72, 36, 4 + 2, 72),
            (648, 36, 36 + 18, 648),
            (16, 4, 8 + 8 + 4, 32),
        ] {
            let tree = Tree::new(hosts, ports, 1);
            assert_eq!(
                (tree.switches(), tree.inner_cables()),
                (switches, cables),
                "{hosts} hosts"
            );
        }
    }
}
