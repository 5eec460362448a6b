//! Trains beside packets: long messages on networks with links between switches, by the fast way
//! and by the exact way.

use std::sync::Arc;

use fabric::catalogue::Catalogue;
use fabric::network::counts::Counts;
use fabric::{Oversubscription, Routing, System, Topology};
use model::config::MachineConfig;
use trace::{Pattern, Recipe};

/// The number of hosts, of one rank each.
const HOSTS: usize = 16;

/// Changes a system into one with this network.
type Change = fn(&mut System);

/// Networks in which hosts share links between switches.
const NETWORKS: [(&str, Change); 5] = [
    ("fat tree", |system| {
        system.switch.ports = 8;
        system.oversubscription = Oversubscription(3);
    }),
    ("hypercube", |system| {
        system.topology = Topology::Hypercube;
        system.switch_hosts = Some(2);
    }),
    ("torus", |system| {
        system.topology = Topology::Torus;
        system.dimensions = Counts::of(&[4, 4]);
    }),
    ("mesh", |system| {
        system.topology = Topology::Mesh;
        system.dimensions = Counts::of(&[4, 4]);
    }),
    ("dragonfly", |system| {
        system.topology = Topology::Dragonfly;
        system.switch_hosts = Some(2);
        system.dimensions = Counts::of(&[2]);
    }),
];

/// Patterns of communication: a shift, all to all, many to one, a random permutation, a ring, a
/// halo.
const PATTERNS: [Pattern; 6] = [
    Pattern::Shift,
    Pattern::Alltoall,
    Pattern::Nto1,
    Pattern::Permutation,
    Pattern::Ring,
    Pattern::Halo2d,
];

/// The errors of the fast way, in the order of their sizes.
fn errors(routing: Routing) -> Vec<(f64, String)> {
    let mut errors = Vec::new();
    // Bodies that are written: a reader asks for one body after the other, which is the protocol's
    // matter and not that of the network.
    let settings = [("FISHPLATE_RENDEZVOUS".to_owned(), "write".to_owned())];
    for (network, change) in NETWORKS {
        let mut system = Catalogue::builtin().system("edr").unwrap();
        system.nodes = HOSTS as u32;
        system.routing = Some(routing);
        change(&mut system);
        let scene = MachineConfig::new(&system, HOSTS, 1, 1).unwrap();
        for pattern in PATTERNS {
            let steps = |steps| {
                let recipe = Recipe {
                    pattern,
                    ranks: HOSTS,
                    steps,
                    bytes: 256 << 10,
                    nanos: 0,
                    sum_every: 0,
                    seed: 1,
                };
                let trace = recipe.make("test".into());
                let (picos, _) = super::exact_with(&trace, &scene, &settings);
                let fast = crate::replay(Arc::new(trace), &scene, &settings).unwrap();
                [picos, fast.picos].map(|picos| picos as f64)
            };
            // The start of the program is not in question.
            let (short, long) = (steps(2), steps(6));
            let [picos, fast] = [0, 1].map(|way| long[way] - short[way]);
            let error = fast / picos - 1.0;
            println!("{network}, {pattern:?}: {:+.1} %", 100.0 * error);
            errors.push((error.abs(), format!("{pattern:?} on a {network}")));
        }
    }
    errors
}

#[test]
fn trains_take_the_time_of_packets_on_fixed_routes() {
    super::assert_near(errors(Routing::Destination), 0.035, 0.15);
}

#[test]
fn trains_take_the_time_of_packets_on_adaptive_routes() {
    super::assert_near(errors(Routing::Adaptive), 0.05, 0.15);
}
