//! The replays of a comparison with several placements of the job.
//!
//! The time of a row with several placements is that of the replay in the middle, by the time of
//! the run. All further replays of the row have the placement of that replay.

use anyhow::Result;

use crate::Request;
use crate::ideal::Ideal;
use crate::jobs::{Outcome, Runner, Task};
use crate::machine::JobOn;
use crate::placements::{Draw, PlacedRun};
use crate::record::Record;
use crate::row::Row;
use crate::work::Measure;

impl Request {
    /// The kinds of cost that a machine has for the job of this comparison.
    pub(crate) fn ideals(&self, machine: usize, ranks: usize) -> impl Iterator<Item = Ideal> {
        // Of several placements each may be the usual one.
        let placements = self.placement.each.iter();
        let jobs = placements.map(|draw| JobOn {
            ranks,
            per_host: self.per_host,
            placement: draw.placement.clone(),
        });
        let kinds = jobs.map(|job| Ideal::of(&self.machines[machine], &job).collect());
        let kinds = kinds.max_by_key(Vec::len).unwrap_or_default();
        kinds.into_iter()
    }

    /// A replay with the placement `usual`, or the first of this comparison, unless it has one.
    pub(crate) fn placed(&self, task: Task, usual: Option<&Draw>) -> Task {
        let first = usual.or(self.placement.each.first());
        let is_recorded = task.machine >= self.machines.len();
        let placement = match (&task.placement, first) {
            (None, Some(first)) if !is_recorded && !first.is_usual() => Some(first.clone()),
            _ => task.placement,
        };
        Task { placement, ..task }
    }
}

/// Replays tasks with all placements of the comparison, and makes the row of each.
pub(crate) fn rows(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    tasks: &[Task],
) -> Result<Vec<Row>> {
    let each = &request.placement.each;
    let with = |task: &Task, draw: &Draw| Task {
        placement: Some(draw.clone()),
        ..task.clone()
    };
    let placed = tasks
        .iter()
        .flat_map(|task| each.iter().map(move |draw| with(task, draw)));
    let placed: Vec<Task> = placed.collect();
    let outcomes = runner.replay(request, record, &placed)?;
    let of_rows = tasks.iter().zip(outcomes.chunks(each.len()));
    let row = |(task, outcomes): (&Task, &[Outcome])| {
        let middle = middle(outcomes);
        runner.set_usual((task.machine, task.ranks), each[middle].clone());
        let ran = each.iter().zip(outcomes).filter_map(|(draw, outcome)| {
            Some(PlacedRun {
                draw: draw.clone(),
                summary: outcome.as_ref().ok()?.clone(),
                value: None,
            })
        });
        Row {
            placed: ran.collect(),
            ..Row::new(request, task.machine, task.ranks, outcomes[middle].clone())
        }
    };
    Ok(of_rows.map(row).collect())
}

/// The number of the outcome in the middle, by the time of the run; of a failed one, if there is
/// one.
fn middle(outcomes: &[Outcome]) -> usize {
    let time = |at: &usize| match &outcomes[*at] {
        Ok(summary) => summary.virtual_s.unwrap_or(f64::INFINITY),
        Err(_) => f64::INFINITY,
    };
    if let Some(failed) = outcomes.iter().position(Result::is_err) {
        return failed;
    }
    let mut order: Vec<usize> = (0..outcomes.len()).collect();
    order.sort_by(|one, other| time(one).total_cmp(&time(other)));
    order[(order.len() - 1) / 2]
}

/// Sets the compared times of the rows with each placement.
pub(crate) fn value(record: &Record, rows: &mut [Row], measure: Measure) {
    for row in rows {
        let work = record.of(row.ranks).and_then(|of| of.work.as_ref());
        let marks = work.and_then(|work| work.found.as_ref().ok());
        let start = row.start.unwrap_or(0.0);
        for run in &mut row.placed {
            run.value = measure.seconds(marks, &run.summary, start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::Summary;

    #[test]
    fn the_middle_is_by_time() {
        let ran = |seconds: f64| {
            Ok(Summary {
                virtual_s: Some(seconds),
                ..Summary::default()
            })
        };
        assert_eq!(middle(&[ran(3.0), ran(1.0), ran(2.0)]), 2);
        assert_eq!(middle(&[ran(3.0), ran(1.0)]), 1);
        assert_eq!(middle(&[ran(3.0), Err("full".into()), ran(2.0)]), 1);
    }
}
