//! Dependencies between links, and the virtual lanes that break cycles of them. A packet that holds
//! a link waits for the next one of its path; where such dependencies form a cycle, full buffers
//! can block each other for ever (Dally, Seitz, "Deadlock-Free Message Routing in Multiprocessor
//! Interconnection Networks", IEEE Transactions on Computers, 1987).

/// The greatest number of virtual lanes for data that switches have in practice.
pub const MOST_LANES: usize = 8;

/// The dependencies between the directed links of a network.
#[derive(Clone, Debug)]
pub struct Dependencies {
    /// For each link, the links that follow it on a path.
    after: Vec<Vec<u32>>,
}

/// The state of a link in the search for a cycle.
#[derive(Clone, Copy, PartialEq)]
enum Visit {
    Open,
    OnPath,
    Done,
}

impl Dependencies {
    /// No dependencies between links with numbers below `links`.
    pub fn new(links: usize) -> Dependencies {
        Dependencies {
            after: vec![Vec::new(); links],
        }
    }

    /// Adds the dependencies of a path, given as its links in order.
    pub fn add(&mut self, path: &[u32]) {
        for pair in path.windows(2) {
            self.insert((pair[0], pair[1]));
        }
    }

    /// Adds a dependency of a link on its follower. False if it was there.
    pub fn insert(&mut self, (link, next): (u32, u32)) -> bool {
        let after = &mut self.after[link as usize];
        let is_new = !after.contains(&next);
        if is_new {
            after.push(next);
        }
        is_new
    }

    /// Removes a dependency that was added last among those of its link.
    fn remove(&mut self, (link, next): (u32, u32)) {
        self.after[link as usize].retain(|known| *known != next);
    }

    /// The links of a cycle, in order; `None` if there is no cycle.
    pub fn cycle(&self) -> Option<Vec<u32>> {
        self.cycle_from(0..self.after.len() as u32)
    }

    /// The links of a cycle that can be reached from these links.
    fn cycle_from(&self, starts: impl Iterator<Item = u32>) -> Option<Vec<u32>> {
        let mut visits = vec![Visit::Open; self.after.len()];
        // The links from the start to the current one, each with the number of followers tried.
        let mut path: Vec<(u32, usize)> = Vec::new();
        for start in starts {
            if visits[start as usize] == Visit::Open {
                path.push((start, 0));
                visits[start as usize] = Visit::OnPath;
            }
            while let Some((link, tried)) = path.last_mut() {
                let Some(next) = self.after[*link as usize].get(*tried).copied() else {
                    visits[*link as usize] = Visit::Done;
                    path.pop();
                    continue;
                };
                *tried += 1;
                match visits[next as usize] {
                    Visit::Done => {}
                    Visit::Open => {
                        visits[next as usize] = Visit::OnPath;
                        path.push((next, 0));
                    }
                    Visit::OnPath => {
                        let links = path.iter().map(|(link, _)| *link);
                        return Some(links.skip_while(|link| *link != next).collect());
                    }
                }
            }
        }
        None
    }
}

/// The virtual lane of each set of dependencies, such as those of all routes to one switch: the
/// first lane in which the set closes no cycle (Skeie, Lysne, Theiss, "Layered Shortest Path
/// (LASH) Routing", IPDPS 2002). As the error, a cycle for which [`MOST_LANES`] lanes are too few.
pub fn assign(links: usize, sets: &[Vec<(u32, u32)>]) -> Result<Vec<u8>, Vec<u32>> {
    let mut whole = Dependencies::new(links);
    for pair in sets.iter().flatten() {
        whole.insert(*pair);
    }
    let Some(first_cycle) = whole.cycle() else {
        return Ok(vec![0; sets.len()]);
    };
    let mut lanes: Vec<Dependencies> = Vec::new();
    let mut assigned = Vec::new();
    for set in sets {
        let fits = |lane: &mut Dependencies| {
            let added = set.iter().filter(|pair| lane.insert(**pair));
            let added: Vec<(u32, u32)> = added.copied().collect();
            // A new cycle has a new dependency.
            let closes = lane.cycle_from(added.iter().map(|(link, _)| *link));
            if closes.is_some() {
                added.into_iter().for_each(|pair| lane.remove(pair));
            }
            closes.is_none()
        };
        let known = lanes.iter_mut().position(fits);
        let lane = match known {
            Some(lane) => lane,
            None if lanes.len() == MOST_LANES => return Err(first_cycle),
            None => {
                let mut lane = Dependencies::new(links);
                for pair in set {
                    lane.insert(*pair);
                }
                if let Some(cycle) = lane.cycle() {
                    return Err(cycle);
                }
                lanes.push(lane);
                lanes.len() - 1
            }
        };
        assigned.push(lane as u8);
    }
    Ok(assigned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::counts::Counts;
    use crate::network::path::{Choice, Path};
    use crate::network::{Network, Shape, Topology};

    fn network(topology: Topology, hosts: u32, dimensions: &[u32], nodes: u32) -> Network {
        let shape = Shape {
            topology,
            ports: 64,
            oversubscription: 1,
            hosts: Some(hosts),
            dimensions: Counts::of(dimensions),
            ..Shape::default()
        };
        shape.check(nodes).unwrap();
        Network::new(&shape, nodes)
    }

    /// The paths to each host.
    fn paths(network: &Network, nodes: u32) -> Vec<Vec<Path>> {
        let to = |to| (0..nodes).map(move |from| network.path(from, to, Choice::ByDestination));
        (0..nodes).map(|host| to(host).collect()).collect()
    }

    fn has_cycle(network: &Network, nodes: u32) -> bool {
        let mut all = Dependencies::new(network.links() as usize);
        for path in paths(network, nodes).iter().flatten() {
            all.add(path.links());
        }
        all.cycle().is_some()
    }

    #[test]
    fn dimension_order_has_cycles_on_tori_alone() {
        for (topology, dimensions, nodes, expected) in [
            (Topology::Torus, &[5, 4][..], 20, true),
            (Topology::Torus, &[3, 3], 9, false),
            (Topology::Mesh, &[5, 4, 3], 60, false),
            (Topology::Hypercube, &[], 32, false),
            (Topology::FatTree, &[4, 3], 12, false),
            (Topology::Dragonfly, &[3, 2], 30, true),
        ] {
            let network = network(topology, 1, dimensions, nodes);
            assert_eq!(has_cycle(&network, nodes), expected, "{topology:?}");
            assert_eq!(network.lanes() > 1, expected, "{topology:?}");
        }
        let shape = Shape {
            topology: Topology::Dragonfly,
            ports: 7,
            oversubscription: 1,
            ..Shape::default()
        };
        let balanced = Network::new(&shape, 72);
        assert!(has_cycle(&balanced, 72) && balanced.lanes() == 2);
    }

    /// The pairs of links and lanes on a path whose lane changes where a packet enters a link that
    /// `rises` names.
    fn in_lanes(path: &Path, rises: impl Fn(u32) -> bool, links: u32) -> Vec<u32> {
        let mut lane = 0;
        let numbered = path.links().iter().map(|link| {
            lane += u32::from(rises(*link));
            lane.min(7) * links + link
        });
        numbered.collect()
    }

    #[test]
    fn two_lanes_break_the_cycles_of_a_ring() {
        let ring = network(Topology::Torus, 1, &[6], 6);
        let links = ring.links() as u32;
        let mut all = Dependencies::new(2 * links as usize);
        for path in paths(&ring, 6).iter().flatten() {
            // The lane rises where a path crosses the ends of the dimension: switch 5 upwards and
            // switch 0 downwards.
            let per_switch = links / 6;
            let rises = |link: u32| {
                let (switch, port) = (link / per_switch, link % per_switch);
                (switch, port) == (5, 0) || (switch, port) == (0, 1)
            };
            all.add(&in_lanes(path, rises, links));
        }
        assert_eq!(all.cycle(), None);
    }

    #[test]
    fn sets_that_close_a_cycle_get_lanes() {
        let sets = [vec![(0, 1)], vec![(1, 2)], vec![(2, 0)], vec![(0, 2)]];
        let lanes = assign(3, &sets).unwrap();
        assert_eq!(lanes, [0, 0, 1, 0]);
        assert_eq!(assign(3, &sets[..2]), Ok(vec![0, 0]));
        let own = assign(3, &[vec![(0, 1), (1, 2), (2, 0)]]);
        assert_eq!(own, Err(vec![0, 1, 2]));
    }
}
