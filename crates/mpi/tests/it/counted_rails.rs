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

/// The size whose pieces hold 100 µs of predicted work: their number follows the device's rate.
const CUT_BY_RATE: &str = "1048576";

/// Counts of both ranks together, for the 128 messages, under each of [`POLICIES`]. A message of
/// 64 KiB is two pieces, one for each rail; each end registers its buffer on both rails.
const EXPECTED: &str = "\
who moves, bytes writes (immediate) (reads)   payload  signaled  receives  received  registrations
read         8       0        128      0       6144        16       128       128              0
read      4096       0        128      0     529408        42       128       128              0
read     65536       0        256    256    8401920       288       256       256            512
write        8       0        128      0       6144        16       128       128              0
write     4096       0        128      0     529408        42       128       128              0
write    65536       0        512      0    8404992       288       512       512            512
";

/// Asserts the counts under each policy.
fn check(play: Play) {
    for policy in POLICIES {
        let all = table(play, &[("FISHPLATE_RAIL_POLICY", policy)]);
        let lines = all.split_inclusive('\n');
        let kept: String = lines.filter(|line| !line.contains(CUT_BY_RATE)).collect();
        assert_eq!(kept, EXPECTED, "{policy}");
    }
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
    check(on_the_model);
}

#[test]
fn strict_devices_are_asked_for_exactly_this_over_two_rails() {
    check(on_a_strict_device);
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn real_devices_are_asked_for_exactly_this_over_two_rails() {
    check(on_verbs);
}
