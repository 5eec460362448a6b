//! The choice of a route. A router sees how long the links next to it are busy, and, as buffers are
//! finite and a full link pushes back, in time how long those behind them are. So a train takes
//! the route on which it would arrive first, among a few shortest ones and, in a dragonfly, a few
//! detours by another group (UGAL: Singh, "Load-Balanced Routing in Interconnection Networks", PhD
//! thesis, Stanford 2005). A detour must win; it has more links, so it wins only under load.

use allocator_api2::alloc::Allocator;
use fabric::Network;
use fabric::network::path::{Choice, Path};

use super::{Crossings, Picos};

/// The number of shortest routes that are compared. Aries compares two, and two detours.
const SHORTEST: u32 = 4;
/// The number of detours that are compared.
const DETOURS: u32 = 2;

/// The number that means: by the destination; or: no detour.
const NONE: u32 = u32::MAX;

/// A route from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The number of the shortest path.
    number: u32,
    /// The host over whose switch a detour leads.
    over: u32,
}

impl Default for Route {
    fn default() -> Route {
        Route {
            number: NONE,
            over: NONE,
        }
    }
}

impl Route {
    /// True if it leads over another switch than those of a shortest path.
    pub(super) fn is_detour(self) -> bool {
        self.over != NONE
    }

    /// The links of the route. `None`: it is too long.
    pub(super) fn path(self, network: &Network, (from, to): (u32, u32)) -> Option<Path> {
        let choice = match self.number {
            NONE => Choice::ByDestination,
            number => Choice::Number(number),
        };
        match self.over {
            NONE => Some(network.path(from, to, choice)),
            over => {
                let rest = network.path(over, to, choice);
                network.path(from, over, choice).then(&rest)
            }
        }
    }
}

impl<A: Allocator> Crossings<A> {
    /// The route on which a train that leaves at `at` would arrive first.
    pub(super) fn fastest(&mut self, network: Network, hosts: (u32, u32), at: Picos) -> Route {
        let all = network.choices(hosts.0, hosts.1);
        let shortest = all.min(SHORTEST);
        let detours = match network {
            Network::Dragonfly(_) | Network::Grouped(_) => DETOURS,
            _ => 0,
        };
        let mut best = Route::default();
        let mut first = self.arrival(&network, hosts, best, at);
        for number in 0..shortest + detours {
            let mut below = |bound: u32| self.random.below(bound.into()) as u32;
            let route = match number < shortest {
                true if all == shortest => Route { number, over: NONE },
                true => Route {
                    number: below(all),
                    over: NONE,
                },
                false => Route {
                    number: below(NONE),
                    over: below(network.hosts()),
                },
            };
            let arrives = self.arrival(&network, hosts, route, at);
            if arrives < first {
                (first, best) = (arrives, route);
            }
        }
        best
    }

    /// The time at which a train that leaves at `at` would reach the end of a route if nothing else
    /// came meanwhile.
    fn arrival(&self, network: &Network, hosts: (u32, u32), route: Route, at: Picos) -> Picos {
        let Some(path) = route.path(network, hosts) else {
            return Picos::MAX;
        };
        let step = |now: Picos, link: &u32| (now + self.hop).max(self.links[*link as usize].free);
        path.links().iter().fold(at, step) + self.hop
    }
}
