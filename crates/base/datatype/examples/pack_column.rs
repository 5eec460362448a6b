//! Packs one column of a square matrix of doubles again and again. Run it under callgrind to count
//! instructions for each element, or alone to measure bytes per second.
//!
//! `cargo run --release -p datatype --example pack_column -- ROWS ROUNDS`

use datatype::{Buffer, Predefined, Type};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|word| word.parse().expect("ROWS and ROUNDS are whole numbers"));
    let rows: usize = arguments.next().unwrap_or(1000);
    let rounds: usize = arguments.next().unwrap_or(1000);

    let mut matrix: Vec<f64> = (0..rows * rows).map(|i| i as f64).collect();
    let column =
        Type::vector(rows as i64, 1, rows as i64, &Predefined::DOUBLE.into()).expect("fits");
    // SAFETY: the matrix outlives the buffer and holds all of its first column.
    let buffer = unsafe { Buffer::new(matrix.as_mut_ptr().cast(), 1, &column) };
    let mut packed = vec![0; buffer.len()];

    let start = Instant::now();
    for _ in 0..rounds {
        assert_eq!(
            black_box(&buffer).pack(0, black_box(&mut packed)),
            packed.len()
        );
    }
    let nanos = start.elapsed().as_nanos() as f64;
    let bytes = (rounds * packed.len()) as f64;
    println!(
        "{rows} rows: {:.2} GB/s, {:.2} ns an element",
        bytes / nanos,
        nanos * 8.0 / bytes
    );
}
