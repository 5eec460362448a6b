//! A comparison of modelled machines for one program. The program runs for each number of ranks,
//! and its calls are recorded as traces; then the traces are replayed on each machine. Traces may
//! stand in place of the program: they are its recordings.
//!
//! All runs and replays are jobs of `fishplate run`. Further replays with idealised machines show
//! the bound of the program ([`bounds`]), and replays with changed assumptions show how sure the
//! answer is ([`sensitivity`]).
//!
//! Invariant: the same recordings and machines give the same bytes.
//!
//! Never here: protocols, physics.

pub mod advice;
mod assumption;
pub mod bounds;
mod by_setting;
pub mod certainty;
mod changed;
pub mod check;
pub mod cost;
mod elsewhere;
mod estimate;
pub mod even;
pub mod exchange;
mod free_sources;
mod free_start;
mod front;
mod headline;
mod held;
mod hosts;
pub mod ideal;
mod jobs;
mod json;
mod last_words;
pub mod machine;
pub mod main_loop;
mod measured;
mod messages;
pub mod model_word;
mod money;
mod networks;
mod other_answers;
mod page;
mod placed;
pub mod placements;
mod plan;
pub mod points;
pub mod prediction;
pub mod record;
mod recording;
mod remarks;
pub mod report;
pub mod row;
pub mod sensitivity;
mod setting;
mod show;
mod spread;
mod stand_ins;
mod surroundings;
mod sweep;
mod task;
mod words;
pub mod work;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::trace::Trace;
use anyhow::{Context, Result, bail};
use profile::Summary;
use replay::Variability;

use advice::Advice;
use bounds::{Bounds, Replays};
pub use by_setting::{json, page, text};
use changed::Changed;
use check::{Check, RecordedOn};
use cost::Terms;
use free_start::divide_all;
use ideal::Ideal;
pub use jobs::Runner;
use jobs::Task;
pub use machine::Machine;
use main_loop::NoLoop;
pub use page::picture;
pub use placements::PlacementChoice;
pub use plan::Divided;
use record::{Record, Recordings};
use recording::{first_values, record};
pub use report::Comparison;
use report::{LoopFacts, Recorded};
use row::{Outcome, Row};
pub use setting::{PER_HOST, PLACEMENT, Setting};
use surroundings::FolderState;
pub use sweep::Sweep;
use work::{Marks, Measure, Wanted};

/// A request of a user for a comparison.
#[derive(Clone, Debug)]
pub struct Request {
    /// The machines to compare. Recordings are made on the first.
    pub machines: Vec<Machine>,
    /// The machine on which the traces were recorded: the check replays it. `None`: it is unknown.
    pub recorded_on: Option<RecordedOn>,
    /// The numbers of ranks to compare.
    pub ranks: Vec<usize>,
    /// The number of ranks on each host.
    pub per_host: usize,
    /// The placement of the job on the hosts of the machines.
    pub placement: PlacementChoice,
    /// The values of the options that the user has listed, with which this comparison differs from
    /// others of its sweep.
    pub setting: Vec<Setting>,
    /// How nodes and calls vary in draws of nodes that vary.
    pub variability: Variability,
    /// Further arguments for `fishplate run`, such as `-x NAME=VALUE`.
    pub options: Vec<OsString>,
    /// The program and its arguments, or the file of the traces.
    pub program: Vec<OsString>,
    /// The traces that are replayed in place of a program. Without any the program is recorded.
    pub traces: Vec<Arc<Trace>>,
    /// The file to which the recordings are written; `None`: they are not kept.
    pub keep: Option<PathBuf>,
    /// The part of the program that is compared.
    pub wanted: Wanted,
    /// The number of recordings with each number of ranks. `None`: as many as are needed.
    pub recordings: Option<usize>,
    /// True if one recording is enough and the certainty is not computed: the user wants only the
    /// times.
    pub quick: bool,
    /// True if replays on ideal machines and with changed values are estimated the fast way.
    pub is_fast: bool,
    /// The rows whose time is divided into its shares; none if `quick`.
    pub divided: Divided,
    /// The folder in which the program runs.
    pub folder: RunFolder,
}

impl Request {
    /// True if the program runs, because no trace stands in its place.
    pub(crate) fn runs_program(&self) -> bool {
        self.traces.is_empty()
    }
}

/// The choice of the folder in which the compared program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFolder {
    /// For each run a folder of its own, with links to the contents of the current one.
    Scratch,
    /// This folder, in which runs are made one at a time.
    Here(PathBuf),
}

/// The number of replays that run at once.
const AT_ONCE: usize = 2;
/// The first number of recordings with one number of ranks: the least number with a median.
const FIRST: usize = 3;
/// The most recordings with one number of ranks.
pub const MOST_RECORDINGS: usize = 9;

/// Runs the comparisons of a sweep. `runner` starts the jobs.
pub fn run(sweep: &Sweep, runner: &mut Runner) -> Result<Vec<Comparison>> {
    let request = &sweep.requests()[0];
    let before = FolderState::of(Path::new("."));
    if request.runs_program() {
        runner.read_input()?;
    }
    let record = record(sweep, runner)?;
    let mut comparisons = Vec::new();
    for number in 0..sweep.requests().len() {
        comparisons.push(compared(sweep, number, &record, runner)?);
    }
    if request.folder == RunFolder::Scratch && request.runs_program() {
        say_changed(request, &before, runner);
    }
    Ok(comparisons)
}

/// Compares the machines of one request of a sweep, by replays of a record.
fn compared(
    sweep: &Sweep,
    number: usize,
    record: &Record,
    runner: &mut Runner,
) -> Result<Comparison> {
    let request = &sweep.requests()[number];
    let mut record = record.with(&request.ranks);
    runner.begin(request);
    let checks = check::checks(request, &record, runner)?;
    let mut rows = replay(request, &record, runner)?;
    runner.estimate(sweep, &record);
    let measure = divide_all(request, &mut record, runner, &mut rows)?;
    placed::value(&record, &mut rows, measure);
    find_bounds(request, runner, &record, &mut rows)?;
    spread::find(request, &record, runner, &mut rows, measure)?;
    free_sources::find(request, &record, runner, &mut rows, measure)?;
    let advice = advise(request, &record, runner, &rows, measure, &checks)?;
    Ok(Comparison {
        program: record::words(&request.program),
        trace: request.traces.first().map(|trace| trace.program.clone()),
        notes: record.notes(),
        per_host: request.per_host,
        placement: request.placement.clone(),
        setting: request.setting.clone(),
        terms: request
            .machines
            .first()
            .map_or_else(Terms::default, Machine::terms),
        machines: request.machines.iter().map(Machine::facts).collect(),
        rows,
        is_measured: !request.traces.is_empty()
            && request.traces.iter().all(|trace| check::is_measured(trace)),
        checks,
        measure,
        is_estimated: request.is_fast,
        iterations: request.wanted.iterations,
        recorded: record.counts.iter().map(recorded).collect(),
        advice,
    })
}

/// Reports files of the current folder that runs have changed through links to them.
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
    let total = of.middle(None).map_or(0, |middle| middle.total());
    let few = NoLoop::FewCalls { most: 0 };
    let work = of.work.as_ref();
    let found = work.map_or(Err(few), |work| {
        let marks = work.found.as_ref();
        marks
            .map(|marks| LoopFacts::of(&marks.found))
            .map_err(|why| *why)
    });
    Recorded {
        ranks: of.ranks,
        recordings: of.recordings.len(),
        aligned: of.are_aligned(),
        computing: total as f64 * 1e-9,
        found,
        unevenness: work.and_then(|work| work.unevenness),
    }
}

/// Replays the recordings on every machine, with each number of ranks.
fn replay(request: &Request, record: &Record, runner: &mut Runner) -> Result<Vec<Row>> {
    let mut tasks = Vec::new();
    for Recordings { ranks, .. } in &record.counts {
        tasks.extend((0..request.machines.len()).map(|machine| Task::plain(machine, *ranks)));
    }
    let machines = match request.machines.len() {
        1 => "1 machine".to_owned(),
        many => format!("{many} machines"),
    };
    let runs = tasks.len() * request.placement.each.len();
    runner.phase(&format!("replaying on {machines}"), Some(runs));
    let rows = match request.placement.is_several() {
        true => placed::rows(request, record, runner, &tasks)?,
        false => {
            let outcomes = runner.replay(request, record, &tasks)?.into_iter();
            let row =
                |(task, outcome): (&Task, _)| Row::new(request, task.machine, task.ranks, outcome);
            tasks.iter().zip(outcomes).map(row).collect()
        }
    };
    let has_run = rows.iter().any(|row| row.summary().is_some());
    if let (false, Outcome::Refused(why)) = (has_run, &rows[0].outcome) {
        bail!("the program cannot be replayed on any of the machines: {why}");
    }
    Ok(rows)
}

/// Divides the time of each row into start, iterations and rest, and chooses the part to compare.
fn divide(
    request: &Request,
    record: &mut Record,
    rows: &mut [Row],
    free: &[Option<Summary>],
) -> Measure {
    for (row, free) in rows.iter_mut().zip(free) {
        let (Some(summary), Some(free)) = (row.summary(), free) else {
            continue;
        };
        let start = start(summary, free);
        if let Some(marks) = marks(record, row.ranks) {
            marks.skip_start(summary, free);
        }
        row.start = start;
    }
    for row in &mut *rows {
        let (start, marks) = (row.start.unwrap_or(0.0), marks(record, row.ranks));
        let summary = row.summary();
        row.prediction = summary
            .zip(marks)
            .and_then(|(run, marks)| marks.prediction(run, start));
    }
    let mut ran = rows.iter().filter(|row| row.summary().is_some());
    let has_loop = ran.clone().all(|row| row.prediction.is_some());
    let is_steady = ran.all(|row| matches!(row.prediction, Some(Ok(_))));
    let measure = Measure::of(&request.wanted, has_loop, is_steady);
    for row in rows {
        let marks = marks(record, row.ranks);
        let marks = marks.as_deref();
        let start = row.start.unwrap_or(0.0);
        let Some(summary) = row.summary() else {
            continue;
        };
        let usual = row.prediction.and_then(Result::ok);
        let usual = usual.map(|usual| usual.iteration);
        let iteration = usual.or_else(|| marks?.mean_iteration(summary));
        (row.value, row.iteration) = (measure.seconds(marks, summary, start), iteration);
    }
    measure
}

/// The time of a run's start, in seconds, by comparison with the run with a free start on the same
/// machine. `None`: a run did not report its times.
fn start(run: &Summary, free: &Summary) -> Option<f64> {
    let behind = |summary: &Summary| Some(summary.virtual_s? - summary.started_s?);
    let saved = behind(run)? - behind(free)?;
    Some(saved.max(0.0) + run.started_s?)
}

/// The loop of the program in the recordings with this number of ranks, with its marked iterations.
/// `None`: no loop was found.
fn marks(record: &mut Record, ranks: usize) -> Option<&mut Marks> {
    let of = record.counts.iter_mut().find(|of| of.ranks == ranks)?;
    of.work.as_mut()?.found.as_mut().ok()
}

/// Replays on idealised machines, for the rows whose time is divided into shares.
fn find_bounds(
    request: &Request,
    runner: &mut Runner,
    record: &Record,
    rows: &mut [Row],
) -> Result<()> {
    let answer = Advice::of(rows, &request.machines);
    let is_wanted = |row: &Row| match request.divided() {
        None => false,
        Some(Divided::BestRanks) => row.ranks == answer.ranks,
        Some(Divided::All) => true,
    };
    let mut tasks = Vec::new();
    for row in rows.iter().filter(|row| is_wanted(row)) {
        for ideal in [Ideal::Everything, Ideal::Distributed] {
            let whole = request.estimated(Task::ideal(request, 0, row.ranks, ideal));
            if !tasks.contains(&whole) {
                tasks.push(whole);
            }
        }
        for ideal in request.ideals(row.machine, row.ranks) {
            let single = Task::ideal(request, row.machine, row.ranks, ideal);
            tasks.push(request.estimated(single));
        }
        tasks.extend(request.estimated_free(row.machine, row.ranks));
    }
    if tasks.is_empty() {
        return Ok(());
    }
    runner.phase("replaying on ideal machines", Some(tasks.len()));
    let outcomes = runner.replay(request, record, &tasks)?;
    let time = |machine: usize, ranks: usize, ideal: Option<Ideal>| {
        let is_it = |task: &Task| (task.machine, task.ranks, task.ideal) == (machine, ranks, ideal);
        let outcome = tasks.iter().position(is_it).map(|at| &outcomes[at]);
        Ideal::seconds(ideal, outcome.context("it has not run")?)
    };
    for row in rows.iter_mut().filter(|row| is_wanted(row)) {
        let Outcome::Ran(summary) = &row.outcome else {
            continue;
        };
        let replays = replays(request, row, time);
        let noise = record
            .of(row.ranks)
            .and_then(|of| of.work.as_ref()?.unevenness);
        let noise = noise.map_or(0.0, |uneven| uneven.share_of_noise());
        match replays {
            Ok(replays) => row.bounds = Some(Bounds::of(summary, &replays, noise)),
            Err(why) => row.no_bounds = Some(why.to_string()),
        }
    }
    Ok(())
}

/// The times by which the time of a row is divided. An error names the missing replay.
fn replays(
    request: &Request,
    row: &Row,
    time: impl Fn(usize, usize, Option<Ideal>) -> Result<f64>,
) -> Result<Replays> {
    let free = row.time().zip(row.start).map(|(time, start)| time - start);
    let free = free.context("the replay with a free start has failed")?;
    let everything = time(0, row.ranks, Some(Ideal::Everything))?;
    let distributed = time(0, row.ranks, Some(Ideal::Distributed))?;
    // Of an estimate, the difference to the fast way counts.
    let beside = match request.is_fast {
        true => free - time(row.machine, row.ranks, None)?,
        false => 0.0,
    };
    let mut single = [free; 5];
    for (seconds, ideal) in single.iter_mut().zip(Ideal::SINGLE) {
        if request
            .ideals(row.machine, row.ranks)
            .any(|other| other == ideal)
        {
            *seconds = beside + time(row.machine, row.ranks, Some(ideal))?;
        }
    }
    Ok(Replays {
        free,
        everything,
        distributed,
        single,
    })
}

/// Finds the best machine and number of ranks, and how sure that answer is.
fn advise(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    rows: &[Row],
    measure: Measure,
    checks: &[Check],
) -> Result<Advice> {
    let mut advice = Advice::of(rows, &request.machines);
    advice.take_checks(checks, rows, &request.machines);
    advice.count_placements(rows);
    advice.has_unknown_spread = spread::is_unknown(record, rows, advice.ranks);
    let (Some(best), Some(rival)) = (advice.best(), advice.challenger()) else {
        return Ok(advice);
    };
    if request.quick {
        return Ok(advice);
    }
    let ranks = advice.ranks;
    let duel = sensitivity::Duel {
        best: &request.machines[best],
        rival: &request.machines[rival],
        by_money: advice.by_money.then_some((ranks, request.per_host)),
        margin: advice.margin(),
    };
    runner.phase("searching how sure the answer is", None);
    let of = ([best, rival], ranks);
    let changed = Changed::new(request, record, runner, rows, measure, of);
    advice.sensitivity = Some(sensitivity::find(&duel, changed)?);
    advice.exchange = hosts::exchange(request, record, runner, rows, measure, &advice)?;
    Ok(advice)
}
