//! The replays with a free start, which show what the start of a run takes.
//!
//! If a loop decides, two sets of rows need replays with a free start: those of the first machine,
//! for the iteration from which on iterations count, and those with the best number of ranks, whose
//! time is divided. Otherwise the start is part of the measure that decides, so every row needs it.

use anyhow::Result;
use profile::Summary;

use crate::advice::Advice;
use crate::jobs::{Runner, Task};
use crate::plan::Divided;
use crate::record::Record;
use crate::row::Row;
use crate::work::Measure;
use crate::{Request, divide};

/// Divides the time of each row, and replays with a free start what that needs. The result is the
/// measure that decides.
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
