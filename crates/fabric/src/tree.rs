//! Fat trees of one kind of switch: as many links up as down at each level, so that no level is narrower than the one
//! below. The smallest number of levels that has room is taken.

/// A fat tree of up to three levels, or two hosts without a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Links down of a leaf, and as many up.
    half: u64,
    levels: u32,
    /// Hosts that would fill the last group below the top level; links of one level and direction are numbered below it.
    width: u64,
}

impl Tree {
    /// Hosts that three levels of switches with `ports` ports can have: each level halves what is left for hosts.
    pub const fn room(ports: u32) -> u64 {
        match ports {
            0 => 2,
            ports => Self::room_of(3, ports as u64 / 2),
        }
    }

    const fn room_of(levels: u32, half: u64) -> u64 {
        2 * half.pow(levels)
    }

    /// Panics where the hosts are more than `room`; a system that passed its check never has so many.
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

    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Switches on the way from one host to another: up to the lowest switch above both, and down.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match (from == to, self.climb(from, to)) {
            (true, _) | (_, 0) => 0,
            (false, level) => 2 * level - 1,
        }
    }

    /// The level whose switches stand above both hosts.
    fn climb(&self, from: u32, to: u32) -> u32 {
        let (from, to) = (u64::from(from), u64::from(to));
        (1..self.levels)
            .find(|&level| from / self.half.pow(level) == to / self.half.pow(level))
            .unwrap_or(self.levels)
    }

    /// Numbers of directed links of the tree, hosts' own included; where groups are not full some are of no link.
    pub fn links(&self) -> u64 {
        2 * self.width * u64::from(self.levels.max(1))
    }

    /// The directed links from one host to another, in order, as numbers below `links()`. Routes depend on the
    /// destination alone, as a subnet manager computes them for a fat tree: all that goes to one host comes down on
    /// links of that host's own, and a shift pattern meets no other flow.
    pub fn route(&self, from: u32, to: u32) -> impl Iterator<Item = u64> + use<> {
        let (from, to, width) = (u64::from(from), u64::from(to), self.width);
        let top = match from == to {
            true => 0,
            false => u64::from(self.climb(from as u32, to as u32)),
        };
        let direct = u64::from(top == 0 && from != to && self.levels == 0);
        let half = self.half;
        // A link up at a level is named by the switch below it and the destination's digit; level 0 is the host's own.
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
