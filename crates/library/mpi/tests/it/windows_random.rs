//! Random programs of one-sided communication against a sequential reference: on ranks as threads,
//! over TCP with one rail and with two, and on modelled machines under random faults, with one to
//! three rails that die and come back. `SEED=n` runs
//! the program of seed n only, `SEEDS=n` those of the first n seeds.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{random_program, random_windows, run_nodes, run_with};
use crate::{simulated, simulated_rails, tcp};

/// The conflicts that a check of these notes finds: none, as the programs are right.
fn conflicts(notes: &[(u64, device::Note)]) -> Vec<String> {
    let mut notes = notes.to_vec();
    notes.sort_by_key(|(time, _)| *time);
    let mut machine = rma_check::Machine::default();
    let mut accesses = 0;
    for (time, words) in notes {
        let (rank, event) = rma_check::Event::decode(words).unwrap();
        accesses += u32::from(matches!(event, rma_check::Event::Accessed(_)));
        machine.take(time, rank, "", event);
    }
    assert!(accesses > 0, "nothing was noted");
    machine
        .conflicts()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn random_windows_hold_what_a_sequential_program_leaves() {
    for seed in random_program::seeds(25) {
        eprintln!("seed {seed}");
        let size = 1 + (seed % 4) as usize;
        run_with(size, &[], move |rank| {
            random_windows::play(rank, seed);
            random_windows::take_turns(rank, seed);
        });
    }
}

#[test]
fn random_windows_over_tcp_hold_what_a_sequential_program_leaves() {
    for seed in random_program::seeds(8) {
        eprintln!("seed {seed}");
        let (ranks, rails) = (2 + (seed % 3) as usize, 1 + (seed / 3 % 2) as usize);
        run_nodes(tcp::nodes(ranks, rails), &[], move |rank| {
            random_windows::play(rank, seed);
            random_windows::take_turns(rank, seed);
        });
    }
}

#[test]
fn simulated_windows_hold_what_a_sequential_program_leaves() {
    for seed in random_program::seeds(30) {
        eprintln!("seed {seed}");
        let program = |rank: &_, seed| {
            random_windows::play(rank, seed);
            random_windows::take_turns(rank, seed);
        };
        let run = || {
            let mut run = simulated::simulate_program(seed, program);
            // Notes have addresses of this process.
            let notes = std::mem::take(&mut run.notes);
            (run, notes)
        };
        let (first, notes) = run();
        assert_eq!(conflicts(&notes), Vec::<String>::new(), "seed {seed}");
        if seed % 10 == 0 {
            assert_eq!(first, run().0, "seed {seed}");
        }
    }
}

#[test]
fn windows_over_failing_rails_hold_what_a_sequential_program_leaves() {
    static STRAIGHT: AtomicU64 = AtomicU64::new(0);
    for seed in random_program::seeds(25) {
        eprintln!("seed {seed}");
        let program = |rank: &_, seed| {
            for part in 0..3 {
                let counts = random_windows::play(rank, 3 * seed + part);
                STRAIGHT.fetch_add(counts.straight, Ordering::Relaxed);
            }
            random_windows::take_turns(rank, seed);
        };
        let run = simulated_rails::simulate_program(seed, program);
        if seed % 8 == 0 {
            let again = simulated_rails::simulate_program(seed, program);
            assert_eq!(run, again, "seed {seed}");
        }
    }
    let found = STRAIGHT.load(Ordering::Relaxed);
    assert!(found > 0, "no access went straight to memory");
}
