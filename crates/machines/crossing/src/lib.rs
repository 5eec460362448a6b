//! The links between the switches of a network, and the trains that cross them hop by hop. A train
//! is a packet, or several packets of one message that move together.
//!
//! A link carries one train at a time, in the order in which trains reach it: the caller passes a
//! train to each of its links at the time at which its first bit is there. So what shares a link
//! follows from what is there, not from what left first.
//!
//! Invariants:
//! - a train that meets no other one takes the time of its cables and switches alone;
//! - trains on one path do not overtake each other;
//! - a network without links between switches has no trains.
//!
//! Never here: a clock or a queue of events, which are the caller's; hosts and their ports.

#![forbid(unsafe_code)]

mod routes;

use allocator_api2::alloc::Allocator;
use allocator_api2::vec::Vec;
use fabric::network::path::Path;
use fabric::{GbPerSec, Network, Rail, System};
use sim::Random;

pub use routes::Route;

/// A time in picoseconds.
type Picos = u64;

/// The links between the switches of a rail's network.
pub struct Crossings<A: Allocator> {
    /// The network; `None` if it has no such links, or if they are unknown.
    network: Option<Network>,
    is_adaptive: bool,
    /// The latency of a switch with a cable.
    hop: Picos,
    /// The rate of each link between switches.
    rate: GbPerSec,
    /// The directed links, by their numbers in the network.
    links: Vec<Link, A>,
    /// The source of routes that are compared.
    random: Random,
    /// True if a link carries any number of trains at once.
    is_wide: bool,
}

/// A directed link between switches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// The time from which on the link is free.
    free: Picos,
    /// The time at which the link's last train has reached it with all its bytes.
    reached: Picos,
    /// The total time for which the link has been busy.
    pub busy: Picos,
    /// The host that sent the link's last train.
    pub host: u32,
}

/// A train on its route between switches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Train {
    path: Path,
    /// The number of links that it has entered.
    entered: u8,
    from: u32,
    /// The time by which a detour takes longer than a shortest route.
    pub longer: Picos,
}

/// A step of a train: the entry into a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The time at which its first bit enters the link.
    pub starts: Picos,
    /// The time at which its first bit reaches the next link, or after the last one the link to its
    /// host.
    pub next: Picos,
    /// True if it was the last link between switches.
    pub is_last: bool,
}

impl<A: Allocator> Crossings<A> {
    /// The links of a rail's network, in memory of this allocator.
    pub fn new_in(allocator: A, system: &System, rail: &Rail) -> Crossings<A> {
        let network = system.network(rail);
        let network = network.filter(|network| network.has_inner_links());
        let count = network.map_or(0, |network| network.links() as usize);
        let mut links = Vec::new_in(allocator);
        links.resize(count, Link::default());
        Crossings {
            network,
            is_adaptive: rail.is_adaptive(),
            hop: rail.flight(1).saturating_sub(rail.flight(0)).picos(),
            rate: rail.inner_rate(),
            links,
            random: Random::new(0),
            is_wide: false,
        }
    }

    /// Lets links carry any number of trains at once, so that none waits for another.
    pub fn widen(&mut self) {
        self.is_wide = true;
    }

    /// All links between switches, in the order of their numbers.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// True if trains choose their routes.
    pub fn is_adaptive(&self) -> bool {
        self.is_adaptive && self.network.is_some()
    }

    /// True if a train from one host to another meets links between switches.
    pub fn crosses(&self, (from, to): (u32, u32)) -> bool {
        let network = self.network.as_ref();
        network.is_some_and(|network| network.hops(from, to) > 1)
    }

    /// The route that a train from one host to another takes, whose first bit leaves at `at`.
    #[inline]
    pub fn choose(&mut self, hosts: (u32, u32), at: Picos) -> Route {
        match self.network {
            Some(network) if self.is_adaptive => self.fastest(network, hosts, at),
            _ => Route::default(),
        }
    }

    /// A train from one host to another on this route. `None`: it meets no link between switches.
    #[inline]
    pub fn train(&self, (from, to): (u32, u32), route: Route) -> Option<Train> {
        let network = self.network.as_ref()?;
        let path = route.path(network, (from, to))?;
        let links = path.links().len() as u64;
        let longer = match route.is_detour() {
            true => (links + 1).saturating_sub(network.hops(from, to).into()) * self.hop,
            false => 0,
        };
        (links > 0).then_some(Train {
            path,
            entered: 0,
            from,
            longer,
        })
    }

    /// The time at which a train that leaves at `at` reaches its first link.
    pub fn first(&self, at: Picos) -> Picos {
        at + self.hop
    }

    /// Lets a train of `bytes` bytes, headers included, enter its next link, which its first bit
    /// has reached at `now`. A single packet does not wait for the packets of a train that reach
    /// the link after it.
    #[inline]
    pub fn enter(&mut self, train: &mut Train, now: Picos, bytes: u64, is_packet: bool) -> Step {
        let links = train.path.links();
        let number = links[usize::from(train.entered)];
        train.entered += 1;
        let is_last = usize::from(train.entered) == links.len();
        let time = self.rate.time(bytes).picos();
        let link = &mut self.links[number as usize];
        let begins = link.free.max(now);
        if !self.is_wide {
            link.free = begins + time;
        }
        link.busy += time;
        link.host = train.from;
        let behind = match is_packet {
            true => link.reached.saturating_sub(now),
            false => 0,
        };
        let starts = begins.saturating_sub(behind).max(now);
        link.reached = link.reached.max(now + time);
        Step {
            starts,
            next: starts + self.hop,
            is_last,
        }
    }
}

#[cfg(test)]
mod tests {
    use allocator_api2::alloc::Global;
    use fabric::catalogue::Catalogue;

    use super::*;

    /// The links of `qdr` with switches of eight ports, so that a leaf has four hosts.
    fn links(change: impl FnOnce(&mut System)) -> Crossings<Global> {
        let mut system = Catalogue::builtin().system("qdr").unwrap();
        system.switch.ports = 8;
        system.nodes = 16;
        change(&mut system);
        Crossings::new_in(Global, &system, &system.rail(0))
    }

    /// The time for which a train waits that leaves at `at`.
    fn wait(all: &mut Crossings<Global>, hosts: (u32, u32), at: Picos) -> Picos {
        let route = all.choose(hosts, at);
        let mut train = all.train(hosts, route).unwrap();
        let (mut now, mut waited) = (all.first(at), 0);
        loop {
            let step = all.enter(&mut train, now, 4096, false);
            waited += step.starts - now;
            now = step.next;
            if step.is_last {
                return waited;
            }
        }
    }

    #[test]
    fn trains_share_the_links_on_their_way() {
        let mut all = links(|_| {});
        assert_eq!(all.train((0, 1), Route::default()), None, "one switch");
        let time = all.rate.time(4096).picos();
        assert_eq!(wait(&mut all, (0, 4), 0), 0);
        // Destinations at the same place of their leaves share a link up, others do not.
        assert_eq!(wait(&mut all, (1, 8), 0), time);
        assert_eq!(wait(&mut all, (1, 9), 0), 0);
        let busy: Picos = all.links().iter().map(|link| link.busy).sum();
        assert_eq!(busy, 6 * time);
    }

    #[test]
    fn no_train_waits_on_wide_links() {
        let mut all = links(|_| {});
        all.widen();
        let waits = [(0, 4), (1, 8), (1, 12), (0, 4)].map(|hosts| wait(&mut all, hosts, 0));
        assert_eq!(waits, [0; 4]);
        let busy: Picos = all.links().iter().map(|link| link.busy).sum();
        assert_eq!(busy, 8 * all.rate.time(4096).picos());
    }

    #[test]
    fn an_adaptive_train_takes_a_free_way() {
        let mut all = links(|system| system.routing = Some(fabric::Routing::Adaptive));
        let waits = [4, 8, 12].map(|to| wait(&mut all, (0, to), 0));
        assert_eq!(waits, [0, 0, 0]);
    }

    #[test]
    fn a_full_group_link_is_left_for_a_detour() {
        let dragonfly = |routing| {
            links(|system| {
                system.topology = fabric::Topology::Dragonfly;
                system.nodes = 72;
                system.routing = Some(routing);
            })
        };
        let last = |all: &mut Crossings<Global>| {
            let waits: std::vec::Vec<Picos> = (0..40).map(|_| wait(all, (0, 8), 0)).collect();
            waits.into_iter().max().unwrap()
        };
        let fixed = last(&mut dragonfly(fabric::Routing::Destination));
        let adaptive = last(&mut dragonfly(fabric::Routing::Adaptive));
        assert!(3 * adaptive < fixed, "{adaptive} {fixed}");
    }
}
