//! Receives from any source: the difference between the sources of the recorded run, which a
//! comparison takes, and those whose messages come first on each machine.

use anyhow::Result;

use crate::Request;
use crate::jobs::{Runner, Task};
use crate::other_answers::is_other;
use crate::record::Record;
use crate::row::{FreeTimes, Row, SPREAD};
use crate::work::Measure;

/// The difference that the sources of receives from any source make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FreeSources {
    /// True if a machine other than the recommended ones is better with the sources that come
    /// first.
    pub changes_answer: bool,
    /// The greatest difference of a time, as a share.
    pub change: f64,
}

impl FreeSources {
    /// The difference in these rows. `order`: their values and machines. `equals`: the recommended
    /// machines.
    pub(crate) fn of(
        rows: &[&Row],
        order: &[(f64, usize)],
        equals: &[usize],
    ) -> Option<FreeSources> {
        let change = |row: &&Row| Some((row.free?.value / row.value? - 1.0).abs());
        let of = |machine: usize| rows.iter().find(|row| row.machine == machine);
        // Prices do not depend on times.
        let value = |machine: usize| {
            let usual = order.iter().find(|of| of.1 == machine)?.0;
            let row = of(machine)?;
            Some(usual * row.free?.value / row.value?)
        };
        Some(FreeSources {
            change: rows.iter().filter_map(change).reduce(f64::max)?,
            changes_answer: is_other(order, equals, value),
        })
    }

    /// True if the difference is so large that no answer is sure.
    pub(crate) fn decides(&self) -> bool {
        self.changes_answer || self.change > SPREAD
    }

    /// The sentence about the difference.
    pub(crate) fn sentence(&self) -> String {
        let what = match self.changes_answer {
            true => "the answer is another one".into(),
            false => format!("a time is up to {:.0} % another one", self.change * 100.0),
        };
        format!(
            "this is unsure: its receives from any source take the messages of the recorded run, and with those that come first {what}; record on one of these machines (--fabric)"
        )
    }
}

/// Finds the times of rows whose receives from any source take the message that comes first.
pub(crate) fn find(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    rows: &mut [Row],
    measure: Measure,
) -> Result<()> {
    if request.quick || !record.has_wildcards() {
        return Ok(());
    }
    let rows: Vec<&mut Row> = rows.iter_mut().filter(|row| row.value.is_some()).collect();
    let task = |row: &&mut Row| {
        let mut task = Task::plain(row.machine, row.ranks);
        task.has_free_sources = true;
        task
    };
    let tasks: Vec<Task> = rows.iter().map(task).collect();
    runner.phase(
        "replaying with the sources that come first",
        Some(tasks.len()),
    );
    let outcomes = runner.replay(request, record, &tasks)?;
    for (row, outcome) in rows.into_iter().zip(outcomes) {
        let marks = record.of(row.ranks);
        let marks = marks.and_then(|of| of.marks(None, &request.wanted));
        match outcome {
            Ok(summary) => {
                let start = row.start.unwrap_or(0.0);
                let value = measure.seconds(marks.as_ref(), &summary, start);
                let times = summary.virtual_s.zip(value);
                row.free = times.map(|(whole, value)| FreeTimes { whole, value });
            }
            Err(why) => runner.say(&format!(
                "on {} the run fails if receives from any source take the messages that come first: {why}",
                request.machines[row.machine].name
            )),
        }
    }
    Ok(())
}
