//! Random programs on ranks as threads. `SEED=n` runs the program of seed n only, `SEEDS=n` those
//! of the first n seeds.

use crate::common::{random_program, run_with};

#[test]
fn random_programs_end_with_nothing_lost_doubled_or_overtaken() {
    for seed in random_program::seeds(60) {
        eprintln!("seed {seed}");
        let size = 1 + (seed % 5) as usize;
        run_with(size, &[], move |rank| random_program::play(rank, seed));
    }
}
