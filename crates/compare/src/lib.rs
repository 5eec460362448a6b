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
pub mod certainty;
mod jobs;
pub mod machine;
mod page;
pub mod record;
pub mod report;
pub mod sensitivity;
mod show;
mod surroundings;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use profile::Summary;

use advice::Advice;
use bounds::{Bounds, Ideal};
pub use jobs::Runner;
use jobs::Task;
pub use machine::Machine;
pub use page::{page, picture};
use record::{Collection, Record, Recordings};
pub use report::Comparison;
use report::{Outcome, Recorded, Row};
pub use show::{json, text};
use surroundings::FolderState;

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
    /// The number of recordings with each number of ranks. `None`: as many as are needed.
    pub recordings: Option<usize>,
    /// The folder in which the program runs.
    pub folder: RunFolder,
}

/// The folder in which the compared program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFolder {
    /// A folder for each run with links to what is in the current one.
    Scratch,
    /// This folder, in which they run one at a time.
    Here(PathBuf),
}

/// The recordings with which one number of ranks begins: the least that have a median.
const FIRST: usize = 3;
/// The most recordings with one number of ranks.
pub const MOST_RECORDINGS: usize = 9;
/// The recordings are enough once the time without any of them differs by at most this share.
const SETTLED: f64 = 0.02;

impl Request {
    /// The number of recordings with each number of ranks: the first ones and the most.
    fn recordings(&self) -> (usize, usize) {
        match self.recordings {
            Some(number) => (number, number),
            None => (FIRST, MOST_RECORDINGS),
        }
    }

    /// The number of runs of the program without further recordings and the search of the
    /// certainty. `recorded`: the recordings with each number of ranks, if they exist already.
    fn runs(&self, recorded: Option<&Record>) -> usize {
        let runs = |recordings: usize| {
            // The machine itself, each kind of cost ideal, and each recording left out; the ideal
            // machine once.
            let left_out = if recordings > 1 { recordings } else { 0 };
            let runs = |machine| 1 + Ideal::of(machine).count() + left_out;
            self.machines.iter().map(runs).sum::<usize>() + 1
        };
        match recorded {
            Some(record) => record.counts.iter().map(|of| runs(of.traces.len())).sum(),
            None => {
                let (first, _) = self.recordings();
                self.ranks.len() * (first + runs(first))
            }
        }
    }

    /// The number of runs, for a user who wants to know it before any.
    pub fn dry_run(&self) -> Result<String> {
        let record = self.reuse.as_deref();
        let record = record.map(|file| Record::read(file, &self.program, &self.ranks));
        Ok(self.announced(record.transpose()?.as_ref()))
    }

    /// The number of runs for the user, before the first.
    fn announced(&self, recorded: Option<&Record>) -> String {
        let program = record::words(&self.program[..1]);
        let mut more = match self.machines.len() {
            1 => String::new(),
            _ => ", then usually 2 to 40 times to find how sure the answer is".into(),
        };
        let (first, most) = self.recordings();
        if recorded.is_none() && first < most {
            // Two recordings more, each left out on each machine once, and all on the first machine
            // again.
            let each = 2 * (1 + self.machines.len()) + first;
            more += &format!(
                ", and {each} times more for each pair of recordings beyond {first} of a number of ranks, where they differ; a disturbed recording is made again, with at most {most} in all"
            );
        }
        let files = match &self.folder {
            RunFolder::Scratch => {
                "each run has a folder of its own, which is removed (--in)".into()
            }
            RunFolder::Here(folder) => {
                format!("each run writes its files to {} again", folder.display())
            }
        };
        format!(
            "{program} runs {} times{more}; {files}",
            self.runs(recorded)
        )
    }
}

/// Compares. `runner` starts the jobs.
pub fn run(request: &Request, runner: &mut Runner) -> Result<Comparison> {
    let before = FolderState::of(Path::new("."));
    runner.read_input()?;
    let record = record(request, runner)?;
    let mut rows = replay(request, &record, runner)?;
    find_bounds(request, &record, runner, &mut rows)?;
    find_spread(request, &record, runner, &mut rows)?;
    let advice = advise(request, &record, runner, &rows)?;
    if request.folder == RunFolder::Scratch {
        say_changed(request, &before, runner);
    }
    Ok(Comparison {
        program: record::words(&request.program),
        per_host: request.per_host,
        machines: request.machines.iter().map(Machine::facts).collect(),
        rows,
        recorded: record.counts.iter().map(recorded).collect(),
        advice,
    })
}

/// Names files of the current folder that runs have written to through the links to them.
fn say_changed(request: &Request, before: &FolderState, runner: &mut Runner) {
    let known: Vec<&Path> = request.keep.iter().map(PathBuf::as_path).collect();
    let changed = before.changed(&FolderState::of(Path::new(".")), &known);
    if !changed.is_empty() {
        runner.say(&format!(
            "files that were here before have changed meanwhile, perhaps by the runs, which write to a file that exists: {}",
            changed.join(", ")
        ));
    }
}

fn recorded(of: &Recordings) -> Recorded {
    let total = of.middle(None).map_or(0, |trace| trace.total());
    Recorded {
        ranks: of.ranks,
        recordings: of.traces.len(),
        aligned: of.are_aligned(),
        computing: total as f64 * 1e-9,
    }
}

/// Reads the record, or makes one on the first machine.
fn record(request: &Request, runner: &mut Runner) -> Result<Record> {
    let record = match &request.reuse {
        Some(file) => {
            let record = Record::read(file, &request.program, &request.ranks)?;
            runner.say(&request.announced(Some(&record)));
            record
        }
        None => {
            runner.say(&request.announced(None));
            make_record(request, runner)?
        }
    };
    if let Some(file) = &request.keep {
        record.write(file)?;
    }
    for of in &record.counts {
        for machine in &request.machines {
            machine.check_threads(of.ranks.min(request.per_host), of.threads)?;
        }
    }
    Ok(record)
}

/// Records on the first machine: disturbed recordings again, and more of them while they differ.
fn make_record(request: &Request, runner: &mut Runner) -> Result<Record> {
    let first = &request.machines[0];
    let (least, most) = request.recordings();
    let phase = format!("recording on {}", first.name);
    runner.phase(&phase, Some(least * request.ranks.len()));
    let mut collections = Vec::new();
    let mut record = Record::default();
    for ranks in &request.ranks {
        let mut made = Collection::default();
        made.fill(least, most, || runner.record(request, first, *ranks))?;
        record.counts.push(made.of(*ranks));
        collections.push(made);
    }
    for (at, made) in collections.iter_mut().enumerate() {
        let ranks = record.counts[at].ranks;
        while made.made() < most && is_unsettled(request, &record, at, runner)? {
            let phase = format!("recording {ranks} ranks again, because recordings differ");
            runner.phase(&phase, Some(2));
            let wanted = made.traces.len() + 2;
            made.fill(wanted, most, || runner.record(request, first, ranks))?;
            record.counts[at] = made.of(ranks);
            runner.forget(ranks);
        }
        if let Some(remark) = made.remark(ranks) {
            runner.say(&remark);
        }
    }
    Ok(record)
}

/// Whether the time on the first machine depends on one recording. A program that cannot be
/// replayed there is reported later.
fn is_unsettled(
    request: &Request,
    record: &Record,
    at: usize,
    runner: &mut Runner,
) -> Result<bool> {
    let Recordings { ranks, traces, .. } = &record.counts[at];
    let mut tasks = vec![Task::plain(0, *ranks)];
    tasks.extend((0..traces.len()).map(|recording| Task::without(0, *ranks, recording)));
    let phase = format!("replaying each recording of {ranks} ranks left out in turn");
    runner.phase(&phase, Some(tasks.len()));
    let outcomes = runner.replay(request, record, &tasks)?;
    let times = outcomes.into_iter().map(|outcome| outcome.ok()?.virtual_s);
    let Some(times) = times.collect::<Option<Vec<f64>>>() else {
        return Ok(false);
    };
    let spread = report::spread(&times[1..], times[0]);
    Ok(spread.is_some_and(|spread| spread > SETTLED))
}

/// Replays the record on every machine.
fn replay(request: &Request, record: &Record, runner: &mut Runner) -> Result<Vec<Row>> {
    let mut tasks = Vec::new();
    for Recordings { ranks, .. } in &record.counts {
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
    for Recordings { ranks, .. } in &record.counts {
        tasks.push(Task::ideal(request, 0, *ranks, Ideal::Everything));
        for machine in 0..request.machines.len() {
            for ideal in Ideal::of(&request.machines[machine]) {
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
        let has = |ideal| Ideal::of(&request.machines[row.machine]).any(|other| other == ideal);
        let single = Ideal::SINGLE.map(|ideal| match has(ideal) {
            true => time(row.machine, row.ranks, ideal),
            false => summary.virtual_s,
        });
        let everything = time(0, row.ranks, Ideal::Everything);
        if let (Some(everything), [Some(latency), Some(bandwidth), Some(rate), Some(storage)]) =
            (everything, single)
        {
            let single = [latency, bandwidth, rate, storage];
            row.bounds = Some(Bounds::of(summary, everything, single));
        }
    }
    Ok(())
}

/// Leaves each recording out in turn: the spread of each row.
fn find_spread(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    rows: &mut [Row],
) -> Result<()> {
    let several = record.counts.iter().filter(|of| of.traces.len() > 1);
    let numbered = several.flat_map(|of| (0..of.traces.len()).map(move |at| (of.ranks, at)));
    let machines = 0..request.machines.len();
    let tasks: Vec<Task> = numbered
        .flat_map(|(ranks, at)| machines.clone().map(move |of| Task::without(of, ranks, at)))
        .collect();
    if tasks.is_empty() {
        return Ok(());
    }
    let phase = "replaying each recording left out in turn";
    runner.phase(phase, Some(tasks.len()));
    for (task, outcome) in tasks.iter().zip(runner.replay(request, record, &tasks)?) {
        let of = |row: &&mut Row| (row.machine, row.ranks) == (task.machine, task.ranks);
        let row = rows.iter_mut().find(of);
        if let (Some(row), Some(time)) = (row, outcome.ok().and_then(|summary| summary.virtual_s)) {
            row.without.push(time);
        }
    }
    Ok(())
}

/// Finds the best machine and number of ranks, and how sure that is.
fn advise(request: &Request, record: &Record, runner: &mut Runner, rows: &[Row]) -> Result<Advice> {
    let mut advice = Advice::of(rows, &request.machines);
    let (Some(best), Some(rival)) = (advice.best(), advice.challenger()) else {
        return Ok(advice);
    };
    let ranks = advice.ranks;
    let duel = sensitivity::Duel {
        best: &request.machines[best],
        rival: &request.machines[rival],
        by_money: advice.by_money.then_some((ranks, request.per_host)),
        margin: advice.margin(),
    };
    runner.phase("searching how sure the answer is", None);
    let found = sensitivity::find(&duel, |pairs| {
        let mut tasks = Vec::new();
        for [of_best, of_rival] in pairs {
            tasks.push(Task::changed(best, ranks, of_best.clone()));
            tasks.push(Task::changed(rival, ranks, of_rival.clone()));
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
