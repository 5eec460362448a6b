//! Ranks as coroutines on a modelled machine.

use std::sync::Arc;

use device::model::{ModelNode, Net};
use device::scene::Scene;
use fabric::System;
use fabric::catalogue::Catalogue;
use mpi::{Rank, RealHost, Wiring};
use pmi::Hosts;
use sim::coroutines::{Plan, run};

pub fn system(name: &str) -> System {
    Catalogue::builtin().system(name).unwrap()
}

/// Runs a program on all ranks; the virtual time at the end of each, in nanoseconds, and how many events there were.
pub fn play(
    scene: Scene,
    settings: Vec<(&'static str, &'static str)>,
    program: impl Fn(&Arc<Rank>) + 'static,
) -> (Vec<u64>, u64) {
    let size = scene.hosts.len();
    let plan = Plan {
        ranks: size as u32,
        seed: scene.seed,
        stack: 512 << 10,
    };
    let hosts = scene.hosts.clone();
    let net = move |memory| Net::of(memory, &scene);
    run(plan, net, move |turn| {
        let rank = turn.rank() as usize;
        let settings = settings
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        let wiring = Wiring {
            rank,
            size,
            hosts: Hosts::new(hosts.clone()),
            segment: None,
            node: Some(Box::new(ModelNode::new(turn))),
            control: None,
        };
        let knobs = knobs::Knobs::parse(settings).unwrap();
        let rank = Rank::new(Some(wiring), knobs, |ranks| Box::new(RealHost::new(ranks))).unwrap();
        let rank = Arc::new(rank);
        program(&rank);
        rank.finish("MPI_Finalize").unwrap();
        rank.now()
    })
    .unwrap()
}
