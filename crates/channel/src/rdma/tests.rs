//! The promises of the channel over a device in this process, with all designs and both kinds of placement.

use device::instant::{self, Setup};

use super::*;
use crate::suite;

const DESIGNS: [Design; 4] = [
    Design::Basic,
    Design::Piggyback,
    Design::Pipeline,
    Design::ZeroCopy,
];

fn all(ranks: usize, config: Config, setup: &Setup) -> Vec<Rdma> {
    let nodes = instant::nodes(ranks, setup).into_iter().enumerate();
    nodes
        .map(|(rank, node)| Rdma::attach(node, rank, ranks, config).unwrap())
        .collect()
}

fn setups() -> impl Iterator<Item = Setup> {
    let placements = [Placement::Ordered, Placement::Completion].into_iter();
    placements.flat_map(|placement| {
        [false, true].map(|delays| Setup {
            placement,
            delays,
            inline: if delays { 0 } else { 64 },
            ..Setup::default()
        })
    })
}

#[test]
fn it_keeps_the_promises_of_a_channel() {
    for setup in setups() {
        for design in DESIGNS {
            for (ring_bytes, gather) in [(256 << 10, true), (16 << 10, true), (16 << 10, false)] {
                let config = Config {
                    design,
                    ring_bytes,
                    gather,
                    ..Config::default()
                };
                println!("{design:?} {ring_bytes} {gather} {setup:?}");
                suite::promises(|ranks| all(ranks, config, &setup));
            }
        }
    }
}
