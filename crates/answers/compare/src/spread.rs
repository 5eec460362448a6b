//! Computes how much each recording influences the answer: the times of rows with that recording
//! left out.
//!
//! Every machine is charged the same computing, so leaving out a recording changes the time by
//! about the same amount on each. Only the first machine replays; the others' times are assumed to
//! change by the same difference. If that could change the answer, the best machine and its
//! challenger replay too.

use anyhow::Result;

use crate::advice::Advice;
use crate::jobs::{Runner, Task};
use crate::record::{Record, Recordings};
use crate::row::Row;
use crate::work::Measure;
use crate::{Request, first_values};

/// A number of ranks is far from the best if it takes this multiple of the best time on the first
/// machine: no further recording can change the answer.
const FAR: f64 = 1.25;

/// The numbers of ranks that take much longer than the best one on the first machine.
pub(crate) fn far(request: &Request, record: &Record, runner: &mut Runner) -> Result<Vec<usize>> {
    if request.quick || record.counts.len() < 2 {
        return Ok(Vec::new());
    }
    let plain = |of: &Recordings| Task::plain(0, of.ranks);
    let tasks: Vec<Task> = record.counts.iter().map(plain).collect();
    runner.phase("replaying on the first machine", Some(tasks.len()));
    let values = first_values(request, record, runner, &tasks)?;
    let best = values
        .iter()
        .flatten()
        .copied()
        .fold(f64::INFINITY, f64::min);
    let is_far = |value: &Option<f64>| value.is_some_and(|value| value > best * FAR);
    let counts = record.counts.iter().zip(&values);
    let far = counts.filter(|(_, value)| is_far(value));
    Ok(far.map(|(of, _)| of.ranks).collect())
}

/// Finds the times of each row with each of its recordings left out.
pub(crate) fn find(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    rows: &mut [Row],
    measure: Measure,
) -> Result<()> {
    if request.quick {
        return Ok(());
    }
    let far = far(request, record, runner)?;
    let phase = "replaying each recording left out in turn";
    let is_first = |row: &Row| row.machine == 0 && !far.contains(&row.ranks);
    replay(request, record, runner, rows, measure, phase, is_first)?;
    let answer = Advice::of(rows, &request.machines);
    let at_stake = match could_change(&answer, rows) {
        true => [answer.best(), answer.challenger()],
        false => [None, None],
    };
    let is_at_stake = |row: &Row| {
        row.machine != 0 && row.ranks == answer.ranks && at_stake.contains(&Some(row.machine))
    };
    let phase = "replaying the same on the two best machines";
    replay(request, record, runner, rows, measure, phase, is_at_stake)?;
    shift(request, rows);
    of_iterations(record, rows, measure);
    Ok(())
}

/// Finds the times of the rows of a single recording with a part of the iterations left out.
fn of_iterations(record: &Record, rows: &mut [Row], measure: Measure) {
    for row in rows {
        let Some(of) = record.of(row.ranks).filter(|of| of.recordings.len() == 1) else {
            continue;
        };
        let found = of.work.as_ref().and_then(|work| work.found.as_ref().ok());
        if let (Some(marks), Some(summary)) = (found, row.summary()) {
            let start = row.start.unwrap_or(0.0);
            row.without = measure.without_parts(marks, summary, start);
            row.is_of_iterations = !row.without.is_empty();
        }
    }
}

/// True if the answer depends on computing whose spread is unknown.
pub(crate) fn is_unknown(record: &Record, rows: &[Row], ranks: usize) -> bool {
    let computes = |of: &Recordings| of.middle(None).is_some_and(|middle| middle.total() > 0);
    let is_single = record
        .of(ranks)
        .is_some_and(|of| of.recordings.len() == 1 && computes(of));
    let here = rows.iter().filter(|row| row.ranks == ranks);
    is_single && here.filter_map(Row::spread).next().is_none()
}

/// True if the lead of the answer is so small that a recording may change it: at most twice the
/// greatest change by a single recording.
fn could_change(answer: &Advice, rows: &[Row]) -> bool {
    let first = rows
        .iter()
        .find(|row| (row.machine, row.ranks) == (0, answer.ranks));
    let changes = first.and_then(|row| {
        let value = row.value?;
        let changes = row.without.iter().map(|other| (other / value - 1.0).abs());
        changes.reduce(f64::max)
    });
    answer.rival.is_some() && changes.is_some_and(|most| answer.lead - 1.0 <= 2.0 * most)
}

/// Replays the rows for which `is_wanted` is true, with each recording left out, in a phase of this
/// name.
fn replay(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    rows: &mut [Row],
    measure: Measure,
    phase: &str,
    is_wanted: impl Fn(&Row) -> bool,
) -> Result<()> {
    let recordings = |row: &Row| record.of(row.ranks).map_or(0, |of| of.recordings.len());
    let wanted = rows.iter().filter(|row| is_wanted(row));
    let tasks: Vec<Task> = wanted
        .filter(|row| recordings(row) > 1)
        .flat_map(|row| {
            let all = 0..recordings(row);
            all.map(|at| Task::without(row.machine, row.ranks, at))
        })
        .collect();
    if tasks.is_empty() {
        return Ok(());
    }
    runner.phase(phase, Some(tasks.len()));
    for (task, outcome) in tasks.iter().zip(runner.replay(request, record, &tasks)?) {
        let of = |row: &&mut Row| (row.machine, row.ranks) == (task.machine, task.ranks);
        let row = rows.iter_mut().find(of);
        let marks = record.of(task.ranks);
        let marks = marks.and_then(|of| of.marks(task.without, &request.wanted));
        if let (Some(row), Ok(summary)) = (row, outcome) {
            let start = row.start.unwrap_or(0.0);
            let seconds = measure.seconds(marks.as_ref(), &summary, start);
            row.without.extend(seconds);
        }
    }
    Ok(())
}

/// Sets the times without a recording of rows that were not replayed: they change by as much as
/// those of the first machine.
fn shift(request: &Request, rows: &mut [Row]) {
    let firsts = rows.iter().filter(|row| row.machine == 0);
    let firsts = firsts.filter_map(|row| Some((row.ranks, row.value?, row.without.clone())));
    let firsts: Vec<_> = firsts.collect();
    for row in rows.iter_mut().filter(|row| row.without.is_empty()) {
        let first = firsts.iter().find(|first| first.0 == row.ranks);
        let (Some((_, usual, without)), Some(value)) = (first, row.value) else {
            continue;
        };
        let scale = |machine: usize| request.machines[machine].compute_scale as f64;
        let scale = scale(row.machine) / scale(0);
        let changed = without.iter().map(|other| value + (other - usual) * scale);
        row.without = changed.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::request;
    use profile::Summary;

    /// Rows of two machines with 8 ranks: `seconds` are the compared times, and `without` the times
    /// of the first machine with each recording left out.
    fn rows(request: &Request, seconds: [f64; 2], without: &[f64]) -> Vec<Row> {
        let row = |machine: usize| {
            let mut row = Row::new(request, machine, 8, Ok(Summary::default()));
            row.value = Some(seconds[machine]);
            row
        };
        let mut rows = vec![row(0), row(1)];
        rows[0].without = without.to_vec();
        rows
    }

    #[test]
    fn other_machines_change_by_as_much_as_the_first() {
        let mut request = request(&["qdr", "edr"], &[8]);
        let mut rows = rows(&request, [10.0, 6.0], &[10.0, 9.0, 12.0]);
        shift(&request, &mut rows);
        assert_eq!(rows[1].without, [6.0, 5.0, 8.0]);
        // Processors that are twice as fast change the time by half as much.
        request.machines[1] = request.machines[1].clone().with_speed(2.0);
        rows[1].without.clear();
        shift(&request, &mut rows);
        assert_eq!(rows[1].without, [6.0, 5.5, 7.0]);
    }

    #[test]
    fn a_small_lead_is_looked_at_more_closely() {
        let request = request(&["qdr", "edr"], &[8]);
        let changes = |seconds, without: &[f64]| {
            let rows = rows(&request, seconds, without);
            could_change(&Advice::of(&rows, &request.machines), &rows)
        };
        // A recording changes the first machine's time by 3 %; the lead is 5 %, then 10 %.
        assert!(changes([10.5, 10.0], &[10.5, 10.815]));
        assert!(!changes([11.0, 10.0], &[11.0, 11.33]));
        // Between equal machines there is no lead.
        assert!(!changes([10.1, 10.0], &[10.1, 12.0]));
    }
}
