//! The life of a job: one loop that watches its ranks until no process of it is left.

mod budget;
mod debugger;
mod ending;
mod events;
mod exchange;
mod input;
mod interrupt;
mod other_libraries;
mod remote;
mod status_query;
mod unsupported;

use std::collections::HashSet;
use std::io::Write;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use secret::Secret;

use crate::agent::contact::{Agent, AgentStarter};
use crate::agent::tree::build::TreeBuild;
use crate::binding::{HostBinding, ReleaseWatch};
use crate::exchange::root::Root;
use crate::exchange::shape::Shape;
use crate::guard::{Guard, JobMark};
use crate::kill_sequence::KillSequence;
use crate::kvs::Kvs;
use crate::output::{OutputSink, OutputStream, OutputTarget};
use crate::rank::RankProcess;
use crate::signals::Signals;
use crate::start::{LocalShare, StartedRanks};
use crate::stuck::StuckDetector;
use crate::verdict::Verdict;
use crate::{Error, Options, limits, start, timespec};
pub(crate) use budget::Budget;
use input::InputRelay;
use other_libraries::OtherLibraries;
use status_query::StatusQuery;
use unsupported::Unsupported;

/// The time for the launcher's last message to leave.
const LAST_LINE: Duration = Duration::from_secs(1);

/// The end of a job.
#[derive(Debug, Clone, Default)]
pub struct JobEnd {
    /// Its exit code.
    pub code: u8,
    /// Rank 0's explanation of its choices, as JSON, if it was wanted and given.
    pub explained: Option<String>,
}

/// Runs a job. Its exit code is that of the first rank that failed, 128 plus the number of a
/// signal that ended it, or 124 after the timeout.
///
/// `signals` have been taken before anything was made that a signal would leave behind.
///
/// The calling thread must outlive the job, because the ranks die with the thread that started
/// them. The process must have no other children, because this function waits for all children.
pub fn run(options: &Options, signals: Signals) -> Result<JobEnd, Error> {
    limits::check(options.ranks())?;
    let descriptors = match options.hosts.len() {
        0 => limits::make_room(options.ranks(), options.needs_pipes())?,
        hosts => limits::make_room(hosts, true)?,
    };
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(Error::system("become the reaper of orphans"))?;
    let secret = Secret::draw().map_err(|why| Error::System {
        what: "draw the secret of the job",
        why,
    })?;
    let mark = JobMark::new();
    let guard = Guard::start(&mark, true, options.folder.as_deref());
    let (started, starter, outcome) = match options.hosts.is_empty() {
        true => {
            let share = LocalShare::all(options, mark, secret);
            let (started, outcome) = start::start(options, share, descriptors, signals.before());
            (started, None, outcome)
        }
        false => {
            let starter = AgentStarter::new(options, &mark, &secret, signals.before())?;
            let started = StartedRanks {
                ranks: remote_ranks(options),
                ..StartedRanks::default()
            };
            (started, Some(starter), Ok(()))
        }
    };
    let mut job = RunningJob::new(options, started, starter, signals, guard);
    match &outcome {
        Ok(()) => {
            job.show_debugger();
            job.say_started(None);
            job.start_agents();
        }
        Err(_) => job.end(&[Signal::SIGKILL]),
    }
    job.watch()?;
    job.say_other_libraries();
    job.say_wheel();
    job.say_unsupported();
    outcome?;
    Ok(JobEnd {
        explained: job.store().explanation().filter(|_| options.explain),
        code: job.verdict.map_or(0, |verdict| verdict.cause.exit_code()),
    })
}

/// The ranks that agents will start.
fn remote_ranks(options: &Options) -> Vec<RankProcess> {
    let hosts = options.hosts.iter().enumerate();
    let hosts = hosts.flat_map(|(host, at)| std::iter::repeat_n(host, at.ranks));
    let ranks = hosts.enumerate();
    ranks
        .map(|(number, host)| RankProcess::remote(number, host, &options.output))
        .collect()
}

/// A job while it runs.
struct RunningJob<'a> {
    options: &'a Options,
    ranks: Vec<RankProcess>,
    /// Holds the claims of cores.
    _binding: HostBinding,
    /// The watch over a soft binding of ranks on this machine.
    watch: Option<ReleaseWatch>,
    /// The agents, one for each host. Empty for a job on this machine.
    agents: Vec<Agent>,
    /// The agents that have not been started yet. None once all have been.
    starter: Option<AgentStarter>,
    /// The number of turns of the loop, by which each begins with another rank and agent.
    turn: usize,
    input: InputRelay,
    signals: Signals,
    /// Ends all processes if this one is killed.
    guard: Option<Guard>,
    /// The search for other MPI libraries in the memory of ranks.
    others: OtherLibraries,
    /// The store for ranks of this process, and the exchange with those of agents.
    kvs: Kvs,
    root: Root,
    /// The decision between tree and star of agents.
    tree: TreeBuild,
    /// The topics of warnings that have been printed.
    warned: HashSet<String>,
    /// The calls of procedures that the library lacks.
    unsupported: Unsupported,
    stdout: OutputSink,
    stderr: OutputSink,
    /// The first failure.
    verdict: Option<Verdict>,
    /// The status query that ranks are answering.
    query: Option<StatusQuery>,
    /// The signals still to be sent to end the job. None while it runs.
    ending: Option<KillSequence>,
    /// Whether the job failed or was interrupted: then its end does not wait for the reader of its
    /// output.
    hurry: bool,
    /// The time at which the launcher gives up on processes that do not end.
    hopeless: Option<Instant>,
    /// The signal that the terminal has sent to the ranks in the launcher's process group.
    had: Option<Signal>,
    /// The time at which the job is ended.
    timeout: Option<Instant>,
    stuck: Option<StuckDetector>,
    /// The time at which agents that have not ended are killed.
    overdue: Option<Instant>,
    /// Whether no process of the job is left.
    childless: bool,
}

impl<'a> RunningJob<'a> {
    fn new(
        options: &'a Options,
        started: StartedRanks,
        starter: Option<AgentStarter>,
        signals: Signals,
        guard: Option<Guard>,
    ) -> Self {
        let now = Instant::now();
        let StartedRanks { ranks, binding } = started;
        let counts: Vec<usize> = options.hosts.iter().map(|host| host.ranks).collect();
        let shape = Shape::new(options.tree, &counts);
        let patience = options.report_stuck.filter(|time| !time.is_zero());
        RunningJob {
            options,
            stuck: patience.map(|patience| StuckDetector::new(patience, ranks.len(), now)),
            ranks,
            watch: binding.watch(),
            _binding: binding,
            agents: Vec::new(),
            starter,
            turn: 0,
            input: InputRelay::default(),
            signals,
            guard,
            others: OtherLibraries::new(options, now),
            kvs: Kvs::new(options.ranks()),
            tree: TreeBuild::new(shape.clone()),
            root: Root::new(shape),
            warned: HashSet::new(),
            unsupported: Unsupported::default(),
            stdout: OutputSink::new(OutputTarget::Stdout),
            stderr: OutputSink::new(OutputTarget::Stderr),
            verdict: None,
            query: None,
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
            // Signals before deaths: a rank that Ctrl-C on the terminal killed has not failed.
            self.take_signals();
            self.handle_ranks(&ready);
            self.reap();
            self.move_output(&ready);
            self.move_input();
            self.handle_deadlines();
            self.look_after_binding();
        }
        self.stderr.flush_until(Instant::now() + LAST_LINE);
        Ok(())
    }

    fn look_after_binding(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.look(&self.ranks, Instant::now());
        }
    }

    fn is_over(&mut self) -> bool {
        let given_up = self.hopeless.is_some_and(|time| Instant::now() >= time);
        if given_up && !self.childless {
            self.say(
                "a process of the job does not end after SIGKILL: it waits in a system call, for a device or a file server",
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

    /// Whether a failed job ends without its reader: once all signals have been sent.
    fn ending_is_due(&self) -> bool {
        self.hurry && self.ending.as_ref().is_some_and(KillSequence::is_empty)
    }

    /// The key-value store of the job.
    fn store(&self) -> &Kvs {
        match self.is_remote() {
            true => self.root.kvs(),
            false => &self.kvs,
        }
    }

    /// Waits for an event, at most until the next deadline. Returns the ranks with events.
    fn sleep(&self) -> Result<Vec<usize>, Error> {
        let mut owners = Vec::new();
        let mut wanted = Vec::new();
        for rank in &self.ranks {
            wanted.extend(rank.wanted());
            let streams = rank
                .streams
                .iter()
                .filter(|stream| self.sink(stream.target).takes(rank.number));
            let readers = streams.filter_map(OutputStream::reader);
            wanted.extend(readers.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            owners.resize(wanted.len(), rank.number);
        }
        wanted.push(PollFd::new(&self.signals, PollFlags::IN));
        wanted.extend(self.wanted_of_agents());
        wanted.extend(self.wanted_of_input());
        let sinks = [&self.stdout, &self.stderr]
            .into_iter()
            .filter(|sink| !sink.is_empty());
        wanted.extend(sinks.map(|sink| PollFd::new(sink, PollFlags::OUT)));
        let now = self.has_waiting_frames().then(Timespec::default);
        let time = now.or(self.next_deadline().map(timespec));
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

    fn sink(&self, target: OutputTarget) -> &OutputSink {
        match target {
            OutputTarget::Stdout => &self.stdout,
            OutputTarget::Stderr => &self.stderr,
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let idle = self.query.is_none() && self.ending.is_none();
        let deadlines = [
            self.query.as_ref().map(|query| query.until),
            self.ending.as_ref().and_then(KillSequence::next),
            self.deadline_of_agents(),
            self.watch.as_ref().and_then(|watch| watch.next),
            self.others.next,
            self.hopeless,
            self.stdout.next(),
            self.stderr.next(),
            self.timeout.filter(|_| self.ending.is_none()),
            self.stuck.as_ref().filter(|_| idle).map(|stuck| stuck.next),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Prints a line for each rank of a host that has started, if the user wants it.
    fn say_started(&mut self, host: Option<usize>) {
        let ranks = self.ranks.iter().filter(|rank| rank.host == host);
        let ranks = ranks.filter(|_| self.options.verbose);
        let lines = ranks.map(|rank| format!("{}started", self.name(rank.number)));
        let lines: Vec<String> = lines.collect();
        lines.iter().for_each(|line| self.say(line));
    }

    /// Prints a message of the launcher, in one write if the reader of standard error keeps up, so
    /// that no line of a rank comes between. Never blocks.
    fn say(&mut self, text: &str) {
        self.stderr
            .push(&[format!("fishplate: {}\n", terminal_text::lines(text)).as_bytes()]);
        self.stderr.flush();
    }

    fn move_output(&mut self, ready: &[usize]) {
        for &number in ready {
            for stream in &mut self.ranks[number].streams {
                let sink = match stream.target {
                    OutputTarget::Stdout => &mut self.stdout,
                    OutputTarget::Stderr => &mut self.stderr,
                };
                if sink.is_closed() {
                    stream.close(sink);
                } else if sink.takes(number) {
                    stream.pull(sink);
                }
            }
        }
        self.stdout.flush();
        self.stderr.flush();
        self.acknowledge();
    }
}

/// Prints a message of the launcher after its job.
fn say(text: &str) {
    let _ = std::io::stderr()
        .write_all(format!("fishplate: {}\n", terminal_text::lines(text)).as_bytes());
}
