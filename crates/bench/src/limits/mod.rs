//! What the machine allows, without MPI: the figures that every transport is measured against.
//!
//! All of it is safe Rust: two threads stand for two ranks where the hardware sees no difference,
//! and a child process where only another process will do.

mod cache_line;
mod copy;
mod pinned;
mod ring;
mod tcp;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use results::Console;
use results::Unit;

use crate::rounds::Measurement;

pub use copy::lend_memory;

/// The "library" of these measurements.
const MACHINE: &str = "machine";
/// How long one number is measured in one round.
const SLICE: Duration = Duration::from_millis(20);

/// One number: which limit, at which size, in which unit.
struct Figure {
    name: &'static str,
    size: usize,
    unit: Unit,
    value: f64,
}

/// One kind of limit, from the start of a round to its figures.
type Measure = fn(&Path) -> Result<Vec<Figure>>;

const ALL: [(&str, Measure); 7] = [
    ("cache line", |_| cache_line::measure()),
    ("slot ring, ping-pong", |_| ring::latency()),
    ("slot ring, stream", |_| ring::rate()),
    ("memcpy", |_| copy::memcpy()),
    ("process_vm_readv", copy::process_vm_readv),
    ("TCP, ping-pong", |_| tcp::latency()),
    ("TCP, stream", |_| tcp::bandwidth()),
];

/// So many steps of a console is one round of [`measure`].
pub const STEPS: usize = ALL.len();

/// One round of all limits. `command` is this executable, for those that need another process.
pub fn measure(command: &Path, console: &mut Console) -> Result<Vec<Measurement>> {
    let mut all = Vec::new();
    for (what, measure) in ALL {
        console.doing(what.into());
        all.extend(measure(command)?.into_iter().map(Measurement::from));
        console.step();
    }
    Ok(all)
}

impl From<Figure> for Measurement {
    fn from(figure: Figure) -> Measurement {
        Measurement {
            benchmark: format!("limits/{}", figure.name),
            library: MACHINE.into(),
            label: MACHINE.into(),
            fabric: None,
            ranks: if figure.name.starts_with("memcpy") {
                1
            } else {
                2
            },
            size: figure.size,
            unit: figure.unit,
            rounds: vec![figure.value],
            extremes: Vec::new(),
            percentiles: Vec::new(),
        }
    }
}

/// Seconds that one `step` takes: as many as fit into [`SLICE`], the first ones not counted.
fn time(mut step: impl FnMut() -> Result<()>) -> Result<f64> {
    step()?;
    let (mut batch, start) = (1u32, Instant::now());
    loop {
        let before = Instant::now();
        for _ in 0..batch {
            step()?;
        }
        let took = before.elapsed();
        // The clock must not be what is measured: a batch takes a good part of the slice.
        if start.elapsed() >= SLICE && took >= SLICE / 4 {
            return Ok(took.as_secs_f64() / f64::from(batch));
        }
        batch = batch.saturating_mul(2);
    }
}

/// Powers of two.
fn sizes(first: usize, last: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |size| Some(size * 2)).take_while(move |&size| size <= last)
}
