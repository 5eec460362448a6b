//! Machines that nobody has: on each, the layer that chooses paths is as good as the best path that
//! a setting can force.
//!
//! Real ranks run on eight machines whose primitives have fixed prices ([`double`], [`table`]). A
//! point is a machine, a program and a length; its choices are those that `Rank::explain_choices`
//! lists, as `fishplate bench --every-choice` takes them. The layer sees the machine's clock alone,
//! so the same commit gives the same figures under any load.
//!
//! `open.txt` lists the points at which the layer is not good enough yet. A point that is not there
//! must be, and a point that is there and has become good enough must leave the list.

mod double;
mod point;
mod programs;
mod table;

use std::collections::BTreeSet;

use point::Point;
use programs::Program;
use table::{MACHINES, Machine};

/// The points that are not good enough, one a line.
const OPEN: &str = include_str!("open.txt");

/// The lengths of messages and blocks in bytes of the short suite.
const FEW: [usize; 3] = [2 << 10, 16 << 10, 64 << 10];

fn open() -> BTreeSet<&'static str> {
    OPEN.lines().filter(|line| !line.starts_with('#')).collect()
}

/// Compares all choices at all lengths of a machine.
fn compare(machine: &'static Machine, messages: &[usize], blocks: &[usize]) {
    let messages = messages.iter().flat_map(|&len| {
        let of = move |program| (program, 2, len);
        Program::MESSAGES.map(of)
    });
    let blocks = blocks.iter().flat_map(|&len| {
        let of = move |ranks| Program::COLLECTIVES.map(|program| (program, ranks, len));
        [2, 4].map(of).into_iter().flatten()
    });
    let open = open();
    let mut wrong = Vec::new();
    let points = messages.chain(blocks).map(|(program, ranks, len)| Point {
        machine,
        program,
        ranks,
        len,
    });
    let only = std::env::var("POINTS").unwrap_or_default();
    for point in points.filter(|point| point.name().contains(&only)) {
        let answer = point.compare();
        println!("{answer}");
        let name = point.name();
        match (answer.is_good(), open.contains(&*name)) {
            (false, false) => wrong.push(format!("not good enough: {answer}")),
            (true, true) => wrong.push(format!("remove {name:?} from open.txt: {answer}")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn few(machine: usize) {
    compare(&MACHINES[machine], &FEW, &FEW[1..2]);
}

#[test]
fn near() {
    few(0);
}

#[test]
fn string_moves_x_4() {
    few(1);
}

#[test]
fn stores_x_10() {
    few(2);
}

#[test]
fn kernel_reads_x_4() {
    few(3);
}

#[test]
fn kernel_reads_x_10() {
    few(4);
}

#[test]
fn wake_ups_x_10() {
    few(5);
}

#[test]
fn far() {
    few(6);
}

#[test]
fn reads_refused() {
    few(7);
}

/// Messages of all powers of two from 8 B to 4 MiB, and blocks up to 64 KiB: some minutes. `POINTS`
/// in the environment selects points by a part of their name, such as `gather, 4 ranks`.
#[test]
#[ignore = "takes minutes: make machines"]
fn all_lengths_on_all_machines() {
    let all: Vec<usize> = (3..=22).map(|log| 1 << log).collect();
    let compare = |machine| {
        let (messages, blocks) = (all.clone(), all[7..14].to_vec());
        std::thread::spawn(move || compare(machine, &messages, &blocks))
    };
    let ends: Vec<_> = MACHINES.iter().map(compare).collect();
    let ends: Vec<_> = ends.into_iter().map(|end| end.join()).collect();
    assert!(ends.iter().all(Result::is_ok), "the messages are above");
}

/// With the costs that an earlier job has kept, the first messages are good, too.
#[test]
fn a_second_job_begins_well() {
    for machine in &MACHINES {
        for len in [64 << 10, 256 << 10] {
            let point = Point {
                machine,
                program: Program::Latency,
                ranks: 2,
                len,
            };
            let answer = point.compare_first();
            println!("{answer}");
            let name = format!("second job, {}", point.name());
            let is_open = open().contains(&*name);
            assert_eq!(answer.is_good(), !is_open, "{name:?} in open.txt: {answer}");
        }
    }
}

#[test]
fn the_same_point_has_the_same_times() {
    let point = Point {
        machine: &MACHINES[0],
        program: Program::BothDirections,
        ranks: 2,
        len: 64 << 10,
    };
    let [first, second] = [(); 2].map(|()| point.compare().to_string());
    assert_eq!(first, second);
}
