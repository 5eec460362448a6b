//! The life of a job: one loop that watches the ranks until nothing of them is left.

mod ending;
mod events;
mod interrupt;
mod remote;
mod status_query;

use std::io::Write;
use std::time::Instant;

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::agent::contact::{self, Agent};
use crate::kill_sequence::Steps;
use crate::kvs::Kvs;
use crate::output::{Sink, Stream, Target};
use crate::rank::Rank;
use crate::signals::Signals;
use crate::start::Share;
use crate::stuck::Stuck;
use crate::verdict::Verdict;
use crate::{Error, Options, limits, start, timespec};
use remote::Input;
use status_query::Inquiry;

/// Runs the job. Returns the exit code: that of the first rank that failed, 128 and the signal's number if a signal
/// ended it, 124 after the timeout.
///
/// The calling thread has to outlive the job, because the ranks die with the thread that started them; and the process
/// must have no other children, because all are waited for.
pub fn run(options: &Options) -> Result<u8, Error> {
    limits::check(options.ranks)?;
    let descriptors = match options.hosts.len() {
        0 => limits::make_room(options.ranks, options.tag_output)?,
        hosts => limits::make_room(hosts, true)?,
    };
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(Error::system("become the reaper of orphans"))?;
    let signals = Signals::take()?;
    let (ranks, agents, outcome) = match options.hosts.is_empty() {
        true => {
            let share = Share::all(options.ranks);
            let (ranks, outcome) = start::start(options, share, descriptors, signals.before());
            (ranks, Vec::new(), outcome)
        }
        false => {
            let (agents, outcome) = contact::start(options, signals.before());
            (elsewhere(options, agents.len()), agents, outcome)
        }
    };
    let mut job = Job::new(options, ranks, agents, signals);
    if outcome.is_err() {
        job.end(&[Signal::SIGKILL]);
    }
    job.watch()?;
    outcome?;
    Ok(job.verdict.map_or(0, |verdict| verdict.cause.exit_code()))
}

/// The ranks that agents will start, on the hosts whose agents are under way.
fn elsewhere(options: &Options, agents: usize) -> Vec<Rank> {
    let hosts = options.hosts.iter().take(agents).enumerate();
    let hosts = hosts.flat_map(|(host, at)| std::iter::repeat_n(host, at.ranks));
    let ranks = hosts.enumerate();
    ranks
        .map(|(number, host)| Rank::remote(number, host, options.tag_output))
        .collect()
}

struct Job<'a> {
    options: &'a Options,
    ranks: Vec<Rank>,
    /// One for each host of a job on several; none on one.
    agents: Vec<Agent>,
    input: Input,
    signals: Signals,
    kvs: Kvs,
    stdout: Sink,
    stderr: Sink,
    /// The first failure.
    verdict: Option<Verdict>,
    inquiry: Option<Inquiry>,
    /// The signals still to be sent to end the job, and when; none while it runs.
    ending: Option<Steps>,
    /// The job failed, or somebody wants it to end: nobody who reads its output is waited for.
    hurry: bool,
    hopeless: Option<Instant>,
    /// The ranks that share the launcher's process group have had this signal from the terminal.
    had: Option<Signal>,
    timeout: Option<Instant>,
    stuck: Option<Stuck>,
    /// When agents that have not ended are killed.
    overdue: Option<Instant>,
    /// No process of the job is left.
    childless: bool,
}

impl<'a> Job<'a> {
    fn new(options: &'a Options, ranks: Vec<Rank>, agents: Vec<Agent>, signals: Signals) -> Self {
        let now = Instant::now();
        let patience = options.report_stuck.filter(|time| !time.is_zero());
        Job {
            options,
            stuck: patience.map(|patience| Stuck::new(patience, ranks.len(), now)),
            ranks,
            agents,
            input: Input::default(),
            signals,
            kvs: Kvs::new(options.ranks),
            stdout: Sink::new(Target::Stdout),
            stderr: Sink::new(Target::Stderr),
            verdict: None,
            inquiry: None,
            ending: None,
            hurry: false,
            overdue: None,
            hopeless: None,
            had: None,
            timeout: options.timeout.and_then(|time| now.checked_add(time)),
            childless: false,
        }
    }

    fn watch(&mut self) -> Result<(), Error> {
        while !self.is_over() {
            let ready = self.sleep()?;
            // Signals before deaths: a rank that the terminal's Ctrl-C killed has not failed by itself.
            self.take_signals();
            self.listen(&ready);
            self.reap();
            self.move_output(&ready);
            self.look_at_the_clock();
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let given_up = self.hopeless.is_some_and(|time| Instant::now() >= time);
        if given_up && !self.childless {
            say(
                "a process of the job does not end: it waits in the system, for a device or a file server",
            );
        }
        let quiet = self
            .ranks
            .iter()
            .all(|rank| rank.streams.iter().all(|stream| stream.reader().is_none()))
            && self.stdout.is_empty()
            && self.stderr.is_empty();
        given_up || (self.childless && (quiet || self.ending_is_due()))
    }

    /// Whoever does not read the output holds up the end of a failed job for no longer than its ranks do.
    fn ending_is_due(&self) -> bool {
        self.hurry && self.ending.as_ref().is_some_and(Steps::is_empty)
    }

    /// Waits for something to do, at most until the clock says that there is. Returns the ranks that have something.
    fn sleep(&self) -> Result<Vec<usize>, Error> {
        let mut owners = Vec::new();
        let mut wanted = Vec::new();
        for rank in &self.ranks {
            wanted.extend(rank.wanted());
            let streams = rank
                .streams
                .iter()
                .filter(|stream| !self.sink(stream.target).is_full());
            let readers = streams.filter_map(Stream::reader);
            wanted.extend(readers.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            owners.resize(wanted.len(), rank.number);
        }
        wanted.push(PollFd::new(&self.signals, PollFlags::IN));
        wanted.extend(self.wanted_of_agents());
        let sinks = [&self.stdout, &self.stderr]
            .into_iter()
            .filter(|sink| !sink.is_empty());
        wanted.extend(sinks.map(|sink| PollFd::new(sink, PollFlags::OUT)));
        let time = self.next_deadline().map(timespec);
        match poll(&mut wanted, time.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::system("wait for the ranks")(errno)),
        }
        let ready = owners
            .iter()
            .zip(&wanted)
            .filter(|(_, fd)| !fd.revents().is_empty());
        let mut ready: Vec<usize> = ready.map(|(&owner, _)| owner).collect();
        ready.dedup();
        Ok(ready)
    }

    fn sink(&self, target: Target) -> &Sink {
        match target {
            Target::Stdout => &self.stdout,
            Target::Stderr => &self.stderr,
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let idle = self.inquiry.is_none() && self.ending.is_none();
        let deadlines = [
            self.inquiry.as_ref().map(|inquiry| inquiry.until),
            self.ending.as_ref().and_then(Steps::next),
            self.deadline_of_agents(),
            self.hopeless,
            self.timeout.filter(|_| self.ending.is_none()),
            self.stuck.as_ref().filter(|_| idle).map(|stuck| stuck.next),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn move_output(&mut self, ready: &[usize]) {
        for &number in ready {
            for stream in &mut self.ranks[number].streams {
                let sink = match stream.target {
                    Target::Stdout => &mut self.stdout,
                    Target::Stderr => &mut self.stderr,
                };
                if sink.is_closed() {
                    stream.close(sink);
                } else if !sink.is_full() {
                    stream.pull(sink);
                }
            }
        }
        self.stdout.flush();
        self.stderr.flush();
        self.acknowledge();
    }
}

/// In one write, so that the lines of ranks do not come between.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("fishplate: {text}\n").as_bytes());
}
