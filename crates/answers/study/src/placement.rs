//! The placement of a job: the hosts of a machine on which its nodes lie, and the node of each
//! rank.
//!
//! Invariant: the same arguments give the same hosts, on every machine.

use sim::Random;

/// The hosts of a machine on which the nodes of a job lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum PlacementRule {
    /// Any hosts, in the order of their numbers, as a scheduler lists them
    #[default]
    Random,
    /// The first hosts
    Packed,
    /// Hosts at even distances over the whole machine
    Spread,
}

/// The order in which ranks are dealt to the nodes of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankOrder {
    /// Consecutive ranks fill one node after the other.
    #[default]
    Block,
    /// Consecutive ranks lie on consecutive nodes.
    Cyclic,
}

/// A job that is to be placed on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number of hosts of the machine.
    pub hosts: u32,
    /// The number of nodes of the job.
    pub nodes: u32,
    /// The number of ranks on each node.
    pub per_node: u32,
    /// The order of the ranks.
    pub order: RankOrder,
}

impl Job {
    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.nodes as usize * self.per_node as usize
    }

    /// The node of a rank, from 0.
    pub fn node(&self, rank: usize) -> usize {
        match self.order {
            RankOrder::Block => rank / self.per_node.max(1) as usize,
            RankOrder::Cyclic => rank % self.nodes.max(1) as usize,
        }
    }

    /// For each rank the host that it runs on. The seed chooses among placements by chance.
    ///
    /// # Errors
    /// The machine has fewer hosts than the job has nodes.
    pub fn place(&self, rule: PlacementRule, seed: u64) -> Result<Vec<u32>, String> {
        let Job { hosts, nodes, .. } = *self;
        if nodes > hosts {
            return Err(format!(
                "a machine of {hosts} hosts has no room for a job of {nodes} nodes"
            ));
        }
        let chosen: Vec<u32> = match rule {
            PlacementRule::Packed => (0..nodes).collect(),
            PlacementRule::Spread => {
                let at = |node: u32| u64::from(node) * u64::from(hosts) / u64::from(nodes);
                (0..nodes).map(|node| at(node) as u32).collect()
            }
            PlacementRule::Random => some_of(hosts, nodes, seed),
        };
        let ranks = 0..self.ranks();
        Ok(ranks.map(|rank| chosen[self.node(rank)]).collect())
    }
}

/// `count` different numbers below `all`, in ascending order: each set of them is equally likely.
fn some_of(all: u32, count: u32, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let mut numbers: Vec<u32> = (0..all).collect();
    for at in 0..count as usize {
        let other = at + random.below(u64::from(all) - at as u64) as usize;
        numbers.swap(at, other);
    }
    numbers.truncate(count as usize);
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn job(hosts: u32, nodes: u32, per_node: u32) -> Job {
        Job {
            hosts,
            nodes,
            per_node,
            order: RankOrder::Block,
        }
    }

    #[test]
    fn each_rule_fills_different_hosts_of_the_machine() {
        use PlacementRule::{Packed, Random, Spread};
        for rule in [Random, Packed, Spread] {
            for (hosts, nodes) in [(280, 2), (280, 128), (280, 280), (16, 12), (4920, 256)] {
                let placed = job(hosts, nodes, 3).place(rule, 7).unwrap();
                assert_eq!(placed.len(), nodes as usize * 3);
                assert!(placed.iter().all(|host| *host < hosts));
                assert!(placed.is_sorted(), "{rule:?}");
                let different: BTreeSet<u32> = placed.iter().copied().collect();
                assert_eq!(different.len(), nodes as usize, "{rule:?}");
            }
        }
    }

    #[test]
    fn a_seed_gives_one_placement_and_another_gives_another() {
        let placed = |seed| job(280, 16, 1).place(PlacementRule::Random, seed);
        assert_eq!(placed(1), placed(1));
        assert_ne!(placed(1), placed(2));
    }

    #[test]
    fn spread_nodes_lie_at_even_distances() {
        let placed = job(280, 4, 1).place(PlacementRule::Spread, 1);
        assert_eq!(placed, Ok(vec![0, 70, 140, 210]));
    }

    #[test]
    fn every_host_is_chosen_as_often_as_any_other() {
        let mut times = [0u32; 10];
        for seed in 0..2000 {
            for host in some_of(10, 3, seed) {
                times[host as usize] += 1;
            }
        }
        assert!(
            times.iter().all(|count| (500..700).contains(count)),
            "{times:?}"
        );
    }

    #[test]
    fn ranks_are_dealt_in_blocks_or_in_turns() {
        let blocks = job(8, 2, 3);
        assert_eq!(
            blocks.place(PlacementRule::Packed, 1),
            Ok(vec![0, 0, 0, 1, 1, 1])
        );
        let turns = Job {
            order: RankOrder::Cyclic,
            ..blocks
        };
        assert_eq!(
            turns.place(PlacementRule::Packed, 1),
            Ok(vec![0, 1, 0, 1, 0, 1])
        );
    }

    #[test]
    fn a_job_that_is_larger_than_the_machine_is_refused() {
        let why = job(4, 5, 1).place(PlacementRule::Packed, 1).unwrap_err();
        assert!(why.contains("4 hosts"), "{why}");
    }
}
