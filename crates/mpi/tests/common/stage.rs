//! Ranks as coroutines on a modelled machine.

use std::sync::Arc;

use device::model::{ModelNode, Net};
use device::scene::Scene;
use fabric::System;
use fabric::catalogue::Catalogue;
use mpi::{Rank, RealHost, Wiring};
use pmi::Hosts;
use sim::Turn;
use sim::coroutines::{Plan, run_then};

pub fn system(name: &str) -> System {
    Catalogue::builtin().system(name).unwrap()
}

/// How a run went. Two are the same only if all that happened in them was.
#[derive(Debug, PartialEq)]
pub struct Run {
    /// When each rank ended, in nanoseconds.
    pub times: Vec<u64>,
    pub events: u64,
    /// Of the record of what every processor, bus and link did, and when; 0 if there was none.
    pub digest: u64,
}

/// Runs a program on all ranks.
pub fn play(
    scene: Scene,
    settings: Vec<(&'static str, &'static str)>,
    digested: bool,
    program: impl Fn(&Arc<Rank>) + 'static,
) -> Run {
    let size = scene.hosts.len();
    let plan = Plan {
        ranks: size as u32,
        seed: scene.seed,
        stack: 512 << 10,
    };
    let hosts = scene.hosts.clone();
    let net = move |memory| {
        let net = Net::of(memory, &scene);
        if digested { net.digesting() } else { net }
    };
    let body = move |turn: Turn<Net>| {
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
    };
    let (times, events, digest) = run_then(plan, net, body, |net| net.digest()).unwrap();
    Run {
        times,
        events,
        digest,
    }
}
