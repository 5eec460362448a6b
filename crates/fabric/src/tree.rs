//! Fat trees of one kind of switch. Each level has as many links up as down, so no level is
//! narrower than the one below. A tree has the smallest number of levels that connects its hosts.

/// A fat tree of up to three levels, or two hosts without a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Links down from a leaf, and as many up.
    half: u64,
    levels: u32,
    /// The number of hosts, rounded up to whole groups below the top level. Links of one level and
    /// direction are numbered below it.
    width: u64,
}

impl Tree {
    /// The most hosts that three levels of switches with `ports` ports can connect.
    pub const fn room(ports: u32) -> u64 {
        match ports {
            0 => 2,
            ports => Self::room_of(3, ports as u64 / 2),
        }
    }

    const fn room_of(levels: u32, half: u64) -> u64 {
        2 * half.pow(levels)
    }

    /// The smallest tree for `nodes` hosts. Panics for more than [`room`](Tree::room) hosts; a
    /// checked system never has that many.
    pub fn new(nodes: u32, ports: u32) -> Tree {
        let (nodes, half) = (u64::from(nodes), u64::from(ports / 2));
        assert!(nodes <= Tree::room(ports), "{nodes} hosts on {ports} ports");
        let levels = match half {
            0 => 0,
            _ => (1..=3)
                .find(|&levels| nodes <= Tree::room_of(levels, half))
                .unwrap_or(3),
        };
        let group = half.max(1).pow(levels.saturating_sub(1));
        Tree {
            half,
            levels,
            width: nodes.next_multiple_of(group),
        }
    }

    /// The number of levels of switches.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// The number of switches, with a top level just wide enough for the links up to it.
    pub fn switches(&self) -> u64 {
        let leaves = self.leaves();
        match self.levels {
            0 => 0,
            levels => leaves * u64::from(levels - 1) + self.top(leaves),
        }
    }

    /// The number of cables between switches.
    pub fn inner_cables(&self) -> u64 {
        match self.levels {
            0 => 0,
            levels => self.leaves() * self.half * u64::from(levels - 1),
        }
    }

    /// The number of switches of each level below the top.
    fn leaves(&self) -> u64 {
        self.width.div_ceil(self.half.max(1))
    }

    fn top(&self, leaves: u64) -> u64 {
        match self.levels {
            1 => 1,
            _ => leaves.div_ceil(2),
        }
    }

    /// The number of switches between two hosts: up to the lowest switch above both, and down.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match (from == to, self.climb(from, to)) {
            (true, _) | (_, 0) => 0,
            (false, level) => 2 * level - 1,
        }
    }

    /// The lowest level with a switch above both hosts.
    fn climb(&self, from: u32, to: u32) -> u32 {
        let (from, to) = (u64::from(from), u64::from(to));
        (1..self.levels)
            .find(|&level| from / self.half.pow(level) == to / self.half.pow(level))
            .unwrap_or(self.levels)
    }

    /// The range of link numbers: directed links, those of hosts included. Where groups are not
    /// full, some numbers belong to no link.
    pub fn links(&self) -> u64 {
        2 * self.width * u64::from(self.levels.max(1))
    }

    /// The directed links from one host to another, in order, as numbers below
    /// [`links`](Tree::links).
    ///
    /// Routes depend on the destination alone, as a subnet manager computes them for a fat tree:
    /// all traffic to one host comes down on links that only this host uses, and in a shift pattern
    /// no two flows share a link.
    pub fn route(&self, from: u32, to: u32) -> impl Iterator<Item = u64> + use<> {
        let (from, to, width) = (u64::from(from), u64::from(to), self.width);
        let top = match from == to {
            true => 0,
            false => u64::from(self.climb(from as u32, to as u32)),
        };
        let direct = u64::from(top == 0 && from != to && self.levels == 0);
        let half = self.half;
        // The number of an upward link: the switch below it and the destination's digit. Level 0 is
        // the host's own link.
        let up = (0..top + direct).map(move |level| {
            let below = half.max(1).pow(level as u32);
            let link = match level {
                0 => from,
                _ => from / below * below + to % below,
            };
            2 * level * width + link
        });
        let down = (0..top)
            .rev()
            .map(move |level| (2 * level + 1) * width + to);
        up.chain(down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_as_many_switches_and_cables_as_its_hosts_need() {
        // Hosts, ports of a switch, switches, cables between switches.
        for (hosts, ports, switches, cables) in [
            (2, 0, 0, 0),
            (16, 36, 1, 0),
            (36, 36, 1, 0),
            (37, 36, 3 + 2, 3 * 18),
            (72, 36, 4 + 2, 72),
            (648, 36, 36 + 18, 648),
            (16, 4, 8 + 8 + 4, 32),
        ] {
            let tree = Tree::new(hosts, ports);
            assert_eq!(
                (tree.switches(), tree.inner_cables()),
                (switches, cables),
                "{hosts} hosts"
            );
        }
    }
}
