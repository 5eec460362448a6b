//! A job while it runs: the event loop. It passes events to the state machines concerned, and
//! carries out the orders of the job's course.

use std::collections::HashSet;
use std::time::Instant;

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::agents::Agents;
use super::console::Console;
use super::course::{Course, FailureLine, Order, Steps, TERMINATE};
use super::input::InputRelay;
use super::other_libraries::{OtherLibraries, remark_on_wheel};
use super::remarks::Remarks;
use crate::agent::contact::AgentStarter;
use crate::agent::frame::ToAgent;
use crate::binding::{HostBinding, ReleaseWatch};
use crate::budget::Budget;
use crate::guard::Guard;
use crate::kvs::Kvs;
use crate::mpir::{self, RankEntry};
use crate::output::OutputTarget;
use crate::output::arrivals::{Arrivals, StreamId};
use crate::output::pipes::SLOTS;
use crate::rank::RankProcess;
use crate::signals::{ReceivedSignal, Signals};
use crate::start::StartedRanks;
use crate::verdict::Verdict;
use crate::{Error, Options, describe, processes, timespec};

/// The most bytes of lines that are still received after a failure, because ranks may have sent
/// them before it.
const EARLIER_LINES: usize = 4 << 20;

/// The outcome of a job, for the caller of the launcher.
#[derive(Debug, Clone, Default)]
pub struct JobEnd {
    /// The exit code of the launcher for this job.
    pub code: u8,
    /// Rank 0's explanation of its choices, as JSON, if it was requested and given.
    pub explained: Option<String>,
}

/// The ranks of this host with events, and the streams among these.
#[derive(Default)]
struct Ready {
    ranks: Vec<usize>,
    streams: Vec<StreamId>,
}

/// The state of a job while it runs.
pub(super) struct RunningJob<'a> {
    pub options: &'a Options,
    pub ranks: Vec<RankProcess>,
    /// The binding of the ranks, kept because it contains the claims of cores.
    _binding: HostBinding,
    /// The checks that release ranks of this machine from a soft binding.
    watch: Option<ReleaseWatch>,
    /// The agents, one for each host. Empty for a job on this machine.
    pub agents: Agents<'a>,
    /// The number of passes of the event loop. Each pass begins with another rank and agent, for
    /// fairness.
    pub turn: usize,
    pub input: InputRelay,
    signals: Signals,
    /// The process that ends all processes of the job if this process is killed.
    guard: Option<Guard>,
    /// The search for other MPI libraries in the memory of ranks.
    others: OtherLibraries,
    /// The key-value store for ranks of this machine. With agents, the store is in their hub.
    pub kvs: Kvs,
    pub remarks: Remarks,
    pub console: Console,
    /// The order of the writes of ranks of this host to their pipes.
    arrivals: Arrivals,
    pub course: Course,
    /// True if all processes of the job have ended.
    pub childless: bool,
}

impl<'a> RunningJob<'a> {
    pub(super) fn new(
        options: &'a Options,
        started: StartedRanks,
        starter: Option<AgentStarter>,
        signals: Signals,
        guard: Option<Guard>,
    ) -> Self {
        let now = Instant::now();
        let StartedRanks {
            ranks,
            binding,
            arrivals,
        } = started;
        let (timeout, patience) = (options.timeout, options.report_stuck);
        RunningJob {
            options,
            arrivals,
            course: Course::new(timeout, patience, ranks.len(), now),
            ranks,
            watch: binding.watch(),
            _binding: binding,
            agents: Agents::new(options, starter),
            turn: 0,
            input: InputRelay::new(options.input),
            signals,
            guard,
            others: OtherLibraries::new(options, now),
            kvs: Kvs::new(options.ranks()),
            remarks: Remarks::default(),
            console: Console::new(options.ranks()),
            childless: false,
        }
    }

    /// Begins the job: ranks on this machine have been started already, agents are started now.
    pub(super) fn begin(&mut self) {
        self.show_debugger();
        self.say_started(None);
        self.start_agents();
    }

    /// Waits until no process of the job is left.
    pub(super) fn watch(&mut self) -> Result<(), Error> {
        while !self.is_over() {
            let ready = self.sleep()?;
            // Signals are handled before deaths: a rank that Ctrl-C on the terminal has killed has
            // not failed.
            self.take_signals();
            self.handle_ranks(&ready.ranks);
            self.reap();
            self.move_output(&ready.streams);
            self.input.move_on(&mut self.ranks, &mut self.agents);
            self.handle_deadlines();
            if let Some(watch) = &mut self.watch {
                watch.check(&self.ranks, Instant::now());
            }
        }
        self.console.flush_last();
        Ok(())
    }

    fn is_over(&mut self) -> bool {
        let given_up = self.course.has_given_up(Instant::now());
        if given_up && !self.childless {
            self.console.say(
                "a process of the job does not end after SIGKILL: it waits in a system call, for a device or a file server",
            );
        }
        let mut streams = self.ranks.iter().flat_map(|rank| &rank.streams);
        let quiet = streams.all(|stream| stream.reader().is_none()) && self.console.is_empty();
        given_up || (self.childless && (quiet || self.course.leaves_output()))
    }

    /// Remarks to print after the job: about other MPI libraries, and about procedures that ours
    /// lacks.
    pub(super) fn closing_remarks(&self) -> Vec<String> {
        let (ranks, options) = (&self.ranks, self.options);
        let remarks = [
            self.others.remark(ranks, options),
            remark_on_wheel(ranks, options, self.course.verdict()),
            self.remarks.line(),
        ];
        remarks.into_iter().flatten().collect()
    }

    /// The outcome of the job.
    pub(super) fn conclusion(&self) -> JobEnd {
        let store = match self.agents.are_wanted() {
            true => self.agents.hub.kvs(),
            false => &self.kvs,
        };
        let verdict = self.course.verdict();
        JobEnd {
            explained: store.explanation().filter(|_| self.options.explain),
            code: verdict.map_or(0, |verdict| verdict.cause.exit_code()),
        }
    }

    /// Waits for an event, at most until the next deadline. Returns what has events on this host.
    fn sleep(&self) -> Result<Ready, Error> {
        let mut owners: Vec<(usize, Option<usize>)> = Vec::new();
        let mut wanted = Vec::new();
        for rank in &self.ranks {
            wanted.extend(rank.wanted());
            owners.resize(wanted.len(), (rank.number, None));
            for (at, stream) in rank.streams.iter().enumerate() {
                let takes = self.console.sink(stream.target).takes(rank.number);
                if let Some(reader) = stream.reader().filter(|_| takes) {
                    wanted.push(PollFd::from_borrowed_fd(reader, PollFlags::IN));
                    owners.push((rank.number, Some(at)));
                }
            }
        }
        wanted.push(PollFd::new(&self.signals, PollFlags::IN));
        wanted.extend(self.agents.wanted(self.may_read_text()));
        wanted.extend(self.input.wanted(&self.ranks, &self.agents));
        wanted.extend(self.console.wanted());
        let now = self.agents.has_waiting_frames().then(Timespec::default);
        let time = now.or(self.next_deadline().map(timespec));
        match poll(&mut wanted, time.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::system("wait for the ranks")(errno)),
        }
        let mut ready = Ready::default();
        for (&(rank, stream), fd) in owners.iter().zip(&wanted) {
            if !fd.revents().is_empty() {
                ready.ranks.push(rank);
                ready.streams.extend(stream.map(|stream| (rank, stream)));
            }
        }
        ready.ranks.dedup();
        Ok(ready)
    }

    /// True if the queue of standard error has room for the text of agents' commands.
    pub(super) fn may_read_text(&self) -> bool {
        !self.console.sink(OutputTarget::Stderr).is_full()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let deadlines = [
            self.course.next(),
            self.agents.next(self.course.is_ending()),
            self.watch.as_ref().and_then(|watch| watch.next),
            self.others.next,
            self.console.next(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Performs the actions that are due at the present time.
    fn handle_deadlines(&mut self) {
        let now = Instant::now();
        let own = self.options.library.as_deref();
        let is_ending = self.course.is_ending();
        self.others.search(&self.ranks, own, is_ending, now);
        self.send_due_signals();
        self.agents.end_overdue(now);
        self.console.check(now);
        if let Some(verdict) = self.course.time_out(now) {
            self.fail(verdict, TERMINATE);
        }
        let orders = self.course.check(&self.ranks, now);
        self.follow(orders);
    }

    /// Moves output of ranks to the launcher's streams, in the order of its writes. `ready`: the
    /// streams that had unread writes before this call.
    pub(super) fn move_output(&mut self, ready: &[StreamId]) {
        let announced = self.arrivals.take();
        for &(number, at) in &announced.writes {
            let stream = &mut self.ranks[number].streams[at];
            if self.console.takes(number, stream.target) {
                self.console.pull(number, stream);
            } else {
                self.arrivals.put_back((number, at));
            }
        }
        if !announced.may_be_more {
            let announced: HashSet<StreamId> = announced.writes.into_iter().collect();
            for &(number, at) in ready.iter().filter(|it| !announced.contains(it)) {
                if self
                    .console
                    .pull(number, &mut self.ranks[number].streams[at])
                {
                    self.arrivals.was_read_ahead((number, at));
                }
            }
        }
        self.console.flush();
        self.agents.acknowledge(&self.console);
    }

    /// Moves the output of a rank of this host that has arrived, at most what its pipes hold.
    pub(super) fn pull_all(&mut self, number: usize) {
        for stream in &mut self.ranks[number].streams {
            let mut left = SLOTS;
            while left > 0 && self.console.pull(number, stream) {
                left -= 1;
            }
        }
    }

    /// Handles the signals that the launcher has received.
    pub(super) fn take_signals(&mut self) {
        while let Some(received) = self.signals.read() {
            match received.signal {
                Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP => self.interrupt(received),
                Signal::SIGUSR1 | Signal::SIGUSR2 => {
                    self.pass_on(received.signal, received.from_terminal)
                }
                Signal::SIGQUIT => {
                    let order = self.course.report(Instant::now());
                    self.follow(order);
                }
                Signal::SIGTSTP => self.stop(received.from_terminal),
                Signal::SIGCONT => self.pass_on(Signal::SIGCONT, received.from_terminal),
                _ => {}
            }
        }
    }

    /// Handles an interrupt. The first one lets ranks report their status and clean up, the second
    /// kills them.
    fn interrupt(&mut self, received: ReceivedSignal) {
        let ReceivedSignal {
            signal,
            from_terminal,
            ..
        } = received;
        match self.course.interrupt(signal, from_terminal) {
            Some((verdict, steps)) => self.fail(verdict, steps),
            None => self.end(&[Signal::SIGKILL]),
        }
    }

    /// Stops the ranks and this process, and continues the ranks once this process continues.
    fn stop(&mut self, from_terminal: bool) {
        self.pass_on(Signal::SIGTSTP, from_terminal);
        self.agents.announce_silence();
        processes::to_process(rustix::process::getpid(), Signal::SIGSTOP);
        self.pass_on(Signal::SIGCONT, false);
    }

    /// Forwards a signal to the ranks of all hosts. `had`: the terminal has sent it to its
    /// foreground process group already.
    fn pass_on(&mut self, signal: Signal, had: bool) {
        processes::to_ranks(&self.ranks, signal, had);
        self.agents.pass_on(signal);
    }

    /// Ends the job with this verdict by the signals `steps`, after ranks have had time to report
    /// their status.
    pub(super) fn fail(&mut self, verdict: Verdict, steps: Steps) {
        // Statuses describe the time before the failure, so earlier lines are received first.
        let mut budget = Budget::of(EARLIER_LINES);
        for number in 0..self.ranks.len() {
            while let Some(events) = self.ranks[number].receive_events(&mut budget) {
                self.say_remarks(number, events);
            }
        }
        if !self.course.is_ending() {
            mpir::aborting(&self.line(&FailureLine::of(&verdict, false)));
        }
        let now = Instant::now();
        let order = self.course.fail(&self.ranks, verdict, steps, now);
        self.follow(order);
    }

    /// Ends the job by the signals `steps`, one after the other.
    pub(super) fn end(&mut self, steps: Steps) {
        let orders = self.course.end(steps, true, Instant::now());
        self.follow(orders);
    }

    /// Carries out these orders that follow from the job's course.
    pub(super) fn follow(&mut self, orders: impl IntoIterator<Item = Order>) {
        for order in orders {
            match order {
                Order::Say(line) => {
                    let line = self.line(&line);
                    self.console.say(&line);
                }
                Order::Report(title) => {
                    let lines = describe::in_lines(&self.ranks).into_iter();
                    let lines: String = lines.map(|line| format!("\n  {line}")).collect();
                    self.console.say(&(title + &lines));
                }
                Order::AskStatus => self.ask_status(),
                Order::End(steps) => {
                    self.input.stop();
                    self.agents.end(steps, self.course.is_in_a_hurry());
                    self.send_due_signals();
                }
            }
        }
    }

    /// Requests the status of the ranks that are running.
    fn ask_status(&mut self) {
        let ranks = self.ranks.iter_mut();
        for rank in ranks.filter(|rank| rank.is_running() && !rank.finalized) {
            rank.request_status();
            if let Some(host) = rank.host.filter(|_| rank.pid.is_some()) {
                let link = &mut self.agents.get_mut(host).link;
                link.post(&ToAgent::RequestStatus(rank.number));
            }
        }
    }

    /// Sends the signals that are due. In a job with agents, these send them.
    fn send_due_signals(&mut self) {
        let now = Instant::now();
        let left = !self.childless && self.agents.len() == 0;
        while let Some((signal, had)) = self.course.take_signal(left, now) {
            let guard = self.guard.as_ref().map(Guard::pid);
            processes::to_all(&self.ranks, guard, signal, had);
        }
    }

    /// The text of a line that reports a failure.
    fn line(&self, line: &FailureLine) -> String {
        let who = line.rank.map_or(String::new(), |rank| self.name(rank));
        let others = describe::in_a_line(&self.ranks, line.rank).filter(|_| line.with_others);
        let others = others.map_or(String::new(), |others| format!("; {others}"));
        format!("{who}{}{others}", line.text)
    }

    /// The beginning of a message: a rank with its process, program and host.
    fn name(&self, number: usize) -> String {
        let rank = &self.ranks[number];
        let host = self.host_name(number);
        let pid = rank.pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        let program = self.options.program(number).1.program.to_string_lossy();
        let (program, host) = (terminal_text::line(&program), terminal_text::line(&host));
        format!("rank {number} (pid {pid}, {program} on {host}) ")
    }

    /// The name of a rank's host.
    fn host_name(&self, number: usize) -> String {
        match self.ranks[number].host {
            Some(host) => self.options.hosts[host].name.clone(),
            None => {
                let own = rustix::system::uname();
                own.nodename().to_string_lossy().into_owned()
            }
        }
    }

    /// Prints a line for each rank of `host` that has started, if the user requests that.
    pub(super) fn say_started(&mut self, host: Option<usize>) {
        let ranks = self.ranks.iter().filter(|rank| rank.host == host);
        let ranks = ranks.filter(|_| self.options.verbose);
        let lines = ranks.map(|rank| format!("{}started", self.name(rank.number)));
        let lines: Vec<String> = lines.collect();
        lines.iter().for_each(|line| self.console.say(line));
    }

    /// Once all ranks have been started: publishes their processes for a debugger, and continues
    /// ranks that wait for one.
    pub(super) fn show_debugger(&mut self) {
        if self.ranks.iter().any(|rank| rank.pid.is_none()) {
            return;
        }
        let ranks = self.ranks.iter();
        mpir::publish(ranks.map(|rank| self.entry(rank)).collect());
        if mpir::is_being_debugged() {
            self.pass_on(Signal::SIGCONT, false);
        }
    }

    /// The entry of a rank in the table for debuggers.
    fn entry(&self, rank: &RankProcess) -> RankEntry {
        let pid = rank.pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        let program = self.options.program(rank.number).1;
        // For a script the kernel knows the binary that interprets it; on another host that is not
        // visible.
        let here = rank.host.is_none();
        let running = std::fs::read_link(format!("/proc/{pid}/exe"));
        let running = running.ok().filter(|_| here);
        let named = || program.file().and_then(|file| file.canonicalize().ok());
        let file = running.or_else(named);
        RankEntry {
            host: self.host_name(rank.number),
            executable: file
                .unwrap_or(program.program.clone().into())
                .to_string_lossy()
                .into_owned(),
            pid,
        }
    }
}
