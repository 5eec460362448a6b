//! Random programs on ranks that share memory. `SEED=n` runs that of one seed, `SEEDS=n` so many.

mod common;
#[path = "common/programs.rs"]
mod programs;

use common::run_with;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_programs_end_with_nothing_lost_doubled_or_overtaken() {
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(60),
    };
    for seed in seeds {
        eprintln!("seed {seed}");
        let size = 1 + (seed % 5) as usize;
        run_with(size, &[], |rank| programs::play(rank, seed));
    }
}
