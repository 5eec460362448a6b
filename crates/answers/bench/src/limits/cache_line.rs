//! The latency of a cache line between two cores: a counter in one line, written alternately by
//! both; and the same with a second line that each writes before the counter and reads after it.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::figure::Figure;
use super::pinned;
use anyhow::Result;
use results::Unit;

const TURNS: u64 = 100_000;
const SKIP: u64 = 1_000;

#[derive(Default)]
#[repr(align(128))]
struct CacheLine(AtomicU64);

pub(crate) fn measure() -> Result<Vec<Figure>> {
    let figure = |lines: usize| {
        let value = one_way(lines)? * 1e6;
        Ok(Figure {
            name: "cache-line",
            size: 64 * lines,
            unit: Unit::Microseconds,
            value,
        })
    };
    [1, 2].into_iter().map(figure).collect()
}

fn one_way(lines: usize) -> Result<f64> {
    let (flag, data) = (CacheLine::default(), CacheLine::default());
    // One side waits for even numbers, the other for odd ones.
    let turn = |wanted: u64| {
        while flag.0.load(Ordering::Acquire) != wanted {
            spin_loop();
        }
        if lines > 1 {
            let seen = data.0.load(Ordering::Relaxed);
            data.0.store(seen + 1, Ordering::Relaxed);
        }
        flag.0.store(wanted + 1, Ordering::Release);
    };
    let all = SKIP + TURNS;
    pinned::pair(
        || {
            (0..SKIP).for_each(|at| turn(2 * at));
            let start = Instant::now();
            (SKIP..all).for_each(|at| turn(2 * at));
            Ok(start.elapsed().as_secs_f64() / TURNS as f64 / 2.0)
        },
        || {
            (0..all).for_each(|at| turn(2 * at + 1));
            Ok(())
        },
    )
}
