//! The fast way beside the exact way, on traces that are made here.
//!
//!     cargo run --release -p fast --example beside [MACHINE [RANKS...]]

use std::sync::Arc;
use std::time::Instant;

use fabric::catalogue::Catalogue;
use model::config::MachineConfig;
use replay::Stage;
use trace::{Pattern, Recipe};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let machine = words.first().map_or("edr", String::as_str);
    let ranks: Vec<usize> = words[words.len().min(1)..]
        .iter()
        .filter_map(|word| word.parse().ok())
        .collect();
    let ranks = if ranks.is_empty() { vec![8, 64] } else { ranks };
    let system = Catalogue::builtin().system(machine).unwrap();
    let mut errors = Vec::new();
    for &ranks in &ranks {
        for (pattern, name, _) in Pattern::ALL {
            for (bytes, nanos, sums) in [(8, 0, false), (1024, 5000, true), (65536, 20_000, true)] {
                let recipe = Recipe {
                    pattern,
                    ranks,
                    steps: std::env::var("STEPS").map_or(20, |n| n.parse().unwrap()),
                    bytes,
                    nanos,
                    sums,
                    seed: 1,
                };
                let trace = Arc::new(recipe.make("beside".into()));
                let scene = MachineConfig::new(&system, ranks, 1, 1).unwrap();
                let world = memory_file::of_length("world", sim::memory::Memory::BYTES).unwrap();
                let stage = Stage {
                    scene: scene.encode(),
                    world: Arc::new(world),
                    profile: None,
                    settings: Vec::new(),
                };
                let begun = Instant::now();
                let exact = replay::replay(trace.clone(), &stage).unwrap();
                let slow = begun.elapsed();
                let begun = Instant::now();
                let fast = fast::replay(trace, &scene, &[]).unwrap();
                let quick = begun.elapsed();
                let error = fast.picos as f64 / exact.picos as f64 - 1.0;
                errors.push(error.abs());
                println!(
                    "{name:<12} {ranks:>5} {bytes:>6} B {:>10.1} us {:>10.1} us {:>+7.1} %  {:>7} messages, {slow:.1?} {quick:.1?}",
                    exact.picos as f64 * 1e-6,
                    fast.picos as f64 * 1e-6,
                    error * 100.0,
                    fast.messages,
                );
            }
        }
    }
    errors.sort_by(f64::total_cmp);
    println!(
        "median {:.1} %, worst {:.1} %",
        errors[errors.len() / 2] * 100.0,
        errors[errors.len() - 1] * 100.0
    );
}
