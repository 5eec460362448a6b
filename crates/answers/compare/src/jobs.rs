//! Jobs of `fishplate run`: recordings of the program one at a time, replays two at a time.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use conditions::Moment;
use model::THREADS_VARIABLE;
use profile::Summary;
use replay::Computing;
use results::MemoryFile;
use results::console::Console;
use trace::Trace;

pub(crate) use crate::elsewhere::Outcome;
use crate::elsewhere::{Elsewhere, Ended, Missing};
use crate::ideal::Ideal;
use crate::last_words::last_words;
use crate::machine::{Change, Machine};
use crate::placements::Draw;
use crate::record::{self, Record, Recording, is_disturbed};
use crate::surroundings::Input;
pub(crate) use crate::task::{Played, Task};
use crate::{AT_ONCE, Request, RunFolder, Sweep, work};

/// The most lines of the program's output that are shown whole.
const WHOLE_OUTPUT: usize = 6;
/// The number of last lines that are shown of a longer output.
const LAST_LINES: usize = 3;
/// Without a progress bar, lines about phases are at least this time apart.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// Starts jobs, shows their progress, and remembers their outcomes.
pub struct Runner {
    /// The executable that has the subcommand `run`.
    command: PathBuf,
    replayed: HashMap<Played, MemoryFile>,
    console: Console,
    known: HashMap<Task, Outcome>,
    /// The usual placement of each machine with each number of ranks.
    usual: HashMap<(usize, usize), Draw>,
    /// The ranks on each host and the changed values of each machine with which replays are made.
    setting: Option<(usize, Vec<Vec<Change>>)>,
    /// The replays that other commands have made.
    elsewhere: Elsewhere,
    /// The replays that this command has made.
    made: Vec<(Task, Ended)>,
    /// The time that they have taken, several at once.
    replaying: Duration,
    /// True if replays that are not known yet are an error, which names them.
    stops: bool,
    /// The time of the last line about a phase, or of the start.
    last_line: Instant,
    /// True if the first recording has been made.
    has_recorded: bool,
    input: Input,
    /// Remarks of recording runs that have been shown to the user.
    said: HashSet<String>,
    /// True if neither phases nor output of the program are printed.
    is_quiet: bool,
}

impl Runner {
    /// A runner of jobs of the executable `command`.
    pub fn new(command: &Path) -> Runner {
        Runner {
            command: command.into(),
            replayed: HashMap::new(),
            console: Console::new(0),
            known: HashMap::new(),
            usual: HashMap::new(),
            setting: None,
            elsewhere: Elsewhere::default(),
            made: Vec::new(),
            replaying: Duration::ZERO,
            stops: false,
            last_line: Instant::now(),
            has_recorded: false,
            input: Input::default(),
            said: HashSet::new(),
            is_quiet: false,
        }
    }

    /// Sets whether the runner prints neither phases nor output of the program.
    pub fn quiet(self, is_quiet: bool) -> Runner {
        Runner { is_quiet, ..self }
    }

    /// Takes the replays that other commands have made.
    pub(crate) fn take(&mut self, elsewhere: Elsewhere) {
        self.elsewhere = elsewhere;
    }

    /// Sets the usual placement of a machine with a number of ranks.
    pub(crate) fn set_usual(&mut self, of: (usize, usize), draw: Draw) {
        self.usual.insert(of, draw);
    }

    /// Begins a comparison. Forgets what another one has found on other machines or with other
    /// ranks on each host.
    pub(crate) fn begin(&mut self, request: &Request) {
        self.usual.clear();
        let machines = request.machines.iter().map(|one| one.changes.clone());
        let setting = (request.per_host, machines.collect());
        let before = self.setting.replace(setting.clone());
        if before.is_some_and(|before| before != setting) {
            self.known.clear();
            self.replayed.retain(|played, _| played.variation.is_none());
        }
    }

    /// Sets whether replays that are not known yet are an error.
    pub(crate) fn stops(&mut self, stops: bool) {
        self.stops = stops;
    }

    /// True if the outcome of a replay is known.
    pub(crate) fn knows(&self, task: &Task) -> bool {
        self.known.contains_key(task) || self.elsewhere.has(task)
    }

    /// The replays that this command has made.
    pub(crate) fn made(&self) -> &[(Task, Ended)] {
        &self.made
    }

    /// Reads standard input to its end; every run gets a copy.
    pub(crate) fn read_input(&mut self) -> Result<()> {
        let console = &mut self.console;
        self.input = Input::read(|| {
            console.say("waiting for the end of standard input, which every run gets; `< /dev/null` gives none");
        })?;
        Ok(())
    }

    /// Prints a line, even if the runner is quiet.
    pub(crate) fn say(&mut self, line: &str) {
        self.console.say(line);
    }

    /// Prints a line, unless the runner is quiet.
    pub(crate) fn announce(&mut self, line: &str) {
        if !self.is_quiet {
            self.console.say(line);
        }
    }

    /// Shows that a phase begins. `runs` is the number of its runs; `None`: it is unknown.
    pub(crate) fn phase(&mut self, what: &str, runs: Option<usize>) {
        if self.is_quiet {
            return;
        }
        let runs_shown = match runs {
            Some(1) => "1 run".to_owned(),
            Some(runs) => format!("{runs} runs"),
            None => "2 runs or more".to_owned(),
        };
        match self.last_line.elapsed() < BETWEEN_LINES {
            true => self.console.phase_without_line(what, runs),
            false => {
                self.console.phase(what, runs, &runs_shown);
                self.last_line = Instant::now();
            }
        }
    }

    /// Says how long the replays take that are still to be made, if some have been made here.
    pub(crate) fn estimate(&mut self, sweep: &Sweep, record: &Record) {
        let made = self.made.len();
        if made > 0 {
            let each = self.replaying / made as u32;
            let line = sweep.estimate_of_replays(record, each, made);
            line.iter().for_each(|line| self.announce(line));
        }
    }

    /// Runs the program on a machine and records it. The first run's output goes to standard error.
    pub(crate) fn record(
        &mut self,
        request: &Request,
        machine: &Machine,
        ranks: usize,
    ) -> Result<Recording> {
        let (file, summary) = (MemoryFile::new()?, MemoryFile::new()?);
        let jobs = Jobs {
            command: &self.command,
            replayed: &self.replayed,
            input: &self.input,
            request,
        };
        let activity = format!("recording {ranks} ranks on {}", machine.name);
        let (start, moment) = (Instant::now(), Moment::now());
        let mut run = jobs.of_program(machine, ranks)?;
        run.arg("--summary").arg(word("json=", &summary.path()));
        run.args(["--compute", "recorded", "--record"]);
        run.arg(file.path()).arg("--").args(&request.program);
        let ended = run.output().context("cannot start the recording run")?;
        if !ended.status.success() {
            bail!("{activity} failed: {}", last_words(&ended));
        }
        let disturbances = Moment::now().since(&moment);
        let wall = start.elapsed();
        let summary: Summary = serde_json::from_str(&summary.text()?)
            .with_context(|| format!("{activity}: its summary is damaged"))?;
        if summary.is_empty() {
            bail!(
                "`{}` made no MPI call, so there is nothing to compare: a comparison needs a program whose ranks call MPI_Init",
                record::words(&request.program[..1])
            );
        }
        let bytes = std::fs::read(file.path()).with_context(|| activity.clone())?;
        let computing = Trace::read(&bytes).and_then(|trace| Computing::of(Arc::new(trace)));
        let computing = computing.map_err(|why| anyhow!("{activity}: its trace: {why}"))?;
        if !std::mem::replace(&mut self.has_recorded, true) && !self.is_quiet {
            self.show_output(&String::from_utf8_lossy(&ended.stdout));
            let line = request.estimate_of_recordings(wall);
            line.iter().for_each(|line| self.console.say(line));
        }
        let remarks = String::from_utf8_lossy(&ended.stderr);
        for remark in remarks
            .lines()
            .filter_map(|line| line.strip_prefix("fishplate: "))
        {
            if self.said.insert(remark.to_owned()) {
                self.console.say(remark);
            }
        }
        self.console.step();
        Ok(Recording {
            computing,
            disturbed: is_disturbed(disturbances.stolen, &summary.computed),
        })
    }

    /// Shows the program's output; only the last lines if it is long.
    fn show_output(&mut self, output: &str) {
        let lines: Vec<&str> = output.lines().collect();
        let left_out = match lines.len() {
            all if all <= WHOLE_OUTPUT => 0,
            all => all - LAST_LINES,
        };
        if left_out > 0 {
            let line = format!("the program's output, without its first {left_out} lines:");
            self.console.say(&line);
        }
        let shown: String = lines[left_out..]
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        self.console.print(&shown);
    }

    /// Forgets the replays with a number of ranks, for which there is another recording now.
    pub(crate) fn forget(&mut self, ranks: usize) {
        self.known.retain(|task, _| task.ranks != ranks);
        self.replayed.retain(|played, _| played.ranks != ranks);
    }

    /// Makes replays, as far as their outcomes are not known yet. Outcomes are in the order of the
    /// tasks.
    pub(crate) fn replay(
        &mut self,
        request: &Request,
        record: &Record,
        tasks: &[Task],
    ) -> Result<Vec<Outcome>> {
        let placed = |task: &Task| {
            let usual = self.usual.get(&(task.machine, task.ranks));
            request.placed(task.same(record), usual)
        };
        let tasks: Vec<Task> = tasks.iter().map(placed).collect();
        let mut new: Vec<&Task> = Vec::new();
        for task in &tasks {
            if self.known.contains_key(task) || new.contains(&task) {
                continue;
            }
            match self.elsewhere.outcome(task)? {
                Some(outcome) => drop(self.known.insert(task.clone(), outcome)),
                None => new.push(task),
            }
        }
        if self.stops && !new.is_empty() {
            let missing = new.into_iter().cloned().collect();
            return Err(Missing(missing).into());
        }
        for task in &new {
            let played = task.played(request);
            if let Entry::Vacant(place) = self.replayed.entry(played) {
                let trace = played.trace(request, record)?;
                let file = MemoryFile::new()?;
                let written = (&file.0).write_all(&trace.write());
                written.context("cannot write a record for the replays")?;
                place.insert(file);
            }
        }
        let next = AtomicUsize::new(0);
        let (done, outcomes) = mpsc::channel();
        let jobs = Jobs {
            command: &self.command,
            replayed: &self.replayed,
            input: &self.input,
            request,
        };
        let start = Instant::now();
        let (new, next, jobs) = (&new, &next, &jobs);
        thread::scope(|scope| -> Result<()> {
            for _ in 0..AT_ONCE {
                let done = done.clone();
                let replays = move || {
                    while let Some(task) = new.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // The receiver has been dropped if a replay could not be started.
                        if done.send((*task, jobs.replay(task))).is_err() {
                            return;
                        }
                    }
                };
                let thread = thread::Builder::new().spawn_scoped(scope, replays);
                thread.context("cannot start a thread")?;
            }
            drop(done);
            for (task, outcome) in outcomes {
                let ended = outcome?;
                self.known.insert(task.clone(), ended.outcome()?);
                self.made.push((task.clone(), ended));
                self.console.step();
            }
            Ok(())
        })?;
        self.replaying += start.elapsed();
        Ok(tasks.iter().map(|task| self.known[task].clone()).collect())
    }
}

impl Played {
    /// The trace that the replays use.
    fn trace(&self, request: &Request, record: &Record) -> Result<Trace> {
        let of = record.of(self.ranks);
        let of = of.context("there is no record of so many ranks")?;
        let middle = of.middle(self.without);
        let middle = middle.context("there is no record of so many ranks")?;
        let computing = work::played(middle, self.is_distributed, &request.wanted);
        let computing = match self.has_taken {
            true => computing.with_taken(),
            false => computing,
        };
        let computing = match self.variation {
            Some(seed) => {
                let by = &request.variability;
                computing.varied(by, seed, |rank| rank / request.per_host.max(1))
            }
            None => computing,
        };
        let marks = of.marks(self.without, &request.wanted);
        let marks = marks.map_or_else(Vec::new, |marks| marks.calls());
        let trace = computing.scaled(self.scale).trace(&marks);
        Ok(match self.has_free_sources {
            true => trace,
            false => trace.frozen(),
        })
    }
}

/// The parts of a runner that its threads share.
struct Jobs<'a> {
    command: &'a Path,
    replayed: &'a HashMap<Played, MemoryFile>,
    input: &'a Input,
    request: &'a Request,
}

impl Jobs<'_> {
    fn replay(&self, task: &Task) -> Result<Ended> {
        let machines = [task.machine, task.hosts_of].map(|at| self.request.machine(at));
        let per_host = self.request.per_host_of(task.machine, task.ranks);
        let summary = MemoryFile::new()?;
        let trace = self.replayed.get(&task.played(self.request));
        let trace = trace.context("there is no record of so many ranks")?;
        let mut run = self.command(machines, (task.ranks, per_host), &task.changes)?;
        add_placement(&mut run, task.placement.as_ref());
        run.arg("--summary").arg(word("json=", &summary.path()));
        if task.machine >= self.request.machines.len() {
            // The machine of the recording: its times are those of the library that ran there.
            run.args(["--predict", "named"]);
        }
        if task.is_free {
            run.arg("--free-start");
        }
        if task.ideal == Some(Ideal::Contention) {
            run.arg("--wide-links");
        }
        if task.has_free_sources {
            run.arg("--free-sources");
        }
        if task.is_fast {
            run.arg("--fast");
        }
        run.stdin(Stdio::null()).arg("--").arg(trace.path());
        let ended = run.output().context("cannot start a replay")?;
        if !ended.status.success() {
            return Ok(Ended::Failed(last_words(&ended)));
        }
        Ok(Ended::Ran(summary.text()?))
    }

    /// The command of a run of the program on a machine.
    fn of_program(&self, machine: &Machine, ranks: usize) -> Result<Command> {
        let placed = (ranks, self.request.per_host);
        let mut run = self.command([machine, machine], placed, &[])?;
        add_placement(&mut run, self.request.placement.each.first());
        run.stdin(self.input.stdio()?);
        match &self.request.folder {
            RunFolder::Scratch => run.arg("--scratch"),
            RunFolder::Here(folder) => run.arg("--wdir").arg(folder),
        };
        Ok(run)
    }

    /// The command of a run on the network of the first machine with the hosts of the second, of so
    /// many ranks, with so many on each host.
    fn command(
        &self,
        [network, hosts]: [&Machine; 2],
        (ranks, per_host): (usize, usize),
        changes: &[Change],
    ) -> Result<Command> {
        let request = self.request;
        let mut run = child_guard::command(self.command);
        if let Some(threads) = request.threads_of_rank(ranks)
            && std::env::var_os(THREADS_VARIABLE).is_none()
        {
            run.env(THREADS_VARIABLE, threads.to_string());
        }
        run.args(["run", "-n", &ranks.to_string()]);
        run.args(["--ppn", &per_host.to_string()]);
        run.args(["--fabric", &network.word]).args(&request.options);
        let others = (network.word != hosts.word).then_some(&hosts.word);
        if let Some(word) = hosts.host.as_ref().or(others) {
            run.args(["--fabric-host", word]);
        }
        let of_network = network.changes.iter().filter(|one| !one.is_of_hosts());
        let of_hosts = hosts.changes.iter().filter(|one| one.is_of_hosts());
        for change in of_network.chain(of_hosts).chain(changes) {
            run.args(["--set", &change.to_string()]);
        }
        Ok(run)
    }
}

/// Adds the placement of a job to its command, unless the job fills the first hosts.
fn add_placement(run: &mut Command, draw: Option<&Draw>) {
    let placement = draw.map(|draw| &draw.placement);
    if let Some(placement) = placement.filter(|placement| !placement.is_packed()) {
        run.args(["--placement", &placement.to_string()]);
    }
}

fn word(before: &str, path: &Path) -> OsString {
    let mut word = OsString::from(before);
    word.push(path);
    word
}
