//! A comparison of modelled machines for one program. The program runs once for each number of
//! ranks, which records its computing; then it runs again on each machine with the recorded times.
//!
//! All runs are jobs of `fishplate run`. Further runs with idealised machines show the bound of the
//! program ([`bounds`]), and runs with changed assumptions show how sure the answer is
//! ([`sensitivity`]).
//!
//! Invariant: the same records and machines give the same bytes.

pub mod advice;
pub mod bounds;
mod jobs;
pub mod machine;
mod page;
pub mod record;
pub mod report;
pub mod sensitivity;
mod show;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use profile::Summary;

use advice::Advice;
use bounds::{Bounds, Ideal};
pub use jobs::Runner;
use jobs::Task;
pub use machine::Machine;
pub use page::page;
use record::Record;
pub use report::Comparison;
use report::{Outcome, Row};
pub use show::{json, text};

/// The comparison that a user asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The machines.
    pub machines: Vec<Machine>,
    /// The numbers of ranks.
    pub ranks: Vec<usize>,
    /// Ranks on each host.
    pub per_host: usize,
    /// Further words of `fishplate run`, such as `-x NAME=VALUE`.
    pub options: Vec<OsString>,
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// The file that keeps the record.
    pub keep: Option<PathBuf>,
    /// The file with a record from before.
    pub reuse: Option<PathBuf>,
}

impl Request {
    /// The number of runs of the program without those that search the certainty.
    fn runs(&self) -> usize {
        let recordings = usize::from(self.reuse.is_none());
        // The machine itself, and each kind of cost ideal; the ideal machine once.
        let replays = self.machines.len() * (1 + Ideal::SINGLE.len()) + 1;
        self.ranks.len() * (recordings + replays)
    }

    /// The number of runs for the user, before the first.
    fn announced(&self) -> String {
        let program = record::words(&self.program[..1]);
        let more = match self.machines.len() {
            1 => "",
            _ => ", then usually 2 to 40 times to find how sure the answer is",
        };
        format!(
            "{program} runs {} times{more}; each run writes its files again",
            self.runs()
        )
    }
}

/// Compares. `runner` starts the jobs.
pub fn run(request: &Request, runner: &mut Runner) -> Result<Comparison> {
    let record = record(request, runner)?;
    let mut rows = replay(request, &record, runner)?;
    find_bounds(request, &record, runner, &mut rows)?;
    let advice = advise(request, &record, runner, &rows)?;
    Ok(Comparison {
        program: record::words(&request.program),
        per_host: request.per_host,
        machines: request.machines.iter().map(Machine::facts).collect(),
        rows,
        advice,
    })
}

/// Reads the record, or makes one on the first machine.
fn record(request: &Request, runner: &mut Runner) -> Result<Record> {
    let record = match &request.reuse {
        Some(file) => {
            let record = Record::read(file, &request.program, &request.ranks)?;
            runner.say(&request.announced());
            record
        }
        None => {
            runner.say(&request.announced());
            let first = &request.machines[0];
            let phase = format!("recording on {}", first.name);
            runner.phase(&phase, Some(request.ranks.len()));
            let mut traces = Vec::new();
            for ranks in &request.ranks {
                traces.push((*ranks, runner.record(request, first, *ranks)?));
            }
            Record { traces }
        }
    };
    if let Some(file) = &request.keep {
        record.write(file)?;
    }
    Ok(record)
}

/// Replays the record on every machine.
fn replay(request: &Request, record: &Record, runner: &mut Runner) -> Result<Vec<Row>> {
    let mut tasks = Vec::new();
    for (ranks, _) in &record.traces {
        tasks.extend((0..request.machines.len()).map(|machine| Task::plain(machine, *ranks)));
    }
    let machines = match request.machines.len() {
        1 => "1 machine".to_owned(),
        many => format!("{many} machines"),
    };
    runner.phase(&format!("replaying on {machines}"), Some(tasks.len()));
    let outcomes = runner.replay(request, record, &tasks)?;
    let rows: Vec<Row> = tasks
        .iter()
        .zip(outcomes)
        .map(|(task, outcome)| Row::new(request, task.machine, task.ranks, outcome))
        .collect();
    let has_run = rows.iter().any(|row| row.summary().is_some());
    if let (false, Outcome::Refused(why)) = (has_run, &rows[0].outcome) {
        bail!("the program cannot be replayed on any of the machines: {why}");
    }
    Ok(rows)
}

/// Runs idealised machines, for the bound of each row.
fn find_bounds(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    rows: &mut [Row],
) -> Result<()> {
    let mut tasks = Vec::new();
    for (ranks, _) in &record.traces {
        tasks.push(Task::ideal(request, 0, *ranks, Ideal::Everything));
        for machine in 0..request.machines.len() {
            for ideal in Ideal::SINGLE {
                tasks.push(Task::ideal(request, machine, *ranks, ideal));
            }
        }
    }
    runner.phase("replaying on ideal machines", Some(tasks.len()));
    let outcomes = runner.replay(request, record, &tasks)?;
    let time = |machine: usize, ranks: usize, ideal: Ideal| {
        let at = tasks.iter().position(|task| {
            (task.machine, task.ranks, task.ideal) == (machine, ranks, Some(ideal))
        })?;
        outcomes[at]
            .as_ref()
            .ok()
            .and_then(|summary| summary.virtual_s)
    };
    for row in rows {
        let Outcome::Ran(summary) = &row.outcome else {
            continue;
        };
        let single = Ideal::SINGLE.map(|ideal| time(row.machine, row.ranks, ideal));
        let everything = time(0, row.ranks, Ideal::Everything);
        if let (Some(everything), [Some(latency), Some(bandwidth), Some(rate)]) =
            (everything, single)
        {
            row.bounds = Some(Bounds::of(summary, everything, [latency, bandwidth, rate]));
        }
    }
    Ok(())
}

/// Finds the best machine for the most ranks, and how sure that is.
fn advise(request: &Request, record: &Record, runner: &mut Runner, rows: &[Row]) -> Result<Advice> {
    let most = request.ranks.iter().copied().max().unwrap_or(1);
    let mut advice = Advice::of(rows, &request.machines, most);
    let (Some(best), Some(rival)) = (advice.best, advice.rival) else {
        return Ok(advice);
    };
    let duel = sensitivity::Duel {
        best: &request.machines[best],
        rival: &request.machines[rival],
        by_money: advice.by_money.then_some((most, request.per_host)),
    };
    runner.phase("searching how sure the answer is", None);
    let found = sensitivity::find(&duel, |pairs| {
        let mut tasks = Vec::new();
        for [of_best, of_rival] in pairs {
            tasks.push(Task::changed(best, most, of_best.clone()));
            tasks.push(Task::changed(rival, most, of_rival.clone()));
        }
        let outcomes = runner.replay(request, record, &tasks)?;
        let times: Result<Vec<f64>> = outcomes.into_iter().map(time).collect();
        Ok(times?.chunks(2).map(|pair| [pair[0], pair[1]]).collect())
    })?;
    advice.sensitivity = Some(found);
    Ok(advice)
}

fn time(outcome: Result<Summary, String>) -> Result<f64> {
    let summary = outcome.map_err(anyhow::Error::msg)?;
    let time = summary.virtual_s;
    time.ok_or_else(|| anyhow::anyhow!("a summary has no virtual time"))
}
