//! The results of a comparison.

use crate::advice::Advice;
use crate::even::Unevenness;
use crate::machine::Facts;
use crate::main_loop::{By, Loop, NoLoop};
use crate::row::Row;
use crate::work::Measure;

/// A comparison of machines for one program.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The program and its arguments.
    pub program: String,
    /// Ranks on each host.
    pub per_host: usize,
    /// The machines, in the user's order.
    pub machines: Vec<Facts>,
    /// One row for each number of ranks and machine.
    pub rows: Vec<Row>,
    /// The measure that decides between machines.
    pub measure: Measure,
    /// The number of iterations for which the user wants a prediction.
    pub iterations: Option<usize>,
    /// The recordings, by number of ranks.
    pub recorded: Vec<Recorded>,
    /// The answer.
    pub advice: Advice,
}

/// The recordings with one number of ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The number of ranks.
    pub ranks: usize,
    /// The number of recordings.
    pub recordings: usize,
    /// All recordings have the same calls, so each call counts with its median; otherwise the
    /// recording in the middle counts as a whole.
    pub aligned: bool,
    /// The computing of all ranks together, in seconds.
    pub computing: f64,
    /// The loop that was found, or the reason why there is none.
    pub found: Result<LoopFacts, NoLoop>,
    /// The differences of computing between ranks with equal calls.
    pub unevenness: Option<Unevenness>,
}

/// The loop of a program, as a user reads of it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopFacts {
    /// The criterion that chose it.
    pub by: By,
    /// The number of its iterations.
    pub iterations: usize,
    /// The first iteration that counts: connections and the like are made before.
    pub counted: usize,
    /// The kinds of iterations, by their calls: the number of iterations of each.
    pub kinds: Vec<usize>,
    /// The fewest and the most calls of an iteration on any rank.
    pub calls: (usize, usize),
}

impl LoopFacts {
    pub(crate) fn of(found: &Loop) -> LoopFacts {
        let ranks = 0..found.boundaries.len();
        let calls = ranks.flat_map(|rank| {
            let iterations = 0..found.iterations();
            iterations.map(move |iteration| found.calls(rank, iteration))
        });
        let bounds = calls.fold((usize::MAX, 0), |(least, most), calls| {
            (least.min(calls), most.max(calls))
        });
        LoopFacts {
            by: found.by.clone(),
            iterations: found.iterations(),
            counted: found.counted,
            kinds: found.classes.iter().map(|class| class.iterations).collect(),
            calls: bounds,
        }
    }
}

impl Comparison {
    /// The row of a machine.
    pub fn row(&self, machine: usize, ranks: usize) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| (row.machine, row.ranks) == (machine, ranks))
    }

    /// The numbers of ranks, in the user's order.
    pub fn sweep(&self) -> Vec<usize> {
        results::table::distinct(self.rows.iter().map(|row| row.ranks))
    }

    /// The speed relative to the first machine with as many ranks.
    pub fn speed_up(&self, row: &Row) -> Option<f64> {
        Some(self.row(0, row.ranks)?.value? / row.value?)
    }

    /// The parallel efficiency compared with the fewest ranks on this machine.
    pub fn efficiency(&self, row: &Row) -> Option<f64> {
        let fewest = self.sweep().into_iter().min()?;
        let first = self.row(row.machine, fewest)?.value?;
        Some(first * fewest as f64 / (row.value? * row.ranks as f64))
    }
}
