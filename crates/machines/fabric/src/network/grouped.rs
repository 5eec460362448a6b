//! Dragonflies as they are built: a group is a grid of switches, each linked with all others of its
//! row and of its column, and each pair of groups has a number of cables (Faanes et al., "Cray
//! Cascade", SC 2012).

use super::path::{Choice, Path};
use super::stop::Stop;

/// The size of a dragonfly whose groups are grids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouped {
    /// The number of hosts of a switch.
    pub hosts: u64,
    /// The number of switches in a row of a group.
    pub columns: u64,
    /// The number of rows of a group.
    pub rows: u64,
    /// The numbers of cables between two switches of a row, two of a column, and two groups.
    pub cables: [u64; 3],
    /// The number of groups.
    pub groups: u64,
}

impl Grouped {
    fn switches(&self) -> u64 {
        self.columns * self.rows
    }

    /// The number of hosts that the network has room for.
    pub fn room(&self) -> u64 {
        self.hosts * self.switches() * self.groups
    }

    /// The number of virtual lanes with which packets cannot wait for each other in a cycle: one
    /// for each order of row and column, before and behind the link between two groups.
    pub fn lanes(&self) -> u32 {
        let orders = 1 + u32::from(self.columns > 1 && self.rows > 1);
        let has_both = self.groups > 1 && self.switches() > 1;
        orders * (1 + u32::from(has_both))
    }

    /// The number of a switch's links within its group.
    fn ports(&self) -> u64 {
        self.columns * self.cables[0] + self.rows * self.cables[1]
    }

    /// The number of the first link between groups.
    fn first_global(&self) -> u64 {
        self.groups * self.switches() * self.ports()
    }

    /// The upper bound of link numbers.
    pub fn links(&self) -> u64 {
        self.first_global() + self.groups * self.groups * self.cables[2]
    }

    /// The number of shortest paths, which differ in their cables.
    pub fn choices(&self, from: u32, to: u32) -> u32 {
        let group = |host: u32| u64::from(host) / self.hosts / self.switches();
        match group(from) == group(to) {
            true => 2 * self.cables[1] as u32,
            false => self.cables[2] as u32,
        }
    }

    /// The name of a host's switch: its position in its group.
    pub(super) fn switch_name(&self, host: u32) -> String {
        self.name(u64::from(host) / self.hosts)
    }

    fn name(&self, switch: u64) -> String {
        let (group, own) = (switch / self.switches(), switch % self.switches());
        let (row, column) = (own / self.columns, own % self.columns);
        format!("group {group}, row {row}, column {column}")
    }

    /// The end of a link between switches.
    pub(super) fn stop(&self, link: u64) -> Stop {
        let [in_row, in_column, between] = self.cables;
        if let Some(global) = link.checked_sub(self.first_global()) {
            let (pair, cable) = (global / between, global % between);
            let (here, there) = (pair / self.groups, pair % self.groups);
            return Stop {
                switch: self.name(self.gate(there, here, cable)),
                link: format!("between groups, cable {cable}"),
            };
        }
        let (from, port) = (link / self.ports(), link % self.ports());
        let (column, first) = (from % self.columns, from - from % self.switches());
        let (to, link) = match port.checked_sub(self.columns * in_row) {
            None => {
                let link = format!("in a row, cable {}", port % in_row);
                (from - column + port / in_row, link)
            }
            Some(port) => {
                let link = format!("in a column, cable {}", port % in_column);
                (first + port / in_column * self.columns + column, link)
            }
        };
        let switch = self.name(to);
        Stop { switch, link }
    }

    /// The links between the switches on the path from one host to another.
    pub fn path(&self, from: u32, to: u32, choice: Choice) -> Path {
        let among = choice.among(u64::from(to));
        let (start, end) = (u64::from(from) / self.hosts, u64::from(to) / self.hosts);
        let [here, there] = [start, end].map(|switch| switch / self.switches());
        let mut path = Path::default();
        if here == there {
            self.within(start, end, among, &mut path);
            return path;
        }
        let cable = among % self.cables[2];
        self.within(start, self.gate(here, there, cable), among, &mut path);
        path.push(self.first_global() + (here * self.groups + there) * self.cables[2] + cable);
        self.within(self.gate(there, here, cable), end, among, &mut path);
        path
    }

    /// The switch of a group to which a cable to another group is attached. The cables of a group
    /// are attached to its switches in turn.
    fn gate(&self, group: u64, other: u64, cable: u64) -> u64 {
        let other = (other + self.groups - group - 1) % self.groups;
        group * self.switches() + (other * self.cables[2] + cable) % self.switches()
    }

    /// Appends the links from one switch of a group to another: along the row and the column, or
    /// the column and the row.
    fn within(&self, from: u64, to: u64, among: u64, path: &mut Path) {
        let column = |switch: u64| switch % self.columns;
        let row = |switch: u64| switch % self.switches() / self.columns;
        let row_first = among.is_multiple_of(2);
        let corner = match row_first {
            true => from - column(from) + column(to),
            false => to - column(to) + column(from),
        };
        for (from, to) in [(from, corner), (corner, to)] {
            if from == to {
                continue;
            }
            let [in_row, in_column, _] = self.cables;
            let port = match row(from) == row(to) {
                true => column(to) * in_row + among / 2 % in_row,
                false => self.columns * in_row + row(to) * in_column + among / 2 % in_column,
            };
            path.push(from * self.ports() + port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XC: Grouped = Grouped {
        hosts: 4,
        columns: 16,
        rows: 6,
        cables: [1, 3, 80],
        groups: 13,
    };

    #[test]
    fn a_path_has_at_most_two_links_in_each_group() {
        assert_eq!(XC.room(), 4992);
        let path = |from, to| XC.path(from, to, Choice::ByDestination);
        let len = |to| path(0, to).links().len();
        assert_eq!([0, 3, 4, 63, 64, 68, 383].map(len), [0, 0, 1, 1, 1, 2, 2]);
        for from in (0..4992).step_by(37) {
            for to in (0..4992).step_by(41) {
                let path = path(from, to);
                let groups = [from, to].map(|host| host / 384);
                let most = if groups[0] == groups[1] { 2 } else { 5 };
                assert!(path.links().len() <= most, "{from} {to} {path:?}");
                assert!(
                    path.links()
                        .iter()
                        .all(|link| u64::from(*link) < XC.links())
                );
            }
        }
    }

    #[test]
    fn both_ways_between_groups_use_the_two_ends_of_a_cable() {
        let gates = |cable| [XC.gate(0, 5, cable), XC.gate(5, 0, cable)];
        let ends: Vec<[u64; 2]> = (0..80).map(gates).collect();
        assert!(
            ends.iter()
                .all(|[one, other]| one / 96 == 0 && other / 96 == 5)
        );
        // The cables to all groups are spread over the switches.
        let mut at = vec![0; 96];
        for other in 1..13 {
            (0..80).for_each(|cable| at[XC.gate(0, other, cable) as usize] += 1);
        }
        assert!(at.iter().all(|cables| *cables == 10), "{at:?}");
    }
}
