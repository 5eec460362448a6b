//! Tables of routes for a graph: shortest paths whose traffic is spread over equal ones, or paths
//! up and down a tree where those would have a cycle of dependencies. Where paths up and down are
//! too long, the shortest ones get virtual lanes.

use super::cabling::{Cabling, GraphLink, MOST_STEPS, NO_ROUTE};
use super::discover::Discovered;
use super::routed::{Graph, Rule};
use super::walk::{self, WrongRoute};
use crate::network::lanes::{self, Dependencies, MOST_LANES};

/// The graph with the shortest paths as routes.
pub(super) fn with_shortest(found: Discovered) -> Result<Graph, String> {
    check_connected(&found)?;
    let cabling = &found.cabling;
    let shortest = |to| {
        let (lengths, _) = walk::lengths(cabling, to);
        Goal {
            lengths,
            rules: None,
        }
    };
    let table = spread(cabling, &shortest);
    let sets = walk::dependencies(cabling, &table).map_err(|wrong| say(&found, wrong))?;
    if !has_cycle(cabling, &sets) {
        return Ok(graph(found, table, Rule::Shortest, None));
    }
    let ranks = ranks(cabling);
    let up_down = spread(cabling, &|to| up_down(cabling, &ranks, to));
    if walk::dependencies(cabling, &up_down).is_ok() {
        return Ok(graph(found, up_down, Rule::UpDown, None));
    }
    // On a large torus, routes up and down are too long.
    let lanes = lanes(&found, &sets)?;
    Ok(graph(found, table, Rule::Shortest, Some(lanes)))
}

/// The graph with routes from a table. They get virtual lanes if they have a cycle of dependencies.
pub(super) fn with_table(found: Discovered, table: Vec<u8>) -> Result<Graph, String> {
    let sets = walk::dependencies(&found.cabling, &table).map_err(|wrong| say(&found, wrong))?;
    let lanes = lanes(&found, &sets)?;
    Ok(graph(found, table, Rule::Given, Some(lanes)))
}

/// The virtual lane of the routes to each switch. The error names a cycle.
fn lanes(found: &Discovered, sets: &[Vec<(u32, u32)>]) -> Result<Vec<u8>, String> {
    lanes::assign(found.cabling.links.len(), sets).map_err(|cycle| {
        let name = |link: &u32| {
            let link = found.cabling.links[*link as usize];
            let [from, to] = [link.from, link.to].map(|of| &found.names.switches[of as usize]);
            format!("{from} port {} to {to}", link.port)
        };
        let shown: Vec<String> = cycle.iter().take(12).map(name).collect();
        let more = if cycle.len() > 12 { ", …" } else { "" };
        format!(
            "these routes can deadlock: packets on the links of this cycle wait for each other, and {MOST_LANES} virtual lanes do not \
             break all cycles: {}{more}",
            shown.join(", ")
        )
    })
}

fn graph(found: Discovered, table: Vec<u8>, rule: Rule, lanes: Option<Vec<u8>>) -> Graph {
    let switches = found.cabling.switches();
    let lanes = lanes.unwrap_or(vec![0; switches]);
    Graph::new(found.cabling, (table, lanes), rule, found.names)
}

/// Checks that cables connect all hosts.
fn check_connected(found: &Discovered) -> Result<(), String> {
    let cabling = &found.cabling;
    let Some(&(start, _)) = cabling.homes.first() else {
        return Err("there is no host".into());
    };
    let (lengths, _) = walk::lengths(cabling, start);
    let apart = |&(home, _): &(u32, u8)| lengths[home as usize] == u32::MAX;
    match cabling.homes.iter().position(apart) {
        None => Ok(()),
        Some(host) => {
            let hosts = &found.names.hosts;
            Err(format!(
                "no cables connect the hosts {} and {}",
                hosts[0], hosts[host]
            ))
        }
    }
}

/// The error message for a wrong route.
fn say(found: &Discovered, wrong: WrongRoute) -> String {
    let name = |switch: u32, host: u32| {
        let names = &found.names;
        (
            &names.switches[switch as usize],
            &names.hosts[host as usize],
        )
    };
    match wrong {
        WrongRoute::Missing { switch, host } => {
            let (switch, host) = name(switch, host);
            format!("the switch {switch} has no route to the host {host} by a cable to a switch")
        }
        WrongRoute::Long { switch, host } => {
            let (switch, host) = name(switch, host);
            format!(
                "the route from the switch {switch} to the host {host} is a cycle, or has more than {MOST_STEPS} links between switches"
            )
        }
    }
}

fn has_cycle(cabling: &Cabling, sets: &[Vec<(u32, u32)>]) -> bool {
    let mut all = Dependencies::new(cabling.links.len());
    for pair in sets.iter().flatten() {
        all.insert(*pair);
    }
    all.cycle().is_some()
}

/// The routes that are allowed to one switch.
struct Goal {
    /// The number of links from each switch.
    lengths: Vec<u32>,
    /// The rules of routes up and down; `None`: all shortest paths are allowed.
    rules: Option<UpDown>,
}

/// The rules of routes that go up and then down.
struct UpDown {
    /// The rank of each switch: a link up leads to a smaller one.
    ranks: Vec<u32>,
    /// True for each switch from which a path leads down all the way.
    is_above: Vec<bool>,
}

impl UpDown {
    fn allows(&self, link: &GraphLink) -> bool {
        let [from, to] = [link.from, link.to].map(|switch| switch as usize);
        let is_up = self.ranks[to] < self.ranks[from];
        match self.is_above[from] {
            true => !is_up && self.is_above[to],
            false => is_up,
        }
    }
}

/// The rank of each switch in a tree whose root is the switch nearest to all others.
fn ranks(cabling: &Cabling) -> Vec<u32> {
    let far = |root: u32| {
        let (lengths, order) = walk::lengths(cabling, root);
        let reached = order
            .iter()
            .map(|switch| u64::from(lengths[*switch as usize]));
        // A part of the network without hosts may be apart.
        (
            u32::MAX - order.len() as u32,
            reached.clone().max(),
            reached.sum::<u64>(),
        )
    };
    let home = cabling.homes.first().map_or(0, |(home, _)| *home);
    let (own, _) = walk::lengths(cabling, home);
    let near = (0..cabling.switches() as u32).filter(|root| own[*root as usize] != u32::MAX);
    let root = near.min_by_key(|root| far(*root)).unwrap_or(home);
    let (lengths, _) = walk::lengths(cabling, root);
    let mut order: Vec<u32> = (0..cabling.switches() as u32).collect();
    order.sort_by_key(|switch| lengths[*switch as usize]);
    let mut ranks = vec![0; order.len()];
    (0u32..)
        .zip(order)
        .for_each(|(rank, switch)| ranks[switch as usize] = rank);
    ranks
}

/// The shortest routes to a switch that go up and then down.
fn up_down(cabling: &Cabling, ranks: &[u32], to: u32) -> Goal {
    let rank = |switch: u32| ranks[switch as usize];
    let mut lengths = vec![u32::MAX; cabling.switches()];
    lengths[to as usize] = 0;
    let (mut reached, mut at) = (vec![to], 0);
    while let Some(switch) = reached.get(at).copied() {
        at += 1;
        for link in cabling.of(switch) {
            if rank(link.to) < rank(switch) && lengths[link.to as usize] == u32::MAX {
                lengths[link.to as usize] = lengths[switch as usize] + 1;
                reached.push(link.to);
            }
        }
    }
    let is_above: Vec<bool> = lengths.iter().map(|length| *length != u32::MAX).collect();
    let mut order: Vec<u32> = (0..cabling.switches() as u32).collect();
    order.sort_by_key(|switch| rank(*switch));
    for switch in order {
        if !is_above[switch as usize] {
            let up = cabling.of(switch).iter();
            let up = up.filter(|link| rank(link.to) < rank(switch));
            let least = up.map(|link| lengths[link.to as usize]).min();
            lengths[switch as usize] = least.unwrap_or(u32::MAX).saturating_add(1);
        }
    }
    let rules = UpDown {
        ranks: ranks.to_vec(),
        is_above,
    };
    Goal {
        lengths,
        rules: Some(rules),
    }
}

/// A table of routes to all hosts. The routes to a host follow the numbers of links of its goal
/// downwards. At each switch they take the link with the least traffic so far, where each pair of
/// hosts has equal traffic, so equal paths are used evenly.
fn spread(cabling: &Cabling, goal: &dyn Fn(u32) -> Goal) -> Vec<u8> {
    let switches = cabling.switches();
    let hosts_of = cabling.hosts_of_switches();
    let mut hosts_at: Vec<Vec<usize>> = vec![Vec::new(); switches];
    for (host, (home, _)) in cabling.homes.iter().enumerate() {
        hosts_at[*home as usize].push(host);
    }
    let mut table = vec![NO_ROUTE; cabling.homes.len() * switches];
    let mut traffic = vec![0u64; cabling.links.len()];
    for to in (0..switches as u32).filter(|to| !hosts_at[*to as usize].is_empty()) {
        let goal = goal(to);
        let candidates: Vec<Vec<u32>> = (0..switches as u32)
            .map(|switch| candidates(cabling, &goal, switch))
            .collect();
        let mut order: Vec<u32> = (0..switches as u32).collect();
        order.sort_by_key(|switch| std::cmp::Reverse(goal.lengths[*switch as usize]));
        for host in &hosts_at[to as usize] {
            let mut flows: Vec<u64> = hosts_of.iter().map(|hosts| u64::from(*hosts)).collect();
            for switch in &order {
                let links = candidates[*switch as usize].iter();
                let Some(link) = links.min_by_key(|link| traffic[**link as usize]) else {
                    continue;
                };
                let flow = flows[*switch as usize];
                traffic[*link as usize] += flow;
                flows[cabling.links[*link as usize].to as usize] += flow;
                let number = link - cabling.first[*switch as usize];
                table[host * switches + *switch as usize] = number as u8;
            }
        }
    }
    table
}

/// The links by which a route may leave a switch.
fn candidates(cabling: &Cabling, goal: &Goal, switch: u32) -> Vec<u32> {
    let left = goal.lengths[switch as usize];
    let links = (cabling.first[switch as usize]..).zip(cabling.of(switch));
    let nearer = links.filter(|(_, link)| {
        let is_nearer = goal.lengths[link.to as usize].checked_add(1) == Some(left);
        is_nearer && left != u32::MAX && goal.rules.as_ref().is_none_or(|rules| rules.allows(link))
    });
    nearer.map(|(number, _)| number).collect()
}
