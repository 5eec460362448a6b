//! One row of a comparison: the program on one machine with one number of ranks.

use profile::Summary;

use crate::Request;
use crate::bounds::Bounds;
use crate::cost::Cost;
use crate::placements::PlacedRun;
use crate::prediction::{NoPrediction, Prediction};

/// The spread of the recordings, as a share of the time, above which no answer is called sure.
pub const SPREAD: f64 = 0.10;
/// Times that differ by less than this share count as equal.
pub const EQUAL: f64 = 0.02;

/// The times of a run whose receives from any source take the message that comes first, in
/// seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FreeTimes {
    /// The time of the whole run.
    pub whole: f64,
    /// The time by which machines are compared.
    pub value: f64,
}

/// The program on one machine with one number of ranks.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of the machine in the request.
    pub machine: usize,
    /// The number of ranks.
    pub ranks: usize,
    /// The outcome of the run.
    pub outcome: Outcome,
    /// The shares of the run's time by cause. `None`: they are unknown, or the user does not want
    /// them.
    pub bounds: Option<Bounds>,
    /// The reason why the shares are unknown although replays were made for them; `None` otherwise.
    pub no_bounds: Option<String>,
    /// The cost of the hosts and their network. An error is the reason why there is none.
    pub cost: Result<Cost, String>,
    /// The time of the start, in seconds. `None`: it is unknown.
    pub start: Option<f64>,
    /// The time divided into start, iterations and rest; `None` without a loop.
    pub prediction: Option<Result<Prediction, NoPrediction>>,
    /// The time of an iteration of the loop, in seconds: the usual one, or the mean if iterations
    /// get longer or shorter.
    pub iteration: Option<f64>,
    /// The time by which machines are compared, in seconds. `None`: it is unknown.
    pub value: Option<f64>,
    /// The times of a trace in which receives from any source take the message that comes first,
    /// instead of that of the recorded source. `None`: it has no such receives, or the times are
    /// unknown.
    pub free: Option<FreeTimes>,
    /// The compared time with one recording left out, for each recording; of a single one with a
    /// part of the iterations left out, for each part. Empty if it has no loop with enough of them.
    pub without: Vec<f64>,
    /// True if `without` has the times with a part of the iterations left out: there is one
    /// recording, with a loop.
    pub is_of_iterations: bool,
    /// The runs with each placement; empty if there is one.
    pub placed: Vec<PlacedRun>,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The summary of a run that ended.
    Ran(Box<Summary>),
    /// The reason why the recording cannot be replayed on this machine.
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
            free: None,
            without: Vec::new(),
            is_of_iterations: false,
            placed: Vec::new(),
            cost: request.machines[machine].cost(ranks, request.per_host),
        }
    }

    /// The summary of the run; `None` if the recording cannot be replayed on this machine.
    pub fn summary(&self) -> Option<&Summary> {
        match &self.outcome {
            Outcome::Ran(summary) => Some(summary),
            Outcome::Refused(_) => None,
        }
    }

    /// The virtual time of the run, in seconds; `None` if the recording cannot be replayed on this
    /// machine.
    pub fn time(&self) -> Option<f64> {
        self.summary()?.virtual_s
    }

    /// The difference between the longest and the shortest of the times [`without`](Row::without)
    /// one recording or part, as a share of [`value`](Row::value). `None`: it is unknown.
    pub fn spread(&self) -> Option<f64> {
        spread(&self.without, self.value?)
    }

    /// The shortest and the longest compared time among several placements, in seconds. `None`:
    /// there is one placement.
    pub fn placed_range(&self) -> Option<(f64, f64)> {
        let times = || self.placed.iter().filter_map(|run| run.value);
        Some((times().reduce(f64::min)?, times().reduce(f64::max)?))
    }

    /// The difference of these times, as a share of the compared time.
    pub fn placed_spread(&self) -> Option<f64> {
        let (least, most) = self.placed_range()?;
        Some((most - least) / self.value?)
    }

    /// The value by which this row is compared with placement number `at`, where the row's time is
    /// `value`.
    pub(crate) fn value_placed(&self, value: f64, at: usize) -> Option<f64> {
        Some(value * self.placed.get(at)?.value? / self.value?)
    }

    /// The cost of the compared time, in units of the currency: an hour's cost times that time.
    /// `None`: one of them is unknown.
    pub fn money(&self) -> Option<f64> {
        Some(self.cost.as_ref().ok()?.of(self.value?))
    }
}

/// The difference between the longest and the shortest of `times`, divided by `time`; `None`
/// without any.
pub(crate) fn spread(times: &[f64], time: f64) -> Option<f64> {
    let longest = times.iter().copied().reduce(f64::max)?;
    let shortest = times.iter().copied().reduce(f64::min)?;
    Some((longest - shortest) / time)
}
