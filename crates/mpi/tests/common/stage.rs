//! Ranks as coroutines on a modelled machine.

use std::sync::Arc;

use channel::Peers;
use device::Node;
use fabric::System;
use fabric::catalogue::Catalogue;
use model::config::MachineConfig;
use model::trace::Span;
use model::{MachineModel, ModelNode};
use mpi::{Rank, Wiring};
use pmi::{Hosts, Standalone};
use sim::Turn;
use sim::coroutines::{Plan, run_then};

pub fn system(name: &str) -> System {
    Catalogue::builtin().system(name).unwrap()
}

/// All of the catalogue.
#[allow(dead_code, reason = "few tests want all")]
pub fn systems() -> Vec<String> {
    let catalogue = Catalogue::builtin();
    let systems = catalogue.entries().filter(|entry| entry.kind == "system");
    systems.map(|entry| entry.name.to_owned()).collect()
}

/// What is kept of a run.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "no test keeps all of them")]
pub enum Keep {
    Nothing,
    Digest,
    Record,
}

/// How a run went. Two are the same only if all that happened in them was.
#[derive(Debug, PartialEq)]
pub struct Run {
    /// When each rank ended, in nanoseconds.
    pub times: Vec<u64>,
    pub events: u64,
    /// Of the record of what every processor, bus and link did, and when; 0 if only the record itself was kept, or nothing.
    pub digest: u64,
    pub record: Vec<Span>,
}

/// Runs a program on all ranks.
pub fn play(
    scene: MachineConfig,
    settings: Vec<(&'static str, &'static str)>,
    keep: Keep,
    program: impl Fn(&Arc<Rank>) + 'static,
) -> Run {
    play_through(scene, settings, keep, |node, _| Box::new(node), program)
}

/// The same, where each rank's node is what is made of the machine's.
pub fn play_through(
    scene: MachineConfig,
    settings: Vec<(&'static str, &'static str)>,
    keep: Keep,
    node: impl Fn(ModelNode, usize) -> Box<dyn Node> + 'static,
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
        let net = MachineModel::of(memory, &scene);
        match keep {
            Keep::Nothing => net,
            Keep::Digest => net.digesting(),
            Keep::Record => net.recording(),
        }
    };
    let body = move |turn: Turn<MachineModel>| {
        let rank = turn.rank() as usize;
        let settings = settings
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        let wiring = Wiring {
            peers: Peers {
                rank,
                size,
                local: vec![rank],
                segment: None,
                node: Some(node(ModelNode::new(turn), rank)),
            },
            bootstrap: Arc::new(Standalone::new(rank, Hosts::new(hosts.clone()))),
        };
        let knobs = knobs::Knobs::parse(settings).unwrap();
        let rank = Rank::new(Some(wiring), knobs).unwrap();
        let rank = Arc::new(rank);
        program(&rank);
        rank.finish("MPI_Finalize").unwrap();
        rank.now()
    };
    let last = |net: &mut MachineModel| (net.digest(), net.take_record());
    let (times, events, (digest, record)) = run_then(plan, net, body, last).unwrap();
    Run {
        times,
        events,
        digest,
        record,
    }
}
