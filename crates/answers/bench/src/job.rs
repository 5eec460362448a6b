//! One run of one library: starts the workers with the launcher and reads their messages. Every
//! error names the library, the launcher and the cause.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use child_guard::WatchedFolder;
use conditions::{Disturbances, Moment};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use results::Console;

use crate::benchmark::Family;
use crate::ffi;
use crate::file_folder;
use crate::library::Library;
use crate::memory::PairMemory;
use crate::message::{RankConditions, SUBCOMMAND, Sample, Start, WorkerMessage};
use crate::plan::WorkerPlan;

pub(crate) struct Job<'a> {
    /// The executable that has the hidden subcommand of a worker.
    pub(crate) command: &'a Path,
    pub(crate) library: &'a Library,
    pub(crate) ranks: usize,
    pub(crate) plan: &'a WorkerPlan,
    /// The longest time without output, after which the job is ended.
    pub(crate) timeout: Duration,
}

#[derive(Default)]
pub(crate) struct JobOutcome {
    pub(crate) version: Option<String>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) start: Option<Start>,
    pub(crate) memory: Option<PairMemory>,
    /// The conditions of each rank's host. Empty on modelled machines.
    pub(crate) ranks: Vec<RankConditions>,
    /// The wall-clock time from the start of the launcher to its end.
    pub(crate) wall: Duration,
    /// The lines that the library and its launcher printed during the job.
    words: Vec<String>,
}

impl JobOutcome {
    /// Adds the outcome of a job that measured another size.
    fn add(&mut self, other: JobOutcome) {
        self.version = other.version.or(self.version.take());
        self.samples.extend(other.samples);
        self.ranks = other.ranks;
        self.wall += other.wall;
        for text in other.words {
            if !self.words.contains(&text) {
                self.words.push(text);
            }
        }
    }

    /// The hardware threads that each rank could use. Empty on modelled machines.
    pub(crate) fn binding(&self) -> Vec<String> {
        self.ranks.iter().map(|rank| rank.cpus.clone()).collect()
    }

    /// The disturbances of the job: those of the machine while it ran, and those of its ranks.
    pub(crate) fn disturbances(&self, of_machine: Disturbances) -> Disturbances {
        let ranks: Vec<_> = self
            .ranks
            .iter()
            .map(RankConditions::interruptions)
            .collect();
        of_machine.of_ranks(&ranks)
    }
}

/// The time to end for workers after an error, and for a launcher after a signal.
const GRACE: Duration = Duration::from_secs(3);
/// The number of the library's last lines of output that an error quotes.
const LAST_LINES: usize = 12;

enum Event {
    Out(String),
    Err(String),
    /// An output stream of the launcher has ended.
    Closed,
}

impl Job<'_> {
    /// Runs the job. Returns its outcome and its disturbances.
    pub(crate) fn run_watched(&self, console: &mut Console) -> Result<(JobOutcome, Disturbances)> {
        let before = Moment::now();
        let outcome = self.run(console)?;
        let disturbances = outcome.disturbances(Moment::now().since(&before));
        Ok((outcome, disturbances))
    }

    /// Runs the plan: in one job, or in a job for each size if [`WorkerPlan::sizes_apart`] is true.
    /// If the launcher writes a file, there is one job in any case, since the file has room for
    /// only one.
    pub(crate) fn run(&self, console: &mut Console) -> Result<JobOutcome> {
        let apart = self.plan.sizes_apart() && !self.library.launcher.writes();
        let outcome = match apart && self.plan.sizes.len() > 1 {
            false => self.run_once(console)?,
            true => {
                let mut all = JobOutcome::default();
                for &size in &self.plan.sizes {
                    let plan = self.plan.of_size(size);
                    all.add(
                        Job {
                            plan: &plan,
                            ..*self
                        }
                        .run_once(console)?,
                    );
                }
                all
            }
        };
        // Printed only after success: after a failure, these lines are part of the error.
        for text in &outcome.words {
            console.library_says(&self.library.label, text);
        }
        Ok(outcome)
    }

    fn run_once(&self, console: &mut Console) -> Result<JobOutcome> {
        self.try_run(console).map_err(|why| {
            let benchmark = self.plan.benchmark.name();
            let launcher = self.library.launcher.text();
            anyhow!(
                "{benchmark} failed on {} ranks of {}: {why:#}\nIt was started by `{launcher}`",
                self.ranks,
                self.library.name
            )
        })
    }

    fn try_run(&self, console: &mut Console) -> Result<JobOutcome> {
        let begin = Instant::now();
        let mut running = self.start()?;
        let events = running.events()?;
        let mut outcome = JobOutcome::default();
        let mut faults = Vec::new();
        let mut words = Vec::new();
        let mut open = 2;
        while open > 0 {
            let patience = if faults.is_empty() {
                self.timeout
            } else {
                GRACE
            };
            match events.recv_timeout(patience) {
                Ok(Event::Closed) => open -= 1,
                Ok(Event::Out(text)) => match WorkerMessage::parse(&text) {
                    Some(WorkerMessage::Hello { version }) => outcome.version = Some(version),
                    Some(WorkerMessage::Sample(sample)) => {
                        outcome.samples.push(sample);
                        console.step();
                    }
                    Some(WorkerMessage::Start(start)) => outcome.start = Some(start),
                    Some(WorkerMessage::Ranks { all }) => outcome.ranks = all,
                    Some(WorkerMessage::Memory(memory)) => outcome.memory = Some(memory),
                    Some(WorkerMessage::Fault { rank, text }) => faults.push(match rank {
                        Some(rank) => format!("rank {rank}: {text}"),
                        None => text,
                    }),
                    None => words.push(text),
                },
                Ok(Event::Err(text)) => words.push(text),
                Err(RecvTimeoutError::Timeout) if faults.is_empty() => {
                    running.end();
                    let seconds = self.timeout.as_secs_f64();
                    bail!(
                        "no output for {seconds} s{}: the run was ended",
                        after(&outcome)
                    );
                }
                Err(_) => break,
            }
        }
        if let Some(fault) = faults.first() {
            running.end();
            bail!("{fault}{}", quote(&words));
        }
        let status = running.wait(GRACE)?;
        outcome.wall = begin.elapsed();
        if !status.success() {
            bail!(
                "the launcher failed ({status}){}{}",
                after(&outcome),
                quote(&words)
            );
        }
        let mut outcome = self
            .complete(outcome)
            .map_err(|error| anyhow!("{error}{}", quote(&words)))?;
        outcome.words = words;
        Ok(outcome)
    }

    fn start(&self) -> Result<Running> {
        let is_of_files = self.plan.benchmark.family() == Family::File;
        let folder = is_of_files.then(|| file_folder::new(self.command));
        let folder = folder.transpose()?;
        let plan = WorkerPlan {
            folder: folder.as_ref().map(|folder| folder.path().to_owned()),
            ..self.plan.clone()
        };
        let plan = serde_json::to_string(&plan).context("the plan of the job")?;
        let mut command = self.library.launcher.command(self.ranks);
        command
            .arg(self.command)
            .arg(SUBCOMMAND)
            .arg(&self.library.path)
            .arg(plan);
        command.envs(self.library.environment.iter().cloned());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        ffi::end_with_parent(&mut command);
        command
            .spawn()
            .map(|child| Running {
                child,
                _folder: folder,
            })
            .context("cannot start the launcher")
    }

    /// Checks that a run that ended without an error has measured everything.
    fn complete(&self, outcome: JobOutcome) -> Result<JobOutcome> {
        if self.plan.benchmark.family() == Family::Start {
            if self.plan.inspect && outcome.start.is_none() {
                bail!("the run ended without a result of rank 0");
            }
        } else if outcome.samples.len() != self.plan.sizes.len() {
            let (done, sizes) = (outcome.samples.len(), self.plan.sizes.len());
            bail!("the run ended without error, but after {done} of {sizes} sizes");
        }
        Ok(outcome)
    }
}

fn after(outcome: &JobOutcome) -> String {
    match (outcome.samples.last(), &outcome.version) {
        (Some(last), _) => format!(" after the size {}", last.size),
        (None, Some(_)) => " after MPI_Init".into(),
        (None, None) => String::new(),
    }
}

fn quote(words: &[String]) -> String {
    if words.is_empty() {
        return String::new();
    }
    let last = &words[words.len().saturating_sub(LAST_LINES)..];
    format!("\nIts last lines:\n  {}", last.join("\n  "))
}

/// A launcher that runs. Dropping this value ends it.
struct Running {
    child: Child,
    /// The folder for files of a file benchmark, which is removed after the end of the job. `None`:
    /// the benchmark has no files.
    _folder: Option<WatchedFolder>,
}

impl Running {
    /// A channel with the lines of both output streams. The threads that read them end with the
    /// streams.
    fn events(&mut self) -> Result<Receiver<Event>> {
        let (sender, receiver) = channel();
        if let Some(out) = self.child.stdout.take() {
            forward(out, sender.clone(), Event::Out)?;
        }
        if let Some(err) = self.child.stderr.take() {
            forward(err, sender, Event::Err)?;
        }
        Ok(receiver)
    }

    fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let until = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > until {
                bail!("the launcher closed its output but did not end");
            }
            // A short pause, because the measured wall-clock time of `init` ends here.
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// Ends the launcher: first with SIGTERM, which it passes on to its ranks, then with SIGKILL.
    fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // The launcher may have ended in the meantime, so errors are ignored.
            let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
            if self.wait(GRACE).is_err() {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn forward(
    stream: impl Read + Send + 'static,
    sender: Sender<Event>,
    event: impl Fn(String) -> Event + Send + 'static,
) -> Result<()> {
    let reads = move || {
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        while let Ok(1..) = lines.read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if sender.send(event(text)).is_err() {
                return;
            }
        }
        let _ = sender.send(Event::Closed);
    };
    let thread = thread::Builder::new().spawn(reads);
    thread.context("cannot start a thread")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Benchmark;
    use crate::library::LibraryChoice;
    use crate::message::WorkerMessage;
    use crate::sizes::SizeRange;

    /// Runs a job whose launcher is this shell script.
    fn run(script: &str, timeout: Duration) -> Result<JobOutcome> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("bench-job-{}-{number}", std::process::id()));
        std::fs::create_dir_all(folder.join("lib"))?;
        let (library, file) = (folder.join("lib/libmpi_abi.so.1"), folder.join("launcher"));
        std::fs::write(&library, "")?;
        std::fs::write(&file, script)?;
        let choice = LibraryChoice {
            subject: Some(library),
            launchers: vec![format!("sh {}", file.display())],
            ..LibraryChoice::default()
        };
        let libraries = choice.libraries(Path::new("/nowhere/bin/fishplate"))?;
        let plan = WorkerPlan::new(Benchmark::Latency, Some(&SizeRange::parse("8:16")?))?;
        let job = Job {
            command: Path::new("worker"),
            library: &libraries[0],
            ranks: 2,
            plan: &plan,
            timeout,
        };
        let outcome = job.run(&mut Console::new(1));
        std::fs::remove_dir_all(folder)?;
        outcome
    }

    fn error(script: &str, timeout: Duration) -> String {
        format!("{:#}", run(script, timeout).map(|_| ()).unwrap_err())
    }

    const PATIENT: Duration = Duration::from_secs(30);

    fn echo(line: WorkerMessage) -> String {
        format!("echo '{}'\n", line.text().trim())
    }

    fn sample(size: usize) -> String {
        echo(WorkerMessage::Sample(Sample {
            size,
            value: 1.0,
            ..Sample::default()
        }))
    }

    #[test]
    fn messages_of_workers_are_collected_beside_the_librarys_output() {
        let script = sample(8) + "echo MPI startup\necho warning >&2\n" + &sample(16);
        let outcome = run(&script, PATIENT).unwrap();
        assert_eq!(
            outcome.samples.iter().map(|s| s.size).collect::<Vec<_>>(),
            [8, 16]
        );
    }

    #[test]
    fn a_fault_is_reported_with_its_rank_and_the_job_ended() {
        let fault = WorkerMessage::Fault {
            rank: Some(1),
            text: "MPI_Send failed".into(),
        };
        let begin = Instant::now();
        let error = error(&(sample(8) + &echo(fault) + "exec sleep 60"), PATIENT);
        assert!(error.contains("latency failed on 2 ranks of "), "{error}");
        assert!(error.contains("rank 1: MPI_Send failed"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_death_is_reported_with_the_last_lines() {
        let error = error(&(sample(8) + "echo out of luck >&2\nkill -9 $$"), PATIENT);
        assert!(
            error.contains("signal: 9 (SIGKILL)) after the size 8"),
            "{error}"
        );
        assert!(error.contains("out of luck"), "{error}");
    }

    #[test]
    fn an_end_too_early_is_an_error() {
        let error = error(&sample(8), PATIENT);
        assert!(error.contains("after 1 of 2 sizes"), "{error}");
    }

    #[test]
    fn silence_is_not_waited_for_for_ever() {
        let error = error("exec sleep 60", Duration::from_millis(200));
        assert!(error.contains("no output for 0.2 s"), "{error}");
    }
}
