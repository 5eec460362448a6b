//! Comparisons in parts, on several computers.
//!
//! The *points* of a comparison are its replays. Each depends on the record, the machines and
//! nothing else, so it may run anywhere, and its summary goes to a file. Which replays there are
//! depends on earlier ones (which number of ranks is best, which assumption decides), so a
//! comparison has *rounds*: a round is what is known to be needed while the results of earlier
//! rounds are read from their files. All commands of a round find the same list, and each makes
//! every N-th replay of it. A comparison that takes the files makes what is still missing itself,
//! and prints the same bytes as one that has made all.
//!
//! Invariant: a file is used only in the comparison that it is of: its head names all that a replay
//! depends on.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::check::RecordedOn;
use crate::elsewhere::{Elsewhere, Ended, Missing};
use crate::ideal::Ideal;
use crate::jobs::{Runner, Task};
use crate::machine::Machine;
use crate::plan::Divided;
use crate::record::{self, Record};
use crate::recording::record;
use crate::{Request, Sweep, compared};

/// The share of a round that one command makes: every `of`-th replay, from the number `index` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// From 1 to `of`.
    pub index: usize,
    /// The number of commands.
    pub of: usize,
}

/// What a command has done for a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The replays of the round. 0: all results are known.
    pub all: usize,
    /// Those that this command has made.
    pub made: usize,
}

/// Makes a share of the next round, and writes its results to a file. `known`: the files of earlier
/// rounds.
pub fn make(
    sweep: &Sweep,
    runner: &mut Runner,
    share: Share,
    known: &[PathBuf],
    file: &Path,
) -> Result<Done> {
    let request = only(sweep)?;
    let head = head(request)?;
    runner.take(read(known, &head)?);
    let record = record(sweep, runner)?;
    runner.stops(true);
    let missing = match compared(sweep, 0, &record, runner) {
        Ok(_) => Vec::new(),
        Err(why) => why.downcast::<Missing>()?.0,
    };
    runner.stops(false);
    let mut round = missing;
    if !round.is_empty() {
        for task in independent(request, &record) {
            let task = request.placed(task.same(&record), None);
            if !runner.knows(&task) && !round.contains(&task) {
                round.push(task);
            }
        }
    }
    let own = round.iter().skip(share.index - 1).step_by(share.of);
    let own: Vec<Task> = own.cloned().collect();
    runner.phase("replaying a share of the runs", Some(own.len()));
    runner.replay(request, &record, &own)?;
    let mut text = format!("{head}\n");
    for (task, ended) in runner.made() {
        let result = match ended {
            Ended::Ran(summary) => json!({"run": task.line(), "summary": summary}),
            Ended::Failed(why) => json!({"run": task.line(), "failed": why}),
        };
        text += &format!("{result}\n");
    }
    std::fs::write(file, text).with_context(|| format!("--results {}", file.display()))?;
    Ok(Done {
        all: round.len(),
        made: own.len(),
    })
}

/// Compares with the results of files; what they lack is replayed here. Returns the comparison and
/// the number of replays made here.
pub fn merge(
    sweep: &Sweep,
    runner: &mut Runner,
    files: &[PathBuf],
) -> Result<(crate::Comparison, usize)> {
    runner.take(read(files, &head(only(sweep)?)?)?);
    let comparison = crate::run(sweep, runner)?.pop();
    let comparison = comparison.context("there is no placement")?;
    Ok((comparison, runner.made().len()))
}

/// The comparison of a sweep with one setting and one placement.
fn only(sweep: &Sweep) -> Result<&Request> {
    match sweep.requests() {
        [one] if !one.placement.is_several() => Ok(one),
        _ => bail!(
            "--points and --merge are for one setting and one placement, such as random:1: name one --ppn, one --oversubscription"
        ),
    }
}

/// The replays that a comparison makes whatever the outcomes of others are.
fn independent(request: &Request, record: &Record) -> Vec<Task> {
    let machines = 0..request.machines.len();
    let (mut tasks, mut ideal) = (Vec::new(), Vec::new());
    let has_loop =
        |of: &record::Recordings| of.work.as_ref().is_some_and(|work| work.found.is_ok());
    let all_loops = record.counts.iter().all(has_loop);
    let is_only = record.counts.len() == 1;
    for of in &record.counts {
        let ranks = of.ranks;
        tasks.extend(machines.clone().map(|machine| Task::plain(machine, ranks)));
        let Some(divided) = request.divided() else {
            continue;
        };
        let is_divided = is_only || divided == Divided::All;
        let free = machines
            .clone()
            .filter(|machine| *machine == 0 || is_divided || !all_loops);
        tasks.extend(free.map(|machine| Task::plain(machine, ranks).with_free_start()));
        if is_only && of.recordings.len() > 1 {
            let without = 0..of.recordings.len();
            tasks.extend(without.map(|one| Task::without(0, ranks, one)));
        }
        if is_divided {
            for one in [Ideal::Everything, Ideal::Distributed] {
                ideal.push(request.estimated(Task::ideal(request, 0, ranks, one)));
            }
            for machine in machines.clone() {
                let kinds = request.ideals(machine, ranks);
                let single = kinds.map(|one| Task::ideal(request, machine, ranks, one));
                ideal.extend(single.map(|task| request.estimated(task)));
                ideal.extend(request.estimated_free(machine, ranks));
            }
        }
    }
    tasks.extend(ideal);
    tasks
}

/// The first line of a file: all that the outcome of a replay depends on.
fn head(request: &Request) -> Result<Value> {
    if request.runs_program() {
        bail!(
            "--points and --merge need one recording for all: a trace, such as --record FILE keeps"
        );
    }
    let recordings = request.traces.iter().map(|trace| trace.write());
    let recording = recordings.collect::<Vec<_>>().concat();
    let machine = |machine: &Machine| {
        let values = machine.sheet.values();
        let mut text = format!(
            "{:?} {:?} {}",
            machine.host, machine.changes, machine.compute_scale
        );
        for value in &values {
            text += &format!(" {}={}", value.path, value.raw);
        }
        format!("{} {}", machine.word, sum(text.as_bytes()))
    };
    let machines: Vec<String> = request.machines.iter().map(machine).collect();
    let recorded_on = request.recorded_on.as_ref();
    let recorded_on = recorded_on.map(|RecordedOn(one)| machine(one));
    let options: Vec<_> = request
        .options
        .iter()
        .map(|one| one.to_string_lossy())
        .collect();
    let mut head = json!({
        "format": "fishplate points 1",
        "version": env!("CARGO_PKG_VERSION"),
        "program": record::words(&request.program),
        "recording": sum(&recording),
        "machines": machines,
        "recorded_on": recorded_on,
        "ranks": request.ranks,
        "ppn": request.per_host,
        "options": options,
        "after": format!("{:?}", request.wanted.after),
        "even": request.wanted.even,
    });
    if !request.placement.is_packed() {
        head["placement"] = json!(request.placement.name);
    }
    Ok(head)
}

/// A sum of bytes that other bytes hardly have (Fowler, Noll and Vo, 64 bits).
fn sum(bytes: &[u8]) -> String {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Reads files of results, which must be of the comparison with this head.
fn read(files: &[PathBuf], head: &Value) -> Result<Elsewhere> {
    let mut all = Elsewhere::default();
    for file in files {
        let name = format!("--merge {}", file.display());
        let text = std::fs::read_to_string(file).with_context(|| name.clone())?;
        read_one(&text, head, &mut all).map_err(|why| anyhow!("{name}: {why}"))?;
    }
    Ok(all)
}

fn read_one(text: &str, head: &Value, all: &mut Elsewhere) -> Result<(), String> {
    let mut lines = text.lines().enumerate();
    let first = lines.next().map_or("", |line| line.1);
    let own: Value = serde_json::from_str(first).map_err(|_| "it is no file of --results")?;
    let parts = head.as_object().into_iter().flatten();
    for (key, wanted) in parts {
        let found = own.get(key).unwrap_or(&Value::Null);
        if found != wanted {
            return Err(format!(
                "it is of another comparison: its {key} is {found}, and here it is {wanted}"
            ));
        }
    }
    for (number, line) in lines {
        let line: Value = serde_json::from_str(line)
            .map_err(|_| format!("line {} is damaged: make its share again", number + 1))?;
        let text = |key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
        let ended = match (text("summary"), text("failed")) {
            (Some(summary), None) => Ended::Ran(summary),
            (None, Some(why)) => Ended::Failed(why),
            _ => return Err(format!("line {} has no result", number + 1)),
        };
        let run = text("run").ok_or(format!("line {} has no run", number + 1))?;
        all.0.insert(run, ended);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::request;

    #[test]
    fn a_file_of_another_comparison_and_a_damaged_one_are_refused() {
        let head = json!({"format": "fishplate points 1", "ppn": 2});
        let mut all = Elsewhere::default();
        let mut says = |text: &str| read_one(text, &head, &mut all);
        let good = format!("{head}\n{}\n", json!({"run": "a", "failed": "no"}));
        assert_eq!(says(&good), Ok(()));
        assert_eq!(says("hello\n"), Err("it is no file of --results".into()));
        let other = says(&good.replace("\"ppn\":2", "\"ppn\":1")).unwrap_err();
        assert_eq!(
            other,
            "it is of another comparison: its ppn is 1, and here it is 2"
        );
        let damaged = says(&good[..good.len() - 4]).unwrap_err();
        assert_eq!(damaged, "line 2 is damaged: make its share again");
        assert_eq!(all.0["a"], Ended::Failed("no".into()));
    }

    #[test]
    fn what_is_sure_to_be_replayed_is_in_the_first_round() {
        let request = request(&["qdr", "edr"], &[8]);
        let mut record = Record::default();
        record.counts.push(record::Recordings::new(8));
        // Without a loop: 2 plain, 2 with a free start, 2 + 2 × 3 ideal.
        assert_eq!(independent(&request, &record).len(), 12);
        record.counts.push(record::Recordings::new(16));
        assert_eq!(independent(&request, &record).len(), 8);
        let quick = Request {
            quick: true,
            ..request
        };
        assert_eq!(independent(&quick, &record).len(), 4);
    }

    #[test]
    fn each_replay_has_a_line_of_its_own() {
        let request = request(&["qdr", "edr"], &[8, 16]);
        let plain = Task::plain(0, 8);
        let tasks = [
            plain.clone(),
            Task::plain(1, 8),
            Task::plain(0, 16),
            plain.with_free_start(),
            Task::without(0, 8, 1),
            Task::in_hosts(0, 1, 8),
            Task::ideal(&request, 0, 8, Ideal::Latency),
            Task::plain(0, 8).the_fast_way(),
        ];
        let mut lines: Vec<String> = tasks.iter().map(Task::line).collect();
        lines.sort();
        lines.dedup();
        assert_eq!(lines.len(), tasks.len());
    }
}
