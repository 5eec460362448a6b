//! The exact cost of a message on two rails under the static policies. The counts are equal on the
//! model, on a strict device of this process, and on real devices.
//!
//! FISHPLATE_TEST_RAILS names the real devices of both ranks, as `rxe0,rxe1 rxe2,rxe3`.

use std::sync::{Arc, Mutex};

use device::{Node, Placement};
use testdevice::counted::Counts;
use testdevice::strict::{self, Setup};
use verbs::VerbsNode;

use super::counted::{Board, Play, Program, Settings, Waits, on_a_modelled, on_nodes, table};

const POLICIES: [&str; 2] = ["stripe", "round-robin"];

/// Counts of both ranks together, for the 128 messages, under each of [`POLICIES`].
const EXPECTED: [&str; 2] = ["", ""];

fn tables(play: Play) -> [String; 2] {
    POLICIES.map(|policy| table(play, &[("FISHPLATE_RAIL_POLICY", policy)]))
}

fn on_the_model(
    settings: Settings,
    waits: Waits,
    program: Program,
    size: usize,
) -> [Vec<Counts>; 2] {
    on_a_modelled("2xqdr", settings, waits, program, size)
}

fn on_a_strict_device(
    settings: Settings,
    waits: Waits,
    program: Program,
    size: usize,
) -> [Vec<Counts>; 2] {
    let setup = Setup {
        rails: 2,
        placement: Placement::Completion,
        ..Setup::default()
    };
    on_nodes(strict::nodes(2, &setup), settings, waits, program, size)
}

fn on_verbs(settings: Settings, waits: Waits, program: Program, size: usize) -> [Vec<Counts>; 2] {
    let names = std::env::var("FISHPLATE_TEST_RAILS").expect("FISHPLATE_TEST_RAILS names devices");
    let cards = Arc::new(Mutex::new([None, None]));
    let node = |(rank, names): (usize, &str)| {
        let cards = cards.clone();
        let devices = verbs::open(names).unwrap();
        Box::new(VerbsNode::new(devices, rank, 2, Box::new(Board { cards, rank })).unwrap())
            as Box<dyn Node + Send>
    };
    let nodes = names.split(' ').enumerate().map(node).collect();
    on_nodes(nodes, settings, waits, program, size)
}

#[test]
fn the_model_is_asked_for_exactly_this_over_two_rails() {
    assert_eq!(tables(on_the_model), EXPECTED);
}

#[test]
fn strict_devices_are_asked_for_exactly_this_over_two_rails() {
    assert_eq!(tables(on_a_strict_device), EXPECTED);
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn real_devices_are_asked_for_exactly_this_over_two_rails() {
    assert_eq!(tables(on_verbs), EXPECTED);
}
