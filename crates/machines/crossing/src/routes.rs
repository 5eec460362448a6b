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
        let (from, to) = hosts;
        let all = network.choices(from, to);
        let mut draw = 0;
        let choices = self.choices;
        let mut drawn = |below: u32| {
            draw += 1;
            mixed(choices, draw) % below.max(1)
        };
        let mut best = (
            self.arrival(&network, hosts, Route::default(), at),
            Route::default(),
        );
        let shortest = (0..all.min(SHORTEST)).map(|number| match all <= SHORTEST {
            true => number,
            false => drawn(all),
        });
        let mut routes: [Route; (SHORTEST + DETOURS) as usize] = Default::default();
        let mut count = 0;
        for number in shortest {
            routes[count].number = number;
            count += 1;
        }
        if let Network::Dragonfly(_) | Network::Grouped(_) = network {
            for _ in 0..DETOURS {
                routes[count] = Route {
                    number: drawn(u32::MAX),
                    over: drawn(network.hosts()),
                };
                count += 1;
            }
        }
        for route in &routes[..count] {
            let arrives = self.arrival(&network, hosts, *route, at);
            if arrives < best.0 {
                best = (arrives, *route);
            }
        }
        self.choices = choices.wrapping_add(1);
        best.1
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

/// A pseudorandom number, of the count of choices and that of draws of one choice.
fn mixed(choices: u32, draw: u32) -> u32 {
    let word = (u64::from(choices) << 8 | u64::from(draw)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ word >> 31) as u32
}
