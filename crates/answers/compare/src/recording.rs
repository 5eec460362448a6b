//! The record of a comparison: of the user's traces, or made on the first machine.

use anyhow::{Result, anyhow};
use results::output::OutputFile;

use crate::jobs::{Runner, Task};
use crate::record::{Collection, Record, Recordings};
use crate::work::Measure;
use crate::{Request, Sweep, row, spread};

/// Recordings are enough if leaving out any one of them changes the time by at most this share.
const SETTLED: f64 = 0.02;

impl Request {
    /// The record that exists before the program runs. `None`: it is still to be made.
    pub(crate) fn known_record(&self) -> Result<Option<Record>> {
        match self.runs_program() {
            true => Ok(None),
            false => Record::of_traces(&self.traces, &self.ranks).map(Some),
        }
    }
}

/// The record of the user's traces, or a record that is made on the first machine.
pub(crate) fn record(sweep: &Sweep, runner: &mut Runner) -> Result<Record> {
    let request = &sweep.recorded();
    // An output file that cannot be written is refused before minutes of recording.
    let kept = request.keep.as_deref();
    let kept = kept.map(|file| OutputFile::open("--record", file));
    let kept = kept.transpose().map_err(|why| anyhow!(why))?;
    let mut record = match request.known_record()? {
        Some(record) => {
            runner.announce(&sweep.announced(Some(&record)));
            record
        }
        None => {
            runner.announce(&sweep.announced(None));
            make_record(request, runner)?
        }
    };
    if let Some(file) = kept {
        record.write(file.path())?;
        file.written();
    }
    for of in &mut record.counts {
        of.find_work(&request.wanted)?;
    }
    for request in sweep.requests() {
        for of in &record.with(&request.ranks).counts {
            for machine in &request.machines {
                machine.check_threads(of.ranks.min(request.per_host), of.threads)?;
            }
        }
    }
    Ok(record)
}

/// Records the program on the first machine. Disturbed recordings are repeated, and
/// further ones are made while they differ.
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
    let find_work = |record: &mut Record| {
        let mut counts = record.counts.iter_mut();
        counts.all(|of| of.find_work(&request.wanted).is_ok())
    };
    if !find_work(&mut record) {
        // Return, so that the recordings are written to the file before the error is reported.
        return Ok(record);
    }
    let far = spread::far(request, &record, runner)?;
    for (at, made) in collections.iter_mut().enumerate() {
        let ranks = record.counts[at].ranks;
        let is_far = far.contains(&ranks);
        while !is_far && made.made() < most && is_unsettled(request, &record, at, runner)? {
            let phase = format!("recording {ranks} ranks again, because recordings differ");
            runner.phase(&phase, Some(2));
            made.add_pair(most, || runner.record(request, first, ranks))?;
            record.counts[at] = made.of(ranks);
            runner.forget(ranks);
            find_work(&mut record);
        }
        if let Some(remark) = made.remark(ranks) {
            runner.say(&remark);
        }
    }
    Ok(record)
}

/// True if the time on the first machine depends much on a single recording. A program that cannot
/// be replayed there is reported later.
fn is_unsettled(
    request: &Request,
    record: &Record,
    at: usize,
    runner: &mut Runner,
) -> Result<bool> {
    let Recordings {
        ranks, recordings, ..
    } = &record.counts[at];
    let mut tasks = vec![Task::plain(0, *ranks)];
    tasks.extend((0..recordings.len()).map(|recording| Task::without(0, *ranks, recording)));
    let phase = format!("replaying each recording of {ranks} ranks left out in turn");
    runner.phase(&phase, Some(tasks.len()));
    let times = first_values(request, record, runner, &tasks)?.into_iter();
    let Some(times) = times.collect::<Option<Vec<f64>>>() else {
        return Ok(false);
    };
    let spread = row::spread(&times[1..], times[0]);
    Ok(spread.is_some_and(|spread| spread > SETTLED))
}

/// The compared times of replays on the first machine, in seconds, with a start of 0 because it is
/// not known yet. `None`: the program cannot be replayed there.
pub(crate) fn first_values(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    tasks: &[Task],
) -> Result<Vec<Option<f64>>> {
    let outcomes = runner.replay(request, record, tasks)?;
    let value = |(task, outcome): (&Task, crate::elsewhere::Outcome)| {
        let marks = record.of(task.ranks)?.marks(task.without, &request.wanted);
        let seconds = |measure: Measure, summary| measure.seconds(marks.as_ref(), summary, 0.0);
        let summary = outcome.ok()?;
        let measures = [Measure::Loop, Measure::WholeLoop, Measure::Rest];
        measures
            .into_iter()
            .find_map(|measure| seconds(measure, &summary))
    };
    Ok(tasks.iter().zip(outcomes).map(value).collect())
}
