//! Walks over the switches of a graph: distances, and the dependencies of its routes.

use super::cabling::{Cabling, MOST_STEPS, NO_ROUTE};

/// The number of links from each switch to the switch `to`, and the switches by that number.
/// `u32::MAX`: there is no path.
pub(super) fn lengths(cabling: &Cabling, to: u32) -> (Vec<u32>, Vec<u32>) {
    let mut lengths = vec![u32::MAX; cabling.switches()];
    let mut order = vec![to];
    lengths[to as usize] = 0;
    let mut at = 0;
    while let Some(switch) = order.get(at).copied() {
        at += 1;
        // Each cable has a link in both directions.
        for link in cabling.of(switch) {
            if lengths[link.to as usize] == u32::MAX {
                lengths[link.to as usize] = lengths[switch as usize] + 1;
                order.push(link.to);
            }
        }
    }
    (lengths, order)
}

/// A wrong route of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrongRoute {
    /// A switch has no entry for a host.
    Missing {
        /// The number of the switch.
        switch: u32,
        /// The number of the host.
        host: u32,
    },
    /// The route from a switch to a host is a cycle, or longer than any route may be.
    Long {
        /// The number of the switch.
        switch: u32,
        /// The number of the host.
        host: u32,
    },
}

/// For each switch the pairs of links that follow each other on the routes from hosts to its hosts.
/// The error is a route that does not lead to its host.
pub(super) fn dependencies(
    cabling: &Cabling,
    table: &[u8],
) -> Result<Vec<Vec<(u32, u32)>>, WrongRoute> {
    let switches = cabling.switches();
    let hosts_of = cabling.hosts_of_switches();
    let starts = || (0..switches as u32).filter(|switch| hosts_of[*switch as usize] > 0);
    let mut sets = vec![Vec::new(); switches];
    // The host for whose routes each switch was visited last.
    let mut visited = vec![u32::MAX; switches];
    let mut steps = vec![0u32; switches];
    for (host, (home, _)) in (0u32..).zip(&cabling.homes) {
        let column = host as usize * switches;
        visited[*home as usize] = host;
        steps[*home as usize] = 0;
        for start in starts() {
            let (mut switch, mut before) = (start, None);
            let mut trail = Vec::new();
            while switch != *home {
                let number = table[column + switch as usize];
                let missing = WrongRoute::Missing { switch, host };
                let first = cabling.first[switch as usize];
                let link = match number {
                    NO_ROUTE => return Err(missing),
                    number if usize::from(number) < cabling.of(switch).len() => {
                        first + u32::from(number)
                    }
                    _ => return Err(missing),
                };
                sets[*home as usize].extend(before.map(|before| (before, link)));
                if visited[switch as usize] == host {
                    break;
                }
                trail.push(switch);
                if trail.len() > MOST_STEPS {
                    let switch = start;
                    return Err(WrongRoute::Long { switch, host });
                }
                before = Some(link);
                switch = cabling.links[link as usize].to;
            }
            let end = steps[switch as usize];
            for (behind, passed) in (1u32..).zip(trail.into_iter().rev()) {
                visited[passed as usize] = host;
                steps[passed as usize] = end + behind;
            }
            if steps[start as usize] as usize > MOST_STEPS {
                let switch = start;
                return Err(WrongRoute::Long { switch, host });
            }
        }
    }
    for set in &mut sets {
        set.sort_unstable();
        set.dedup();
    }
    Ok(sets)
}
