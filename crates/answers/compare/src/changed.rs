//! The replays of two machines with changed values, for the search of assumptions that decide.
//!
//! With `--fast` they are estimated: the exact time of a machine, plus the difference that the
//! changed values make to the fast way. The shares of a time are estimated like that, too. An error
//! of the fast way is then one of a small difference, and what both replays have of it cancels out.

use anyhow::{Context, Result};
use profile::Summary;

use crate::Request;
use crate::jobs::{Runner, Task};
use crate::record::Record;
use crate::row::Row;
use crate::sensitivity::{Estimate, Pair, Times};
use crate::work::{Marks, Measure};

/// The greatest error of a difference of two times of the fast way, as a share of it, with one rank
/// on a host and with several. Assumed: three times the greatest error of a time in the tests
/// beside the exact way.
const ERRORS: [f64; 2] = [0.25, 1.0];

/// The replays of two machines with one number of ranks.
pub(crate) struct Changed<'a> {
    request: &'a Request,
    record: &'a Record,
    runner: &'a mut Runner,
    rows: &'a [Row],
    measure: Measure,
    /// The numbers of the best machine and its rival in the request.
    machines: [usize; 2],
    ranks: usize,
    marks: Option<Marks>,
    /// The times of both machines by the fast way, without changed values.
    usual: Option<[f64; 2]>,
}

impl Request {
    /// A replay that explains a time or says how sure it is: the fast way, if the user wants that.
    pub(crate) fn estimated(&self, task: Task) -> Task {
        match self.is_fast {
            true => task.the_fast_way(),
            false => task,
        }
    }

    /// The replay with a free start beside which estimates are made; `None`: there are none.
    pub(crate) fn estimated_free(&self, machine: usize, ranks: usize) -> Option<Task> {
        let free = Task::plain(machine, ranks).with_free_start();
        self.is_fast.then(|| free.the_fast_way())
    }
}

impl<'a> Changed<'a> {
    pub(crate) fn new(
        request: &'a Request,
        record: &'a Record,
        runner: &'a mut Runner,
        rows: &'a [Row],
        measure: Measure,
        (machines, ranks): ([usize; 2], usize),
    ) -> Changed<'a> {
        let of = record.of(ranks);
        Changed {
            marks: of.and_then(|of| of.marks(None, &request.wanted)),
            usual: None,
            request,
            record,
            runner,
            rows,
            measure,
            machines,
            ranks,
        }
    }

    fn row(&self, machine: usize) -> Option<&Row> {
        let is_of = |row: &&Row| (row.machine, row.ranks) == (machine, self.ranks);
        self.rows.iter().find(is_of)
    }

    /// The compared times of replays of these pairs.
    fn times(&mut self, pairs: &[Pair], is_fast: bool) -> Result<Vec<[f64; 2]>> {
        let mut tasks = Vec::new();
        for pair in pairs {
            for (machine, changes) in self.machines.into_iter().zip(pair) {
                let task = Task::changed(machine, self.ranks, changes.clone());
                tasks.push(match is_fast {
                    true => task.the_fast_way(),
                    false => task,
                });
            }
        }
        let outcomes = self.runner.replay(self.request, self.record, &tasks)?;
        let seconds = |(task, outcome): (&Task, Result<Summary, String>)| {
            let summary = outcome.map_err(anyhow::Error::msg)?;
            let start = self.row(task.machine).and_then(|row| row.start);
            let start = start.unwrap_or(0.0);
            let seconds = self.measure.seconds(self.marks.as_ref(), &summary, start);
            seconds.context("a replay with a changed value has no time that can be compared")
        };
        let times: Result<Vec<f64>> = tasks.iter().zip(outcomes).map(seconds).collect();
        Ok(times?.chunks(2).map(|pair| [pair[0], pair[1]]).collect())
    }
}

impl Times for Changed<'_> {
    fn estimates(&mut self, pairs: &[Pair]) -> Result<Option<Vec<Estimate>>> {
        if !self.request.is_fast || pairs.is_empty() {
            return Ok(None);
        }
        let usual = match self.usual {
            Some(usual) => usual,
            None => self.times(&[Pair::default()], true)?[0],
        };
        self.usual = Some(usual);
        let exact = self.machines.map(|machine| self.row(machine)?.value);
        let [Some(best), Some(rival)] = exact else {
            return Ok(None);
        };
        let error = ERRORS[usize::from(self.request.per_host > 1)];
        let estimate = |times: [f64; 2]| {
            let changes = [0, 1].map(|of| times[of] - usual[of]);
            Estimate {
                times: [best + changes[0], rival + changes[1]],
                errors: changes.map(|change| change.abs() * error),
            }
        };
        let times = self.times(pairs, true)?;
        Ok(Some(times.into_iter().map(estimate).collect()))
    }

    fn exact(&mut self, pairs: &[Pair]) -> Result<Vec<[f64; 2]>> {
        self.times(pairs, false)
    }
}
