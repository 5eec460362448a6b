//! The limits of the machine, without MPI: reference figures for every transport.
//!
//! All of it is safe Rust. Two threads stand for two ranks if that makes no difference for the
//! hardware; a child process is used only if another process is required.

mod cache_line;
mod copy;
mod figure;
mod pinned;
mod ring;
mod tcp;

use std::path::Path;

use anyhow::Result;
use results::Console;

use crate::measurement::Measurement;

pub(crate) use copy::{LEND, lend_memory};
use figure::Figure;

/// The name that these measurements have in the column of libraries.
const MACHINE: &str = "machine";

/// A function that measures one kind of limit.
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

/// The number of progress steps in one round of [`measure`].
pub(crate) const STEPS: usize = ALL.len();

/// Measures all limits once. `command` is the path of this executable, for limits that need another
/// process.
pub(crate) fn measure(command: &Path, console: &mut Console) -> Result<Vec<Measurement>> {
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
            skew: None,
            ranks: if figure.name.starts_with("memcpy") {
                1
            } else {
                2
            },
            size: figure.size,
            is_sized: true,
            unit: figure.unit,
            rounds: vec![figure.value],
            extremes: Vec::new(),
            iterations: Vec::new(),
            percentiles: Vec::new(),
            disturbances: Vec::new(),
            binding: Vec::new(),
        }
    }
}
