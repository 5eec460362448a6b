//! One run of one library: starts the workers under the launcher, reads what they say, and makes
//! an error that names the library, the launcher and the cause of everything that goes wrong.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::console::Console;
use crate::library::Library;
use crate::line::{Line, Sample, Start};
use crate::plan::Plan;
use crate::worker;

pub struct Job<'a> {
    /// The executable whose hidden subcommand is a worker.
    pub command: &'a Path,
    pub library: &'a Library,
    pub ranks: usize,
    pub plan: &'a Plan,
    /// The longest silence.
    pub timeout: Duration,
}

#[derive(Default)]
pub struct Outcome {
    pub version: Option<String>,
    pub samples: Vec<Sample>,
    pub start: Option<Start>,
    /// From before the launcher was started until it had ended.
    pub wall: Duration,
}

/// How long workers have after one reported an error, and a launcher that was told to end.
const GRACE: Duration = Duration::from_secs(3);
/// So many of the library's last words belong to an error.
const LAST_WORDS: usize = 12;

enum Event {
    Out(String),
    Err(String),
    /// A stream has ended.
    End,
}

impl Job<'_> {
    pub fn run(&self, console: &mut Console) -> Result<Outcome> {
        self.try_run(console).with_context(|| {
            let benchmark = self.plan.benchmark.name();
            let launcher = self.library.launcher.text();
            format!(
                "{benchmark} failed on {} ranks of {} (started by `{launcher}`)",
                self.ranks, self.library.name
            )
        })
    }

    fn try_run(&self, console: &mut Console) -> Result<Outcome> {
        let begin = Instant::now();
        let mut running = self.start()?;
        let events = running.events();
        let mut outcome = Outcome::default();
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
                Ok(Event::End) => open -= 1,
                Ok(Event::Out(text)) => match Line::parse(&text) {
                    Some(Line::Hello { version }) => outcome.version = Some(version),
                    Some(Line::Sample(sample)) => {
                        outcome.samples.push(sample);
                        console.step();
                    }
                    Some(Line::Start(start)) => outcome.start = Some(start),
                    Some(Line::Fault { rank, text }) => faults.push(match rank {
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
                        "nothing was heard for {seconds} s{}: it was ended",
                        after(&outcome)
                    );
                }
                Err(_) => break,
            }
            // Words beside a good run are shown as they come; those of a bad one go with the error.
            if faults.is_empty() && open == 2 {
                for text in words.iter().skip(words.len().saturating_sub(1)) {
                    console.library_says(&self.library.label, text);
                }
            }
        }
        if let Some(fault) = faults.first() {
            running.end();
            bail!("{fault}{}", quote(&words));
        }
        let status = running.wait(GRACE)?;
        outcome.wall = begin.elapsed();
        if !status.success() {
            bail!("it ended with {status}{}{}", after(&outcome), quote(&words));
        }
        self.complete(outcome)
            .map_err(|error| anyhow!("{error}{}", quote(&words)))
    }

    fn start(&self) -> Result<Running> {
        let plan = serde_json::to_string(self.plan)?;
        let mut command = self.library.launcher.command(self.ranks);
        command
            .arg(self.command)
            .arg(worker::SUBCOMMAND)
            .arg(&self.library.path)
            .arg(plan);
        command.envs(self.library.environment.iter().cloned());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
            .spawn()
            .map(|child| Running { child })
            .context("the launcher cannot be started")
    }

    /// A library may end well without having done its work.
    fn complete(&self, outcome: Outcome) -> Result<Outcome> {
        let sizes = if self.plan.benchmark.family() == crate::plan::Family::Start {
            if self.plan.inspect && outcome.start.is_none() {
                bail!("it ended without a word from rank 0");
            }
            return Ok(outcome);
        } else {
            self.plan.sizes.len()
        };
        if outcome.samples.len() != sizes {
            bail!(
                "it ended after {} of {sizes} sizes without an error",
                outcome.samples.len()
            );
        }
        Ok(outcome)
    }
}

fn after(outcome: &Outcome) -> String {
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
    let last = &words[words.len().saturating_sub(LAST_WORDS)..];
    format!("\nIts last words:\n  {}", last.join("\n  "))
}

/// A launcher that is running; it does not outlive this.
struct Running {
    child: Child,
}

impl Running {
    /// Both streams, line by line. The threads end with the streams.
    fn events(&mut self) -> Receiver<Event> {
        let (sender, receiver) = channel();
        if let Some(out) = self.child.stdout.take() {
            forward(out, sender.clone(), Event::Out);
        }
        if let Some(err) = self.child.stderr.take() {
            forward(err, sender, Event::Err);
        }
        receiver
    }

    fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let until = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > until {
                bail!("its launcher closed its output but did not end");
            }
            // Short, because the wall time of a start is measured to here.
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// First by a signal that a launcher passes on to its ranks, then by one it cannot refuse.
    fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // It may have ended since: then there is nobody to tell.
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
) {
    thread::spawn(move || {
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        while let Ok(1..) = lines.read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if sender.send(event(text)).is_err() {
                return;
            }
        }
        let _ = sender.send(Event::End);
    });
}
