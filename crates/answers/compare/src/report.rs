//! The results of a comparison.

use fabric::{Price, PriceGap};
use profile::Summary;

use crate::Request;
use crate::advice::Advice;
use crate::bounds::Bounds;
use crate::even::Unevenness;
use crate::machine::Facts;
use crate::main_loop::{By, Loop, NoLoop};
use crate::prediction::{NoPrediction, Prediction};
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
    /// What decides between machines.
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
    /// How it was chosen.
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

/// The program on one machine with one number of ranks.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of the machine.
    pub machine: usize,
    /// The number of ranks.
    pub ranks: usize,
    /// The run.
    pub outcome: Outcome,
    /// The shares of its time.
    pub bounds: Option<Bounds>,
    /// The reason why they are unknown, although they were looked for.
    pub no_bounds: Option<String>,
    /// The price of the hosts and their network.
    pub price: Result<Price, PriceGap>,
    /// The seconds of the start. `None`: nobody knows.
    pub start: Option<f64>,
    /// The time divided into start, iterations and rest; `None` without a loop.
    pub prediction: Option<Result<Prediction, NoPrediction>>,
    /// The seconds of an iteration of the loop: the usual ones, or the mean where they change.
    pub iteration: Option<f64>,
    /// The seconds that decide.
    pub value: Option<f64>,
    /// The seconds that decide without each of the recordings; empty where there is one recording.
    pub without: Vec<f64>,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Its summary.
    Ran(Box<Summary>),
    /// The reason why the record does not fit.
    Refused(String),
}

impl Row {
    pub(crate) fn new(
        request: &Request,
        machine: usize,
        ranks: usize,
        outcome: Result<Summary, String>,
    ) -> Row {
        Row {
            machine,
            ranks,
            outcome: match outcome {
                Ok(summary) => Outcome::Ran(Box::new(summary)),
                Err(why) => Outcome::Refused(why),
            },
            bounds: None,
            no_bounds: None,
            start: None,
            prediction: None,
            iteration: None,
            value: None,
            without: Vec::new(),
            price: request.machines[machine].price(ranks, request.per_host),
        }
    }

    /// The summary of a run that ended.
    pub fn summary(&self) -> Option<&Summary> {
        match &self.outcome {
            Outcome::Ran(summary) => Some(summary),
            Outcome::Refused(_) => None,
        }
    }

    /// The virtual time, in seconds.
    pub fn time(&self) -> Option<f64> {
        self.summary()?.virtual_s
    }

    /// The difference of the longest and the shortest time that decides without one of the
    /// recordings, as a share of that time. `None`: nobody knows, because there is one recording.
    pub fn spread(&self) -> Option<f64> {
        spread(&self.without, self.value?)
    }

    /// Price times the time that decides, in units of money times seconds.
    pub fn money(&self) -> Option<f64> {
        let price = self.price.as_ref().ok()?;
        Some(price.amount() * self.value?)
    }
}

/// The difference of the longest and the shortest time as a share of `time`.
pub(crate) fn spread(times: &[f64], time: f64) -> Option<f64> {
    let longest = times.iter().copied().reduce(f64::max)?;
    let shortest = times.iter().copied().reduce(f64::min)?;
    Some((longest - shortest) / time)
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
