//! The results of a comparison.

use fabric::{Price, PriceGap};
use profile::Summary;

use crate::Request;
use crate::advice::Advice;
use crate::bounds::Bounds;
use crate::machine::Facts;

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
    /// The recordings, by number of ranks.
    pub recorded: Vec<Recorded>,
    /// The answer.
    pub advice: Advice,
}

/// The recordings with one number of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// The price of the hosts and their network.
    pub price: Result<Price, PriceGap>,
    /// The times in seconds without each of the recordings; empty where there is one recording.
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

    /// The difference of the longest and the shortest time without one of the recordings, as a
    /// share of the time. `None`: nobody knows, because there is one recording.
    pub fn spread(&self) -> Option<f64> {
        spread(&self.without, self.time()?)
    }

    /// Price times time, in units of money times seconds.
    pub fn money(&self) -> Option<f64> {
        let price = self.price.as_ref().ok()?;
        Some(price.amount() * self.time()?)
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
        Some(self.row(0, row.ranks)?.time()? / row.time()?)
    }

    /// The parallel efficiency compared with the fewest ranks on this machine.
    pub fn efficiency(&self, row: &Row) -> Option<f64> {
        let fewest = self.sweep().into_iter().min()?;
        let first = self.row(row.machine, fewest)?.time()?;
        Some(first * fewest as f64 / (row.time()? * row.ranks as f64))
    }
}
