//! The exact cost of a message on two rails under the static policies. The counts are equal on the
//! model, on a strict device of this process, and on real devices.
//!
//! FISHPLATE_TEST_RAILS names the real devices of both ranks, as `rxe0,rxe1 rxe2,rxe3`.

use super::counted::{
    Answers, Case, EXPECTED, Play, on_a_modelled, on_real_devices, on_strict_devices, table,
};

const POLICIES: [&str; 2] = ["stripe", "round-robin"];

/// Sizes that cost as much as over one rail. The number of pieces of 1 MiB follows the rate of the
/// device: a piece holds 100 µs of predicted work.
const UNCUT: [&str; 2] = ["8", "4096"];

/// The size of two pieces, one for each rail. Each end registers its buffer on both rails.
const CUT: &str = "65536";

/// Counts of both ranks together, for the 128 messages of the size [`CUT`], under each of
/// [`POLICIES`], in the columns of [`EXPECTED`].
const EXPECTED_CUT: &str = "\
read     65536       0        256    256    8401920       288       256       256            512
write    65536       0        512      0    8404992       288       512       512            512
";

/// Asserts the counts under each policy.
fn check(play: Play) {
    for policy in POLICIES {
        let all = table(play, &[("FISHPLATE_RAIL_POLICY", policy)]);
        assert_eq!(of_size(&all, CUT), of_size(EXPECTED_CUT, CUT), "{policy}");
        for size in UNCUT {
            assert_eq!(of_size(&all, size), of_size(EXPECTED, size), "{policy}");
        }
    }
}

/// The lines of a table about messages of this size: one for each rendezvous.
fn of_size<'a>(table: &'a str, size: &str) -> Vec<&'a str> {
    let lines = table.lines();
    let lines = lines.filter(|line| line.split_whitespace().nth(1) == Some(size));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 2, "{size} in {table}");
    lines
}

fn on_the_model(case: Case) -> Answers {
    on_a_modelled("2xqdr", case)
}

fn on_a_strict_device(case: Case) -> Answers {
    on_strict_devices(2, case)
}

fn on_verbs(case: Case) -> Answers {
    let names = std::env::var("FISHPLATE_TEST_RAILS").expect("FISHPLATE_TEST_RAILS names devices");
    let (first, second) = names.split_once(' ').expect("the devices of two ranks");
    on_real_devices([first, second], usize::MAX, case)
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
