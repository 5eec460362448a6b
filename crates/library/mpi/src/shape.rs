//! The shape of a communicator: its members by host.
//!
//! Invariant: a shape follows from the placement of the job and the list of members, so all members
//! compute the same one.

use std::sync::OnceLock;

/// The members of a communicator by host. Members in even blocks, as launchers place them, take no
/// memory: their hosts follow from their numbers.
#[derive(Debug)]
pub struct Shape {
    spread: Spread,
    /// For each member the index of its host, in order of the hosts' first members. Empty if the
    /// members are in even blocks.
    host_of: Vec<u32>,
    /// The members of each host, in order of rank, listed once an operation needs all hosts.
    hosts: OnceLock<Vec<Vec<u32>>>,
    /// A host, and its members in order of rank: the first host of which only these were needed.
    near: OnceLock<(usize, Vec<u32>)>,
}

/// The facts of a shape on which the cost of an algorithm depends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spread {
    /// The number of hosts on which members are.
    pub hosts: usize,
    /// The least number of members on one host.
    pub least: usize,
    /// The greatest number of members on one host.
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

    /// The distribution of one member on each host, with `sharing` such groups working at one time.
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
    pub fn of(hosts: impl Iterator<Item = u32> + Clone) -> Shape {
        match even_blocks(hosts.clone()) {
            Some(spread) => Shape::new(spread, Vec::new()),
            None => Shape::uneven(hosts),
        }
    }

    fn new(spread: Spread, host_of: Vec<u32>) -> Shape {
        Shape {
            spread,
            host_of,
            hosts: OnceLock::new(),
            near: OnceLock::new(),
        }
    }

    fn uneven(hosts: impl Iterator<Item = u32>) -> Shape {
        let mut numbers = Vec::new();
        // For each host the number of its members, and the first and the last of them.
        let mut runs: Vec<(usize, u32, u32)> = Vec::new();
        let mut host_of = Vec::new();
        for (member, host) in (0..).zip(hosts) {
            let host = host as usize;
            if numbers.len() <= host {
                numbers.resize(host + 1, u32::MAX);
            }
            if numbers[host] == u32::MAX {
                numbers[host] = runs.len() as u32;
                runs.push((0, member, member));
            }
            let (count, _, last) = &mut runs[numbers[host] as usize];
            (*count, *last) = (*count + 1, member);
            host_of.push(numbers[host]);
        }
        let counts = || runs.iter().map(|(count, ..)| *count);
        let is_run = |&(count, first, last): &_| (last - first) as usize + 1 == count;
        let spread = Spread {
            hosts: runs.len(),
            least: counts().min().unwrap_or(0),
            most: counts().max().unwrap_or(0),
            contiguous: runs.iter().all(is_run),
            sharing: 1,
        };
        Shape::new(spread, host_of)
    }

    /// The facts about the distribution on which costs depend.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// The members on each host, by their numbers.
    pub fn hosts(&self) -> &[Vec<u32>] {
        self.hosts.get_or_init(|| {
            let mut hosts = vec![Vec::new(); self.spread.hosts];
            for member in 0..self.members() {
                hosts[self.host_of(member)].push(member as u32);
            }
            hosts
        })
    }

    fn members(&self) -> usize {
        match self.host_of.len() {
            0 => self.spread.hosts * self.spread.most,
            members => members,
        }
    }

    /// The index of a member's host among the hosts of the shape.
    pub fn host_of(&self, member: usize) -> usize {
        match self.host_of.get(member) {
            Some(host) => *host as usize,
            None => member / self.spread.most,
        }
    }

    /// The members on the host of `member`, by their numbers.
    pub fn beside(&self, member: usize) -> &[u32] {
        let host = self.host_of(member);
        if self.hosts.get().is_none() {
            let (near, members) = self.near.get_or_init(|| {
                let all = 0..self.members();
                let beside = all.filter(|other| self.host_of(*other) == host);
                (host, beside.map(|other| other as u32).collect())
            });
            if *near == host {
                return members;
            }
        }
        &self.hosts()[host]
    }

    /// The index of a member among the members of its host.
    pub fn place(&self, member: usize) -> usize {
        self.beside(member)
            .partition_point(|&other| (other as usize) < member)
    }

    /// The members with index `place` among those of their hosts: one of each host that has enough
    /// members.
    pub fn at_place(&self, place: usize) -> Vec<u32> {
        self.hosts()
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

/// The facts of members in even blocks: each block is on a host of its own, with a number above
/// those before, and all blocks have one length. `None`: the members are placed otherwise.
fn even_blocks(mut hosts: impl Iterator<Item = u32>) -> Option<Spread> {
    let mut host = hosts.next()?;
    let (mut blocks, mut len, mut of_others) = (1, 1, None);
    for next in hosts {
        if next == host {
            len += 1;
            continue;
        }
        if next < host || of_others.is_some_and(|other| other != len) {
            return None;
        }
        (host, of_others) = (next, Some(len));
        (blocks, len) = (blocks + 1, 1);
    }
    let is_even = of_others.is_none_or(|other| other == len);
    is_even.then_some(Spread {
        hosts: blocks,
        least: len,
        most: len,
        contiguous: true,
        sharing: 1,
    })
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
    fn even_blocks_have_the_shape_of_their_list() {
        let cases: [&[u32]; 8] = [
            &[0],
            &[4, 4, 4],
            &[0, 1, 2],
            &[1, 1, 3, 3, 7, 7],
            &[0, 0, 1],
            &[0, 1, 1],
            &[0, 0, 1, 1, 0, 0],
            &[1, 1, 0, 0],
        ];
        for hosts in cases {
            let (shape, listed) = (
                Shape::of(hosts.iter().copied()),
                Shape::uneven(hosts.iter().copied()),
            );
            assert_eq!(shape.spread(), listed.spread(), "{hosts:?}");
            for member in (0..hosts.len()).rev() {
                assert_eq!(shape.host_of(member), listed.host_of(member), "{hosts:?}");
                assert_eq!(shape.beside(member), listed.beside(member), "{hosts:?}");
            }
            assert_eq!(shape.hosts(), listed.hosts(), "{hosts:?}");
        }
        assert!(Shape::of([1, 1, 3, 3].into_iter()).host_of.is_empty());
    }

    #[test]
    fn blocks_of_ranks_are_contiguous() {
        let shape = Shape::of([5, 5, 2, 2, 2].into_iter());
        assert!(shape.spread().contiguous);
        assert!(!Shape::of([0, 0].into_iter()).spread().has_levels());
        assert!(!Shape::of([0, 1].into_iter()).spread().has_levels());
    }
}
