//! Jobs of `fishplate run`: the recording ones alone, replays two at a time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use profile::Summary;
use results::console::Console;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::Request;
use crate::bounds::Ideal;
use crate::machine::{Change, Machine};
use crate::record::Record;

/// Replays that run at once.
const AT_ONCE: usize = 2;

/// Starts jobs, shows their progress, and remembers their outcomes.
pub struct Runner {
    /// The executable that has the subcommand `run`.
    command: PathBuf,
    /// The traces to replay, by their numbers of ranks.
    replayed: HashMap<usize, MemoryFile>,
    console: Console,
    known: HashMap<Task, Outcome>,
    /// The longest time of a recording run.
    recorded_in: Duration,
}

/// A summary, or the reason why there is none.
pub(crate) type Outcome = Result<Summary, String>;

/// One replay.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    /// The number of the machine in the request.
    pub(crate) machine: usize,
    pub(crate) ranks: usize,
    pub(crate) ideal: Option<Ideal>,
    changes: Vec<Change>,
}

impl Task {
    /// A replay on the machine as it is.
    pub(crate) fn plain(machine: usize, ranks: usize) -> Task {
        Task::changed(machine, ranks, Vec::new())
    }

    /// A replay on the machine with changed values.
    pub(crate) fn changed(machine: usize, ranks: usize, changes: Vec<Change>) -> Task {
        Task {
            machine,
            ranks,
            ideal: None,
            changes,
        }
    }

    /// A replay on the machine with a part idealised.
    pub(crate) fn ideal(request: &Request, machine: usize, ranks: usize, ideal: Ideal) -> Task {
        Task {
            machine,
            ranks,
            ideal: Some(ideal),
            changes: ideal.changes(&request.machines[machine]),
        }
    }
}

impl Runner {
    /// A runner of jobs of the executable `command`.
    pub fn new(command: &Path) -> Runner {
        Runner {
            command: command.into(),
            replayed: HashMap::new(),
            console: Console::new(0),
            known: HashMap::new(),
            recorded_in: Duration::ZERO,
        }
    }

    /// Prints a line about the comparison.
    pub(crate) fn say(&mut self, line: &str) {
        self.console.say(line);
    }

    /// Shows that a phase begins, of `runs` runs or of a number that nobody knows.
    pub(crate) fn phase(&mut self, what: &str, runs: Option<usize>) {
        let runs_shown = match runs {
            Some(1) => "1 run".to_owned(),
            Some(runs) => format!("{runs} runs"),
            None => "2 runs or more".to_owned(),
        };
        let took = match self.recorded_in {
            Duration::ZERO => String::new(),
            took => format!(
                ", {AT_ONCE} at once; a recording took {:.1} s",
                took.as_secs_f64()
            ),
        };
        self.console.phase(what, runs, &(runs_shown + &took));
    }

    /// Records the computing of the program on a machine. Its output goes to standard error.
    pub(crate) fn record(
        &mut self,
        request: &Request,
        machine: &Machine,
        ranks: usize,
    ) -> Result<String> {
        let file = MemoryFile::new()?;
        let jobs = Jobs {
            command: &self.command,
            replayed: &self.replayed,
            request,
        };
        let activity = format!("recording {ranks} ranks on {}", machine.name);
        let start = Instant::now();
        let mut run = jobs.command(machine, ranks, &[]);
        run.args(["--summary", "none", "--compute"]);
        run.arg(word("record:", &file.path()))
            .arg("--")
            .args(&request.program);
        let ended = run.output().context("cannot start the recording run")?;
        if !ended.status.success() {
            bail!("{activity} failed: {}", last_words(&ended));
        }
        self.recorded_in = self.recorded_in.max(start.elapsed());
        self.console.print(&String::from_utf8_lossy(&ended.stdout));
        self.console.step();
        file.text()
    }

    /// Replays; the outcomes come in the order of the tasks.
    pub(crate) fn replay(
        &mut self,
        request: &Request,
        record: &Record,
        tasks: &[Task],
    ) -> Result<Vec<Outcome>> {
        let mut new: Vec<&Task> = Vec::new();
        for task in tasks {
            if !self.known.contains_key(task) && !new.contains(&task) {
                new.push(task);
            }
        }
        for (ranks, trace) in &record.traces {
            if let Entry::Vacant(place) = self.replayed.entry(*ranks) {
                let file = MemoryFile::new()?;
                let written = (&file.0).write_all(trace.as_bytes());
                written.context("cannot write a record for the replays")?;
                place.insert(file);
            }
        }
        let next = AtomicUsize::new(0);
        let (done, outcomes) = mpsc::channel();
        let jobs = Jobs {
            command: &self.command,
            replayed: &self.replayed,
            request,
        };
        let (new, next, jobs) = (&new, &next, &jobs);
        thread::scope(|scope| -> Result<()> {
            for _ in 0..AT_ONCE {
                let done = done.clone();
                scope.spawn(move || {
                    while let Some(task) = new.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // The receiver is gone once a replay could not be started.
                        if done.send((*task, jobs.replay(task))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(done);
            for (task, outcome) in outcomes {
                self.known.insert(task.clone(), outcome?);
                self.console.step();
            }
            Ok(())
        })?;
        Ok(tasks.iter().map(|task| self.known[task].clone()).collect())
    }
}

/// The parts of a runner that threads share.
struct Jobs<'a> {
    command: &'a Path,
    replayed: &'a HashMap<usize, MemoryFile>,
    request: &'a Request,
}

impl Jobs<'_> {
    fn replay(&self, task: &Task) -> Result<Outcome> {
        let machine = &self.request.machines[task.machine];
        let (summary, trace) = (MemoryFile::new()?, self.replayed.get(&task.ranks));
        let trace = trace.context("there is no record of so many ranks")?;
        let mut run = self.command(machine, task.ranks, &task.changes);
        run.arg("--summary").arg(word("json=", &summary.path()));
        run.arg("--compute");
        run.arg(word("replay:", &trace.path()));
        run.arg("--").args(&self.request.program);
        let ended = run.output().context("cannot start a replay")?;
        if !ended.status.success() {
            return Ok(Err(last_words(&ended)));
        }
        let summary =
            serde_json::from_str(&summary.text()?).context("the summary of a replay is damaged")?;
        Ok(Ok(summary))
    }

    fn command(&self, machine: &Machine, ranks: usize, changes: &[Change]) -> Command {
        let request = self.request;
        let mut run = Command::new(self.command);
        run.stdin(Stdio::null());
        run.args(["run", "-n", &ranks.to_string()]);
        run.args(["--ppn", &request.per_host.to_string()]);
        run.args(["--fabric", &machine.word]).args(&request.options);
        for Change { path, value } in changes {
            run.args(["--set", &format!("{path}={value}")]);
        }
        run
    }
}

fn word(before: &str, path: &Path) -> OsString {
    let mut word = OsString::from(before);
    word.push(path);
    word
}

/// The last lines of a job that failed: the first is usually its reason.
fn last_words(ended: &Output) -> String {
    const MOST: usize = 4;
    let said = String::from_utf8_lossy(&ended.stderr);
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let lines = lines
        .iter()
        .take(MOST)
        .map(|line| line.trim_start_matches("fishplate: "));
    match lines.collect::<Vec<_>>().join("; ") {
        words if words.is_empty() => format!("its {}", ended.status),
        words => words,
    }
}

/// A file in memory that jobs open by its path, so that nothing is left behind however this process
/// ends.
struct MemoryFile(File);

impl MemoryFile {
    fn new() -> Result<MemoryFile> {
        let made = memfd_create("fishplate-compare", MemfdFlags::CLOEXEC);
        let made = made.context("cannot create a file in memory for a job")?;
        Ok(MemoryFile(File::from(made)))
    }

    fn path(&self) -> PathBuf {
        let (process, number) = (std::process::id(), self.0.as_raw_fd());
        format!("/proc/{process}/fd/{number}").into()
    }

    fn text(&self) -> Result<String> {
        fs::read_to_string(self.path()).context("cannot read what a job has written")
    }
}
