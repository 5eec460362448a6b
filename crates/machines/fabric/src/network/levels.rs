//! Fat trees with given levels: extended generalised fat trees (Öhring, Ibel, Das, Kumar, "On
//! Generalized Fat Trees", IPPS 1995). Each level has its own number of switches below a switch and
//! of links up, so a tree may be narrower from level to level.
//!
//! A switch of a level is named by its group, the switches below one switch of the next level, and
//! by its position among the switches that stand above the same leaves.

use super::counts::{Counts, MOST_DIMENSIONS};
use super::path::{Choice, Path};
use super::stop::Stop;

/// A fat tree with given levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The number of hosts of a leaf switch.
    hosts: u64,
    /// The number of switches of the level below that a switch has, from the second level on.
    below: Counts,
    /// The number of links up of a switch, from the leaves on.
    up: Counts,
}

/// A switch of a fat tree with given levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSwitch {
    /// The number of the switch's level, counted from 1.
    pub level: usize,
    /// The number of the group of leaves below the switch.
    pub group: u64,
    /// The number of the switch among those above the same leaves.
    pub position: u64,
}

impl std::fmt::Display for LevelSwitch {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let LevelSwitch {
            level,
            group,
            position,
        } = self;
        match level {
            1 => write!(f, "leaf {group}"),
            _ => write!(f, "level {level}, group {group}, switch {position}"),
        }
    }
}

impl Levels {
    /// The tree of leaf switches with `hosts` hosts. Without `up` each level has as many links up
    /// as down.
    pub fn new(hosts: u64, below: Counts, up: Option<Counts>) -> Levels {
        let hosts = hosts.max(1);
        let levels = below.as_slice().len();
        let usual = |level: usize| match level {
            0 => hosts.min(255) as u32,
            _ => below.at(level - 1) as u32,
        };
        let usual: Vec<u32> = (0..levels).map(usual).collect();
        let up = up.or(Counts::of(&usual)).unwrap_or(below);
        Levels { hosts, below, up }
    }

    /// The number of levels of switches.
    pub fn levels(&self) -> usize {
        self.below.as_slice().len() + 1
    }

    /// The number of hosts of a leaf switch.
    pub fn hosts(&self) -> u64 {
        self.hosts
    }

    /// The number of links up of a switch of a level, counted from 1; 0 at the top.
    pub fn links_up(&self, level: usize) -> u64 {
        match level < self.levels() {
            true => self.up.at(level - 1),
            false => 0,
        }
    }

    /// The number of switches, or at level 1 hosts, below a switch of a level.
    pub fn links_down(&self, level: usize) -> u64 {
        match level {
            1 => self.hosts,
            _ => self.below.at(level - 2),
        }
    }

    /// The number of leaf switches below a switch of a level.
    fn leaves(&self, level: usize) -> u64 {
        let below = (0..level - 1).map(|at| self.below.at(at));
        below.fold(1, u64::saturating_mul)
    }

    /// The number of switches of a level that stand above the same leaves.
    fn width(&self, level: usize) -> u64 {
        let up = (0..level - 1).map(|at| self.up.at(at));
        up.fold(1, u64::saturating_mul)
    }

    /// The number of switches of a level.
    pub fn switches(&self, level: usize) -> u64 {
        let groups = self.leaves(self.levels()) / self.leaves(level);
        groups.saturating_mul(self.width(level))
    }

    /// The number of hosts that the tree has room for.
    pub fn room(&self) -> u64 {
        self.hosts.saturating_mul(self.leaves(self.levels()))
    }

    /// The number of ports that a switch needs.
    pub fn needs(&self) -> u64 {
        let ports = |level| self.links_down(level) + self.links_up(level);
        (1..=self.levels()).map(ports).max().unwrap_or(0)
    }

    /// The number of links up from a level.
    fn links_of(&self, level: usize) -> u64 {
        self.switches(level).saturating_mul(self.links_up(level))
    }

    /// The number of the first link up from a level. Links down follow those up.
    fn first(&self, level: usize) -> u64 {
        (1..level).fold(0, |sum, below| sum.saturating_add(2 * self.links_of(below)))
    }

    /// The upper bound of link numbers.
    pub fn links(&self) -> u64 {
        self.first(self.levels())
    }

    /// The number of switches on the path between two hosts.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        match from == to {
            true => 0,
            false => 2 * self.climb(from, to) as u32 - 1,
        }
    }

    /// The number of the lowest level with a switch above both hosts.
    fn climb(&self, from: u32, to: u32) -> usize {
        let [from, to] = [from, to].map(|host| u64::from(host) / self.hosts);
        let meets = |level: &usize| from / self.leaves(*level) == to / self.leaves(*level);
        (1..=self.levels()).find(meets).unwrap_or(self.levels())
    }

    /// The number of shortest paths from one host to another.
    pub fn choices(&self, from: u32, to: u32) -> u32 {
        let paths = self.width(self.climb(from, to));
        paths.min(u64::from(u32::MAX)) as u32
    }

    /// The links between switches on a path from one host to another. A destination selects the
    /// links up by its digits to the base of the numbers of links up (Zahavi, "D-Mod-K
    /// Routing Providing Non-Blocking Traffic for Shift Permutations", 2010).
    pub fn path(&self, from: u32, to: u32, choice: Choice) -> Path {
        let top = self.climb(from, to);
        let mut rest = choice.among(u64::from(to));
        let (start, end) = (u64::from(from) / self.hosts, u64::from(to) / self.hosts);
        let (mut up, mut down) = ([0; MOST_DIMENSIONS], [0; MOST_DIMENSIONS]);
        let mut position = 0;
        for level in 1..top {
            let (links, width) = (self.links_up(level), self.width(level));
            let chosen = rest % links;
            rest /= links;
            let link = |leaf: u64| (leaf / self.leaves(level) * width + position) * links + chosen;
            up[level - 1] = self.first(level) + link(start);
            down[level - 1] = self.first(level) + self.links_of(level) + link(end);
            position += width * chosen;
        }
        let up = up.into_iter().take(top - 1);
        let down = down.into_iter().take(top - 1).rev();
        up.chain(down).collect()
    }

    /// The leaf switch of a host.
    pub fn leaf(&self, host: u32) -> LevelSwitch {
        LevelSwitch {
            level: 1,
            group: u64::from(host) / self.hosts,
            position: 0,
        }
    }

    /// The end of a link, with names.
    pub(super) fn stop(&self, link: u64) -> Stop {
        let end = self.end(link);
        let level = (1..self.levels()).find(|level| link < self.first(level + 1));
        let level = level.unwrap_or(1);
        let number = (link - self.first(level)) % self.links_up(level);
        let direction = if end.level == level { "down" } else { "up" };
        let switch = match end.level == self.levels() {
            true => format!("level {}, switch {}", end.level, end.position),
            false => end.to_string(),
        };
        let link = format!("{direction}, link {number}");
        Stop { switch, link }
    }

    /// The switch at the end of a link.
    pub fn end(&self, link: u64) -> LevelSwitch {
        let of = |level: &usize| link < self.first(level + 1);
        let level = (1..self.levels()).find(of).unwrap_or(1);
        let (number, links) = (link - self.first(level), self.links_up(level));
        let (number, is_down) = match number.checked_sub(self.links_of(level)) {
            Some(number) => (number, true),
            None => (number, false),
        };
        let (lower, chosen, width) = (number / links, number % links, self.width(level));
        let (group, position) = (lower / width, lower % width);
        match is_down {
            true => LevelSwitch {
                level,
                group,
                position,
            },
            false => LevelSwitch {
                level: level + 1,
                group: group / self.below.at(level - 1),
                position: position + width * chosen,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn levels(hosts: u64, below: &[u32], up: &[u32]) -> Levels {
        Levels::new(hosts, Counts::of(below).unwrap(), Counts::of(up))
    }

    #[test]
    fn a_tree_has_the_switches_and_ports_of_its_levels() {
        let director = levels(18, &[36], &[18]);
        assert_eq!((director.room(), director.needs()), (648, 36));
        assert_eq!([1, 2].map(|level| director.switches(level)), [36, 18]);
        let narrow = levels(24, &[18, 12], &[12, 9]);
        assert_eq!((narrow.room(), narrow.needs()), (24 * 18 * 12, 36));
        assert_eq!([1, 2, 3].map(|at| narrow.switches(at)), [216, 144, 108]);
        assert_eq!(levels(18, &[18, 36], &[]).switches(3), 18 * 18);
        assert_eq!(narrow.choices(0, 24), 12);
        assert_eq!(narrow.choices(0, 24 * 18), 108);
        assert_eq!([0, 1, 24, 432].map(|to| narrow.hops(0, to)), [0, 1, 3, 5]);
    }

    #[test]
    fn each_path_is_a_walk_from_leaf_to_leaf() {
        let tree = levels(4, &[3, 2], &[2, 3]);
        for (from, to) in (0..24).flat_map(|from| (0..24).map(move |to| (from, to))) {
            let mut all = BTreeSet::new();
            for number in 0..tree.choices(from, to) {
                let path = tree.path(from, to, Choice::Number(number));
                assert!(
                    path.links()
                        .iter()
                        .all(|link| u64::from(*link) < tree.links())
                );
                let ends: Vec<LevelSwitch> = path
                    .links()
                    .iter()
                    .map(|link| tree.end((*link).into()))
                    .collect();
                let hops = tree.hops(from, to);
                assert_eq!(ends.len() as u32 + 1, hops.max(1), "{from} {to}");
                let last = ends.last().copied().unwrap_or(tree.leaf(from));
                assert_eq!(last, tree.leaf(to), "{from} {to} {number}");
                all.insert(path.links().to_vec());
            }
            assert_eq!(all.len() as u32, tree.choices(from, to));
        }
    }

    #[test]
    fn shifts_meet_no_one_on_a_tree_without_blocking() {
        let tree = levels(4, &[4, 3], &[4, 4]);
        for shift in 1..48 {
            let mut used = vec![false; tree.links() as usize];
            for from in 0..48 {
                let path = tree.path(from, (from + shift) % 48, Choice::ByDestination);
                for link in path.links() {
                    let link = &mut used[*link as usize];
                    assert!(!*link, "shift {shift}, host {from}");
                    *link = true;
                }
            }
        }
    }
}
