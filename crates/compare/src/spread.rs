//! The spread of the recordings: the times without each of them in turn.
//!
//! Every machine charges the same computing, so without a recording the time changes by about as
//! much on each. The first machine replays; the others' times change by its difference. Where that
//! could change the answer, the two machines between which it is replay too.

use anyhow::Result;

use crate::Request;
use crate::advice::Advice;
use crate::jobs::{Runner, Task};
use crate::record::Record;
use crate::report::Row;
use crate::work::Measure;

/// Finds the times of each row without each of its recordings.
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
    let phase = "replaying each recording left out in turn";
    replay(
        request,
        record,
        runner,
        rows,
        (measure, phase, &|row| row.machine == 0),
    )?;
    let answer = Advice::of(rows, &request.machines);
    let at_stake = match could_change(&answer, rows) {
        true => [answer.best(), answer.challenger()],
        false => [None, None],
    };
    let is_at_stake = |row: &Row| {
        row.machine != 0 && row.ranks == answer.ranks && at_stake.contains(&Some(row.machine))
    };
    let phase = "replaying the same on the two best machines";
    replay(
        request,
        record,
        runner,
        rows,
        (measure, phase, &is_at_stake),
    )?;
    shift(request, rows);
    Ok(())
}

/// Whether the lead of the answer is so small that a recording may decide: at most twice what any
/// of them changes.
fn could_change(answer: &Advice, rows: &[Row]) -> bool {
    let first = rows
        .iter()
        .find(|row| (row.machine, row.ranks) == (0, answer.ranks));
    let changes = first.and_then(|row| {
        let time = row.value?;
        let changes = row.without.iter().map(|other| (other / time - 1.0).abs());
        changes.reduce(f64::max)
    });
    answer.rival.is_some() && changes.is_some_and(|most| answer.lead - 1.0 <= 2.0 * most)
}

/// Replays the wanted rows without each of their recordings, in a phase of this name.
fn replay(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    rows: &mut [Row],
    (measure, phase, is_wanted): (Measure, &str, &dyn Fn(&Row) -> bool),
) -> Result<()> {
    let recordings = |row: &Row| record.of(row.ranks).map_or(0, |of| of.traces.len());
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
        let of = record.of(task.ranks);
        let marks = of.and_then(|of| of.marks(task.without, &request.wanted));
        if let (Some(row), Ok(summary)) = (row, outcome) {
            let start = row.start.unwrap_or(0.0);
            row.without
                .extend(measure.seconds(marks.as_ref(), &summary, start));
        }
    }
    Ok(())
}

/// The times of rows that were not replayed: they change by as much as the first machine's.
fn shift(request: &Request, rows: &mut [Row]) {
    let firsts = rows.iter().filter(|row| row.machine == 0);
    let firsts = firsts.filter_map(|row| Some((row.ranks, row.value?, row.without.clone())));
    let firsts: Vec<_> = firsts.collect();
    for row in rows.iter_mut().filter(|row| row.without.is_empty()) {
        let first = firsts.iter().find(|first| first.0 == row.ranks);
        let (Some((_, usual, without)), Some(time)) = (first, row.value) else {
            continue;
        };
        let scale = |machine: usize| request.machines[machine].compute_scale as f64;
        let scale = scale(row.machine) / scale(0);
        let changed = without.iter().map(|other| time + (other - usual) * scale);
        row.without = changed.collect();
    }
}
