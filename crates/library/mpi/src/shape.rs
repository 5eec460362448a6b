//! The shape of a communicator: its members by host.
//!
//! Invariant: a shape follows from the placement of the job and the list of members, so all members
//! compute the same one.

/// The members of a communicator by host.
#[derive(Debug)]
pub struct Shape {
    /// The members of each host, in order of rank; the hosts in order of their first members.
    hosts: Vec<Vec<u32>>,
    /// For each member the index of its host in `hosts`.
    host_of: Vec<u32>,
    spread: Spread,
}

/// The facts of a shape on which the cost of an algorithm depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Number of hosts.
    pub hosts: usize,
    /// The least number of members of a host.
    pub least: usize,
    /// The greatest number of members of a host.
    pub most: usize,
    /// True if the members of each host have consecutive ranks.
    pub contiguous: bool,
    /// Number of groups of ranks that run the same algorithm at the same time on the same hosts,
    /// this group included.
    pub sharing: usize,
}

impl Spread {
    /// The distribution of `members` members that are all on one host.
    pub fn one_host(members: usize) -> Spread {
        Spread {
            hosts: 1,
            least: members,
            most: members,
            contiguous: true,
            sharing: 1,
        }
    }

    /// The distribution of one member on each host, with `sharing` such groups at work at the same
    /// time.
    pub fn leaders(hosts: usize, sharing: usize) -> Spread {
        Spread {
            hosts,
            least: 1,
            most: 1,
            contiguous: true,
            sharing,
        }
    }

    /// True if there are several hosts, and a host with several members.
    pub fn has_levels(&self) -> bool {
        self.hosts > 1 && self.most > 1
    }
}

impl Shape {
    /// The shape of members with these hosts, in order of rank.
    pub fn of(hosts: impl Iterator<Item = u32>) -> Shape {
        let mut numbers = Vec::new();
        let mut members: Vec<Vec<u32>> = Vec::new();
        let mut host_of = Vec::new();
        for (member, host) in (0..).zip(hosts) {
            let host = host as usize;
            if numbers.len() <= host {
                numbers.resize(host + 1, u32::MAX);
            }
            if numbers[host] == u32::MAX {
                numbers[host] = members.len() as u32;
                members.push(Vec::new());
            }
            members[numbers[host] as usize].push(member);
            host_of.push(numbers[host]);
        }
        let counts = || members.iter().map(Vec::len);
        let is_run = |of: &Vec<u32>| (of[of.len() - 1] - of[0]) as usize + 1 == of.len();
        let spread = Spread {
            hosts: members.len(),
            least: counts().min().unwrap_or(0),
            most: counts().max().unwrap_or(0),
            contiguous: members.iter().all(is_run),
            sharing: 1,
        };
        Shape {
            hosts: members,
            host_of,
            spread,
        }
    }

    /// The facts of the shape on which costs depend.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// The members of each host.
    pub fn hosts(&self) -> &[Vec<u32>] {
        &self.hosts
    }

    /// The index of a member's host among the hosts of the shape.
    pub fn host_of(&self, member: usize) -> usize {
        self.host_of[member] as usize
    }

    /// The members on the host of `member`.
    pub fn beside(&self, member: usize) -> &[u32] {
        &self.hosts[self.host_of(member)]
    }

    /// The index of a member among the members of its host.
    pub fn place(&self, member: usize) -> usize {
        self.beside(member)
            .partition_point(|&other| (other as usize) < member)
    }

    /// The members with index `place` among those of their hosts: one of each host that has more
    /// than `place` members.
    pub fn at_place(&self, place: usize) -> Vec<u32> {
        self.hosts
            .iter()
            .filter_map(|host| host.get(place).copied())
            .collect()
    }

    /// One member of each host: the first, except that `root` stands for its own host.
    pub fn leaders(&self, root: usize) -> Vec<u32> {
        let mut leaders = self.at_place(0);
        leaders[self.host_of(root)] = root as u32;
        leaders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_grouped_by_host_in_order_of_rank() {
        let shape = Shape::of([3, 1, 3, 3, 0].into_iter());
        assert_eq!(shape.hosts(), [vec![0, 2, 3], vec![1], vec![4]]);
        assert_eq!(shape.beside(2), [0, 2, 3]);
        assert_eq!(
            [0, 1, 2, 3, 4].map(|member| shape.place(member)),
            [0, 0, 1, 2, 0]
        );
        assert_eq!(shape.at_place(1), [2]);
        assert_eq!(shape.leaders(3), [3, 1, 4]);
        let spread = shape.spread();
        assert_eq!((spread.hosts, spread.least, spread.most), (3, 1, 3));
        assert!(!spread.contiguous && spread.has_levels());
    }

    #[test]
    fn blocks_of_ranks_are_contiguous() {
        let shape = Shape::of([5, 5, 2, 2, 2].into_iter());
        assert!(shape.spread().contiguous);
        assert!(!Shape::of([0, 0].into_iter()).spread().has_levels());
        assert!(!Shape::of([0, 1].into_iter()).spread().has_levels());
    }
}
