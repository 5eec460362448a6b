//! The results of a comparison as data. Text, JSON and the HTML page are made from them.

use crate::advice::Advice;
use crate::check::Check;
use crate::cost::Terms;
use crate::even::Unevenness;
use crate::machine::Facts;
use crate::main_loop::{By, Loop, NoLoop};
use crate::placements::PlacementChoice;
use crate::row::Row;
use crate::setting::Setting;
use crate::work::Measure;

/// A comparison of machines for one program.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The program and its arguments.
    pub program: String,
    /// The program whose trace has been replayed, or the command that has made the trace; `None`:
    /// the program itself has run.
    pub trace: Option<String>,
    /// The notes of the traces.
    pub notes: Vec<String>,
    /// The number of ranks on each host.
    pub per_host: usize,
    /// The placements of the job on the hosts of the machines.
    pub placement: PlacementChoice,
    /// The values of the options that the user has listed.
    pub setting: Vec<Setting>,
    /// The conditions under which hosts are paid.
    pub terms: Terms,
    /// The machines, in the user's order.
    pub machines: Vec<Facts>,
    /// One row for each number of ranks and machine.
    pub rows: Vec<Row>,
    /// True if the ranks of all traces have measured their times.
    pub is_measured: bool,
    /// The checks of the model by the recorded run, one for each number of ranks. Empty: the
    /// machine of the recording is unknown.
    pub checks: Vec<Check>,
    /// The part of a run whose time is compared between machines.
    pub measure: Measure,
    /// True if shares of times and times with changed values are estimates of the fast way.
    pub is_estimated: bool,
    /// The number of iterations for which the user wants a prediction, if any.
    pub iterations: Option<usize>,
    /// The recordings, by number of ranks.
    pub recorded: Vec<Recorded>,
    /// The answer: the recommended machines and number of ranks.
    pub advice: Advice,
}

/// The facts about the recordings with one number of ranks that are shown to a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The number of ranks.
    pub ranks: usize,
    /// The number of recordings.
    pub recordings: usize,
    /// True if all recordings have the same calls, so that the median is used for each call;
    /// otherwise the recording in the middle is used as a whole.
    pub aligned: bool,
    /// Computing time, summed over all ranks, in seconds.
    pub computing: f64,
    /// The loop that was found, or the reason why there is none.
    pub found: Result<LoopFacts, NoLoop>,
    /// The differences of computing between ranks with equal calls. `None`: no ranks have equal
    /// calls, or such ranks compute nothing.
    pub unevenness: Option<Unevenness>,
}

/// The facts of a program's loop that are shown to a user.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopFacts {
    /// The criterion that chose the loop.
    pub by: By,
    /// The number of iterations.
    pub iterations: usize,
    /// The number of the first iteration whose time is used: connections and the like are made in
    /// earlier ones.
    pub counted: usize,
    /// For each kind of iteration, by its calls, the number of iterations of that kind.
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
    /// The row of a machine with a number of ranks, if there is one.
    pub fn row(&self, machine: usize, ranks: usize) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| (row.machine, row.ranks) == (machine, ranks))
    }

    /// True if there is one recording with a number of ranks, and the ranks compute: their spread
    /// can come from the iterations alone.
    pub(crate) fn has_one_recording(&self, ranks: usize) -> bool {
        let mut recorded = self.recorded.iter();
        recorded.any(|of| of.ranks == ranks && of.recordings == 1 && of.computing > 0.0)
    }

    /// The numbers of ranks, in the user's order.
    pub fn sweep(&self) -> Vec<usize> {
        results::table::distinct(self.rows.iter().map(|row| row.ranks))
    }

    /// The speed-up: the time of the first machine with the same number of ranks, divided by this
    /// time. `None`: a time is unknown.
    pub fn speed_up(&self, row: &Row) -> Option<f64> {
        Some(self.row(0, row.ranks)?.value? / row.value?)
    }

    /// The parallel efficiency relative to the fewest ranks on the same machine. `None`: a time is
    /// unknown.
    pub fn efficiency(&self, row: &Row) -> Option<f64> {
        let fewest = self.sweep().into_iter().min()?;
        let first = self.row(row.machine, fewest)?.value?;
        Some(first * fewest as f64 / (row.value? * row.ranks as f64))
    }
}
