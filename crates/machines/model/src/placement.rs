//! The placement of a job: the hosts of a machine on which its nodes lie, and the node of each
//! rank.
//!
//! Invariant: the same arguments give the same hosts, on every machine.

use std::fmt;
use std::str::FromStr;

use sim::Random;

/// The hosts of a machine on which the nodes of a job lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlacementRule {
    /// Any hosts, in the order of their numbers, as a scheduler lists them
    #[default]
    Random,
    /// The first hosts
    Packed,
    /// Hosts at even distances over the whole machine
    Spread,
}

/// The placement of a job that a user chooses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// The hosts that a rule chooses. The seed chooses among placements by chance, and is 0 for
    /// other rules.
    Rule(PlacementRule, u64),
    /// The numbers of these hosts, the first for the first node of the job.
    Hosts(Vec<u32>),
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
        let chosen = rule.hosts(self.hosts, self.nodes, seed)?;
        let ranks = 0..self.ranks();
        Ok(ranks.map(|rank| chosen[self.node(rank)]).collect())
    }
}

impl PlacementRule {
    /// The hosts of a job of `nodes` nodes on a machine of `hosts` hosts, in ascending order.
    ///
    /// # Errors
    /// The machine has fewer hosts than the job has nodes.
    fn hosts(self, hosts: u32, nodes: u32, seed: u64) -> Result<Vec<u32>, String> {
        if nodes > hosts {
            return Err(format!(
                "a machine of {hosts} hosts has no room for a job of {nodes} nodes"
            ));
        }
        Ok(match self {
            PlacementRule::Packed => (0..nodes).collect(),
            PlacementRule::Spread => {
                let at = |node: u32| u64::from(node) * u64::from(hosts) / u64::from(nodes);
                (0..nodes).map(|node| at(node) as u32).collect()
            }
            PlacementRule::Random => some_of(hosts, nodes, seed),
        })
    }
}

/// The word of a rule that is none.
const NO_RULE: &str = "valid are packed, spread and random";

impl FromStr for PlacementRule {
    type Err = String;

    fn from_str(word: &str) -> Result<PlacementRule, String> {
        match word {
            "packed" => Ok(PlacementRule::Packed),
            "spread" => Ok(PlacementRule::Spread),
            "random" => Ok(PlacementRule::Random),
            _ => Err(NO_RULE.into()),
        }
    }
}

impl Default for Placement {
    fn default() -> Placement {
        Placement::Rule(PlacementRule::Packed, 0)
    }
}

impl Placement {
    /// True if the job fills the first hosts of the machine.
    pub fn is_packed(&self) -> bool {
        matches!(self, Placement::Rule(PlacementRule::Packed, _))
    }

    /// The hosts of the nodes of a job on a machine of `hosts` hosts.
    ///
    /// # Errors
    /// The machine, or the list of hosts, is too small for the job.
    pub fn hosts(&self, hosts: u32, nodes: u32) -> Result<Vec<u32>, String> {
        let listed = match self {
            Placement::Rule(rule, seed) => return rule.hosts(hosts, nodes, *seed),
            Placement::Hosts(listed) => listed,
        };
        if let Some(host) = listed.iter().find(|host| **host >= hosts) {
            return Err(format!(
                "a machine of {hosts} hosts has no host {host}: they are counted from 0"
            ));
        }
        match listed.get(..nodes as usize) {
            Some(chosen) => Ok(chosen.to_vec()),
            None => Err(format!(
                "{} hosts are listed, and the job has {nodes} nodes",
                listed.len()
            )),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let listed = match self {
            Placement::Rule(PlacementRule::Packed, _) => return to.write_str("packed"),
            Placement::Rule(PlacementRule::Spread, _) => return to.write_str("spread"),
            Placement::Rule(PlacementRule::Random, seed) => return write!(to, "random:{seed}"),
            Placement::Hosts(listed) => listed,
        };
        let follows = |one: &u32, next: &u32| one.checked_add(1) == Some(*next);
        for (at, run) in listed.chunk_by(follows).enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match run {
                [first, .., last] => write!(to, "{comma}{first}-{last}")?,
                [host] => write!(to, "{comma}{host}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

impl FromStr for Placement {
    type Err = String;

    /// Parses `packed`, `spread`, `random`, `random:SEED`, or a list of hosts such as `0,4,8-11`.
    fn from_str(text: &str) -> Result<Placement, String> {
        let digits = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(seed) = text.strip_prefix("random:") {
            let number = seed.parse().ok().filter(|_| digits(seed));
            let number = number.ok_or_else(|| {
                format!("'{seed}' is not a seed; valid are whole numbers, as in random:1")
            });
            return Ok(Placement::Rule(PlacementRule::Random, number?));
        }
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            let rule: PlacementRule = text.parse().map_err(|_| wrong(text))?;
            return Ok(Placement::Rule(
                rule,
                u64::from(rule == PlacementRule::Random),
            ));
        }
        let host = |word: &str| -> Result<u32, String> {
            let number = word.parse().ok().filter(|_| digits(word));
            number.ok_or_else(|| wrong(word))
        };
        let mut listed: Vec<u32> = Vec::new();
        let mut known = std::collections::BTreeSet::new();
        for word in text.split(',') {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let (first, last) = (host(first)?, host(last)?);
            if last < first || last - first >= MOST_HOSTS {
                return Err(format!("'{word}' is not a range of hosts, such as 8-11"));
            }
            for host in first..=last {
                if !known.insert(host) {
                    return Err(format!("host {host} is named twice"));
                }
                listed.push(host);
            }
        }
        Ok(Placement::Hosts(listed))
    }
}

/// The most hosts of a range in a list.
const MOST_HOSTS: u32 = 1 << 20;

fn wrong(word: &str) -> String {
    format!(
        "'{word}' is no placement; {NO_RULE}, random:SEED, and numbers of hosts such as 0,4,8-11"
    )
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

    #[test]
    fn a_placement_is_written_as_it_is_read() {
        for (word, shown) in [
            ("packed", "packed"),
            ("spread", "spread"),
            ("random", "random:1"),
            ("random:7", "random:7"),
            ("0,4,8-11", "0,4,8-11"),
            ("5,4,6,7,8", "5,4,6-8"),
        ] {
            let placement: Placement = word.parse().unwrap();
            assert_eq!(placement.to_string(), shown);
            assert_eq!(shown.parse(), Ok(placement));
        }
    }

    #[test]
    fn wrong_placements_are_refused() {
        for (word, says) in [
            ("", "is no placement; valid are packed"),
            ("pack", "'pack' is no placement"),
            ("random:", "'' is not a seed"),
            ("random:-1", "'-1' is not a seed"),
            ("random:x", "'x' is not a seed"),
            ("0,1,0", "host 0 is named twice"),
            ("4-6,5", "host 5 is named twice"),
            ("6-4", "'6-4' is not a range"),
            ("0-4000000000", "is not a range"),
            ("0,,1", "'' is no placement"),
            ("0,a", "'a' is no placement"),
            ("1,+2", "'+2' is no placement"),
        ] {
            let why = word.parse::<Placement>().unwrap_err();
            assert!(why.contains(says), "{word}: {why}");
        }
    }

    #[test]
    fn a_list_gives_its_first_hosts_in_its_order() {
        let listed: Placement = "9,0,4-5".parse().unwrap();
        assert_eq!(listed.hosts(10, 3), Ok(vec![9, 0, 4]));
        let why = listed.hosts(10, 5).unwrap_err();
        assert!(
            why.contains("4 hosts are listed, and the job has 5"),
            "{why}"
        );
        let why = listed.hosts(9, 3).unwrap_err();
        assert!(why.contains("a machine of 9 hosts has no host 9"), "{why}");
    }
}
