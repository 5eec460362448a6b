//! Abilities of a rank's surroundings change the paths that it takes, never its results: random
//! programs with each ability taken away from ranks on devices of this process, and given to ranks
//! on modelled machines. No modelled machine lets threads run.

use std::sync::Arc;

use device::{Abilities, Node};
use model::config::MachineConfig;
use mpi::Rank;
use testdevice::abilities::WithAbilities;
use testdevice::strict::{self, Setup};

use crate::common::modelled::{Keep, play_through, system};
use crate::common::{random_program, random_windows, run_nodes};

type Flip = fn(&mut Abilities);

/// Each ability by its name, and its change.
const FLIPS: [(&str, Flip); 4] = [
    ("maps_memory", |own| own.maps_memory ^= true),
    ("runs_threads", |own| own.runs_threads ^= true),
    ("measures_time", |own| own.measures_time ^= true),
    ("reaches_freely", |own| own.reaches_freely ^= true),
];

/// Messages and collective operations, windows, and a file, on all ranks.
fn program(rank: &Arc<Rank>, seed: u64) {
    random_program::play(rank, seed);
    random_windows::play(rank, seed);
    random_windows::take_turns(rank, seed);
}

#[test]
fn each_ability_taken_from_real_ranks_leaves_all_results() {
    for (name, flip) in FLIPS {
        for seed in random_program::seeds(4) {
            eprintln!("{name}, seed {seed}");
            let size = 2 + (seed % 3) as usize;
            let setup = Setup {
                patient: false,
                ..Setup::default()
            };
            let nodes = strict::nodes(size, &setup).into_iter();
            let nodes = nodes
                .map(|node| -> Box<dyn Node + Send> { Box::new(WithAbilities::new(node, flip)) });
            let settings = [("FISHPLATE_PROGRESS", "thread")];
            run_nodes(nodes.collect(), &settings, move |rank| program(rank, seed));
        }
    }
}

#[test]
fn each_ability_given_to_modelled_ranks_leaves_all_results() {
    let flips = FLIPS.iter().filter(|(name, _)| *name != "runs_threads");
    for (name, flip) in flips {
        for seed in random_program::seeds(4) {
            eprintln!("{name}, seed {seed}");
            let ranks = 2 + (seed % 3) as usize;
            let scene = MachineConfig::new(&system("edr"), ranks, 1 + (seed % 2) as usize, seed);
            let flip = *flip;
            let node = move |node, _| -> Box<dyn Node> {
                Box::new(WithAbilities::new(Box::new(node), flip))
            };
            play_through(scene.unwrap(), vec![], Keep::Nothing, node, move |rank| {
                program(rank, seed)
            });
        }
    }
}
