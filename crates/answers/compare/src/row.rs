//! One row of a comparison: the program on one machine with one number of ranks.

use fabric::{Price, PriceGap};
use profile::Summary;

use crate::Request;
use crate::bounds::Bounds;
use crate::prediction::{NoPrediction, Prediction};

/// Times that differ by less than this share count as equal.
pub const EQUAL: f64 = 0.02;

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
    /// The reason why the shares are unknown, although a replay was made for them.
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
