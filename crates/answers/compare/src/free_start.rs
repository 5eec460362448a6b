//! Replays with a free start, which show how long the start of a run takes.
//!
//! If iterations of a loop are compared, two sets of rows need replays with a free start: the rows
//! of the first machine, to find the first iteration whose time is used, and the rows with the best
//! number of ranks, whose time is divided. Otherwise the start is part of the compared time, so
//! every row needs them.

use anyhow::Result;
use profile::Summary;

use crate::advice::Advice;
use crate::jobs::{Runner, Task};
use crate::plan::Divided;
use crate::record::Record;
use crate::row::Row;
use crate::work::Measure;
use crate::{Request, divide};

/// Divides the time of each row, and makes the replays with a free start for that. Returns the part
/// of a run whose time is compared.
pub(crate) fn divide_all(
    request: &Request,
    record: &mut Record,
    runner: &mut Runner,
    rows: &mut [Row],
) -> Result<Measure> {
    let mut free: Vec<Option<Summary>> = vec![None; rows.len()];
    let mut known = vec![false; rows.len()];
    loop {
        let measure = divide(request, record, rows, &free);
        let answer = Advice::of(rows, &request.machines);
        let is_wanted = |row: &Row| match (measure, request.divided()) {
            (Measure::Loop | Measure::WholeLoop, None) => false,
            (Measure::Loop | Measure::WholeLoop, Some(Divided::BestRanks)) => {
                row.machine == 0 || row.ranks == answer.ranks
            }
            _ => true,
        };
        let new = (0..rows.len()).filter(|at| !known[*at] && is_wanted(&rows[*at]));
        let new: Vec<usize> = new.collect();
        if new.is_empty() {
            return Ok(measure);
        }
        let task = |at: &usize| Task::plain(rows[*at].machine, rows[*at].ranks).with_free_start();
        let tasks: Vec<Task> = new.iter().map(task).collect();
        runner.phase("replaying with a free start", Some(tasks.len()));
        for (at, outcome) in new.iter().zip(runner.replay(request, record, &tasks)?) {
            (known[*at], free[*at]) = (true, outcome.ok());
        }
    }
}
