//! Ranks as coroutines on a modelled machine.

use std::sync::Arc;

use channel::Peers;
use device::{Node, Note};
use fabric::System;
use fabric::catalogue::Catalogue;
use model::config::MachineConfig;
use model::trace::Span;
use model::{MachineModel, ModelNode};
use mpi::algorithms::SharedChoices;
use mpi::{Rank, Wiring, WorkTimes};
use pmi::{Hosts, Standalone};
use sim::Turn;
use sim::coroutines::{Plan, run_then};

pub(crate) fn system(name: &str) -> System {
    Catalogue::builtin().system(name).unwrap()
}

/// The record that a run keeps.
#[derive(Clone, Copy)]
pub(crate) enum Keep {
    Nothing,
    Digest,
    Record,
}

/// The result of a run. Two results are equal only if all events were.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    /// When each rank ended, in nanoseconds.
    pub(crate) times: Vec<u64>,
    pub(crate) events: u64,
    /// The number of packets on links that do more than acknowledge.
    pub(crate) packets: u64,
    /// Digest of the activities of all processors, buses and links; 0 unless [`Keep::Digest`].
    pub(crate) digest: u64,
    pub(crate) record: Vec<Span>,
    /// The notes of all ranks with their times, if the scene keeps them.
    pub(crate) notes: Vec<(u64, Note)>,
}

/// Runs a program on all ranks.
pub(crate) fn play(
    scene: MachineConfig,
    settings: Vec<(&'static str, &'static str)>,
    keep: Keep,
    program: impl Fn(&Arc<Rank>) + 'static,
) -> Run {
    play_through(scene, settings, keep, |node, _| Box::new(node), program)
}

/// Runs a program that also ends its rank, as usual or with an error.
#[cfg(test)]
pub(crate) fn play_to_end(
    scene: MachineConfig,
    settings: Vec<(&'static str, &'static str)>,
    keep: Keep,
    program: impl Fn(&Arc<Rank>) + 'static,
) -> Run {
    let node = |node, _| -> Box<dyn Node> { Box::new(node) };
    let known = vec![scene.hosts.len(); scene.hosts.len()];
    run_ranks(scene, &known, settings, keep, node, program)
}

/// Runs a program, which also ends its rank, on ranks that know only some of the ranks at their
/// start: as many as `known` says for each.
#[cfg(test)]
pub(crate) fn play_growing(
    scene: MachineConfig,
    known: &[usize],
    settings: Vec<(&'static str, &'static str)>,
    program: impl Fn(&Arc<Rank>) + 'static,
) -> Run {
    let node = |node, _| -> Box<dyn Node> { Box::new(node) };
    run_ranks(scene, known, settings, Keep::Digest, node, program)
}

/// Runs a program on all ranks, with the node that `node` makes of each modelled one.
pub(crate) fn play_through(
    scene: MachineConfig,
    settings: Vec<(&'static str, &'static str)>,
    keep: Keep,
    node: impl Fn(ModelNode, usize) -> Box<dyn Node> + 'static,
    program: impl Fn(&Arc<Rank>) + 'static,
) -> Run {
    let known = vec![scene.hosts.len(); scene.hosts.len()];
    run_ranks(scene, &known, settings, keep, node, move |rank| {
        program(rank);
        rank.finish("MPI_Finalize").unwrap();
    })
}

/// Runs a program, which also ends its rank, on all ranks.
fn run_ranks(
    scene: MachineConfig,
    known: &[usize],
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
    let (hosts, known) = (Hosts::new(scene.hosts.clone()), known.to_vec());
    let net = move |memory| {
        let net = MachineModel::of(memory, &scene);
        match keep {
            Keep::Nothing => net,
            Keep::Digest => net.digesting(),
            Keep::Record => net.recording(),
        }
    };
    let choices = SharedChoices::default();
    let body = move |turn: Turn<MachineModel>| {
        let rank = turn.rank() as usize;
        let size = known[rank];
        let settings = settings
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        let wiring = Wiring {
            peers: Peers {
                node: Some(node(ModelNode::new(turn), rank)),
                ..Peers::new(rank, size)
            },
            bootstrap: Arc::new(Standalone::new(rank, first(&hosts, size))),
            work: WorkTimes::default(),
            choices: Some(choices.clone()),
        };
        let knobs = knobs::Knobs::parse(settings).unwrap();
        let rank = Rank::new(Some(wiring), knobs).unwrap();
        let rank = Arc::new(rank);
        program(&rank);
        rank.now()
    };
    let last = |net: &mut MachineModel| {
        let traffic = net.traffic();
        let packets = traffic.packets - traffic.acknowledgements;
        (packets, net.digest(), net.take_record(), net.take_notes())
    };
    let (times, events, (packets, digest, record, notes)) =
        run_then(plan, net, body, last).unwrap();
    Run {
        times,
        events,
        packets,
        digest,
        record,
        notes,
    }
}

/// The placement of the first ranks of a job. That of all ranks shares its memory.
fn first(hosts: &Hosts, ranks: usize) -> Hosts {
    match ranks == hosts.ranks() {
        true => hosts.clone(),
        false => Hosts::new((0..ranks).map(|rank| hosts.of(rank)).collect()),
    }
}
