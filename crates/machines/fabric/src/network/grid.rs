//! Tori, meshes and hypercubes: switches at the points of a grid, each linked with its neighbours.
//! Routes go along one dimension after the other.

use super::counts::{Counts, MOST_DIMENSIONS};
use super::path::{Choice, Path};
use super::sketch::Sketch;
use super::stop::Stop;

/// A grid of switches. A hypercube is a mesh with two switches along each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The number of hosts of a switch.
    hosts: u64,
    sizes: Counts,
    /// The number of cables between neighbours, by dimension.
    cables: Counts,
    /// True if the ends of a dimension are linked: a torus.
    wraps: bool,
}

impl Grid {
    /// The grid of switches with `hosts` hosts each.
    pub fn new(hosts: u64, sizes: Counts, cables: Counts, wraps: bool) -> Grid {
        Grid {
            hosts: hosts.max(1),
            sizes,
            cables,
            wraps,
        }
    }

    /// The sizes of the smallest hypercube for `switches` switches.
    pub fn cube(switches: u64) -> Option<Counts> {
        let dimensions = switches.max(2).next_power_of_two().ilog2() as usize;
        let twos = [2; MOST_DIMENSIONS];
        Counts::of(twos.get(..dimensions)?)
    }

    /// The number of hosts that the grid has room for.
    pub fn room(&self) -> u64 {
        self.sizes.product().saturating_mul(self.hosts)
    }

    /// The greatest number of links on a path.
    pub fn longest(&self) -> u64 {
        let sizes = self.sizes.as_slice().iter().map(|size| u64::from(*size));
        let steps = sizes.map(|size| if self.wraps { size / 2 } else { size - 1 });
        steps.sum()
    }

    /// True if a packet may follow two links of one ring, so that the links of a ring can wait for
    /// each other.
    pub fn has_rings(&self) -> bool {
        self.wraps && self.sizes.as_slice().iter().any(|size| *size > 3)
    }

    /// The number of ports that a switch needs.
    pub fn needs(&self) -> u64 {
        let each = self
            .sizes
            .as_slice()
            .iter()
            .enumerate()
            .map(|(at, size)| u64::from(size.saturating_sub(1).min(2)) * self.cables.at(at));
        self.hosts + each.sum::<u64>()
    }

    /// The upper bound of link numbers.
    pub fn links(&self) -> u64 {
        self.sizes.product() * self.ports()
    }

    /// The number of link numbers of a switch.
    fn ports(&self) -> u64 {
        self.first(self.sizes.as_slice().len())
    }

    /// The number of a switch's first link along a dimension.
    fn first(&self, dimension: usize) -> u64 {
        (0..dimension).map(|of| 2 * self.cables.at(of)).sum()
    }

    /// The number of shortest paths that differ in the cables between neighbours.
    pub fn choices(&self) -> u32 {
        let sizes = 0..self.sizes.as_slice().len();
        let cables = sizes.map(|dimension| self.cables.at(dimension) as u32);
        cables.max().unwrap_or(1)
    }

    /// The name of a host's switch: its position in the grid.
    pub(super) fn switch_name(&self, host: u32) -> String {
        self.name(u64::from(host) / self.hosts)
    }

    fn name(&self, switch: u64) -> String {
        let mut rest = switch;
        let sizes = self.sizes.as_slice().iter().map(|size| u64::from(*size));
        let places = sizes.map(|size| {
            let place = rest % size;
            rest /= size;
            place.to_string()
        });
        format!("switch ({})", places.collect::<Vec<_>>().join(", "))
    }

    /// The outline of the grid.
    pub(super) fn sketch(&self) -> Sketch {
        let sizes: Vec<u64> = self
            .sizes
            .as_slice()
            .iter()
            .map(|size| u64::from(*size))
            .collect();
        Sketch::Grid {
            cables: (0..sizes.len()).map(|at| self.cables.at(at)).collect(),
            sizes,
            wraps: self.wraps,
            hosts: self.hosts,
        }
    }

    /// The end of a link between switches.
    pub(super) fn stop(&self, link: u64) -> Stop {
        let (at, port) = (link / self.ports(), link % self.ports());
        let sizes = self.sizes.as_slice();
        let of = |dimension: &usize| port < self.first(dimension + 1);
        let dimension = (0..sizes.len()).find(of).unwrap_or(0);
        let (number, cables) = (port - self.first(dimension), self.cables.at(dimension));
        let (is_up, cable) = (number < cables, number % cables);
        let size = u64::from(sizes[dimension]);
        let below: u64 = sizes[..dimension]
            .iter()
            .map(|size| u64::from(*size))
            .product();
        let own = at / below % size;
        let next = (own + if is_up { 1 } else { size - 1 }) % size;
        let direction = if is_up { "up" } else { "down" };
        Stop {
            switch: self.name(at - own * below + next * below),
            link: format!("along dimension {dimension}, {direction}, cable {cable}"),
        }
    }

    /// The links between the switches on the path from one host to another.
    pub fn path(&self, from: u32, to: u32, choice: Choice) -> Path {
        let among = choice.among(u64::from(to));
        let (mut at, end) = (u64::from(from) / self.hosts, u64::from(to) / self.hosts);
        let (mut path, mut below) = (Path::default(), 1);
        for (dimension, size) in self.sizes.as_slice().iter().enumerate() {
            let size = u64::from(*size);
            let cables = self.cables.at(dimension);
            let goal = end / below % size;
            loop {
                let own = at / below % size;
                if own == goal {
                    break;
                }
                let is_up = match self.wraps {
                    false => goal > own,
                    true => {
                        let ahead = (goal + size - own) % size;
                        // Half of the hosts go each direction where both are equally long.
                        2 * ahead < size || 2 * ahead == size && among.is_multiple_of(2)
                    }
                };
                let cable = among % cables;
                let port = self.first(dimension) + u64::from(!is_up) * cables + cable;
                path.push(at * self.ports() + port);
                let next = (own + if is_up { 1 } else { size - 1 }) % size;
                at = at - own * below + next * below;
            }
            below *= size;
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(numbers: &[u32]) -> Counts {
        Counts::of(numbers).unwrap()
    }

    #[test]
    fn paths_are_the_shortest() {
        let torus = Grid::new(1, counts(&[4, 4, 4]), counts(&[1]), true);
        assert_eq!((torus.room(), torus.longest()), (64, 6));
        let len = |to| torus.path(0, to, Choice::ByDestination).links().len();
        assert_eq!([1, 2, 3, 4, 12, 63, 42].map(len), [1, 2, 1, 1, 1, 3, 6]);
        let mesh = Grid::new(2, counts(&[4, 3]), counts(&[1]), false);
        let len = |to| mesh.path(0, to, Choice::ByDestination).links().len();
        assert_eq!([0, 1, 7, 23].map(len), [0, 0, 3, 5]);
    }

    #[test]
    fn links_are_used_in_one_direction_and_are_numbered_once() {
        let cube = Grid::new(9, Grid::cube(31).unwrap(), counts(&[3, 6]), false);
        assert_eq!((cube.room(), cube.longest(), cube.choices()), (288, 5, 6));
        assert_eq!(cube.links(), 32 * (6 + 4 * 12));
        // Twins share three cables: hosts 9 to 17 are reached over all of them.
        let links = |choice| {
            let mut links: Vec<u32> = (9..18)
                .map(|to| cube.path(0, to, choice).links()[0])
                .collect();
            links.sort_unstable();
            links.dedup();
            links
        };
        assert_eq!(links(Choice::ByDestination), [0, 1, 2]);
        assert_eq!(links(Choice::Number(4)), [1]);
        let back = cube.path(9, 0, Choice::ByDestination);
        assert!(!links(Choice::ByDestination).contains(&back.links()[0]));
        for (from, to) in (0..288).flat_map(|from| [(from, 287 - from), (from, 0)]) {
            let path = cube.path(from, to, Choice::ByDestination);
            assert!(
                path.links()
                    .iter()
                    .all(|link| u64::from(*link) < cube.links())
            );
        }
    }
}
