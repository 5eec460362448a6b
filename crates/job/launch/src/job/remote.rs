//! A job on several hosts: the exchange of frames with its agents.

use std::fs::File;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::RunningJob;
use super::budget::Budget;
use crate::agent::contact::{AT_ONCE, Agent, PATIENCE};
use crate::agent::frame::{FromAgent, ToAgent};
use crate::kill_sequence::GRACE;
use crate::output::{OutputSink, OutputStream, OutputTarget};
use crate::processes;
use crate::rank::{RankEvent, RankProcess};
use crate::timespec;
use crate::verdict::{Cause, Verdict};

/// The time to wait for the exit of an agent's command after the end of the agent's stream.
const EXIT: Duration = Duration::from_millis(300);
/// The time for agents to end after the time for their ranks.
const OVERDUE: Duration = Duration::from_secs(2);
/// The time for agents to hear that the launcher will be stopped.
const FAREWELL: Duration = Duration::from_millis(200);
/// The bytes on their way to an agent from which on nothing of it is handled.
const BACKLOG: usize = 1 << 20;

impl RunningJob<'_> {
    pub(super) fn is_remote(&self) -> bool {
        !self.options.hosts.is_empty()
    }

    /// The descriptors to poll for events of agents.
    pub(super) fn wanted_of_agents(&self) -> Vec<PollFd<'_>> {
        let mut wanted = Vec::new();
        for agent in &self.agents {
            let may_read = agent.link.backlog() < BACKLOG;
            let link = agent.link.wanted();
            let link = link.filter(|(_, flags)| may_read || *flags == PollFlags::OUT);
            wanted.extend(link.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
            let may_read = agent.exit.is_none() && !self.stderr.is_full();
            let stderr = agent.stderr().filter(|_| may_read);
            wanted.extend(stderr.map(|fd| PollFd::new(fd, PollFlags::IN)));
        }
        wanted
    }

    /// The next deadline of an agent.
    pub(super) fn deadline_of_agents(&self) -> Option<Instant> {
        let answers = self.agents.iter().filter(|agent| !agent.has_answered);
        let answers = answers
            .filter(|_| !self.is_ending())
            .map(|agent| agent.since + PATIENCE);
        let silent = self.agents.iter().filter(|agent| agent.exit.is_none());
        let silent = silent.filter_map(|agent| Some(agent.ended? + EXIT));
        let silent = silent.filter(|&time| time > Instant::now());
        let started = self.agents.iter().filter(|agent| agent.has_answered);
        let looks = started.filter_map(|agent| agent.session.next());
        let tree = self.tree.next();
        let answers = answers.chain(silent).chain(looks);
        answers.chain(self.overdue).chain(tree).min()
    }

    /// Whether frames wait that no event will announce.
    pub(super) fn has_waiting_frames(&self) -> bool {
        let may = |agent: &Agent| agent.link.has_frame() && agent.link.backlog() < BACKLOG;
        self.agents
            .iter()
            .any(|agent| agent.has_answered && may(agent))
    }

    /// Starts agents, as long as not too many have yet to answer: each may be a remote shell.
    pub(super) fn start_agents(&mut self) {
        if self.is_ending() {
            self.forget_unstarted();
            return;
        }
        let open = |agent: &&Agent| !agent.has_answered && agent.exit.is_none();
        let mut open = self.agents.iter().filter(open).count();
        while open < AT_ONCE
            && let Some(starter) = &mut self.starter
        {
            match starter.start_next(self.options) {
                None => self.starter = None,
                Some(Ok(agent)) => {
                    self.agents.push(agent);
                    open += 1;
                }
                Some(Err(error)) => {
                    let text = error.to_string();
                    let host = self.agents.len();
                    let name = format!(
                        "host {}: ",
                        terminal_text::line(&self.options.hosts[host].name)
                    );
                    let why = text.strip_prefix(&name).unwrap_or(&text).to_string();
                    self.host_failed(host, why, error.exit_code());
                    self.forget_unstarted();
                    return;
                }
            }
        }
    }

    /// Gives up the hosts whose agents have not been started.
    fn forget_unstarted(&mut self) {
        if self.starter.take().is_some() {
            (self.agents.len()..self.options.hosts.len()).for_each(|host| self.lose(host));
        }
    }

    /// Handles frames and ends of agents, as far as the budget of a turn allows. Each turn begins
    /// with another agent.
    pub(super) fn serve_agents(&mut self) {
        self.start_agents();
        let mut budget = Budget::default();
        self.turn = self.turn.wrapping_add(1);
        for step in 0..self.agents.len() {
            let host = (self.turn + step) % self.agents.len();
            self.serve_agent(host, &mut budget);
        }
        self.find_early_leavers();
        self.look_after_tree();
        self.send_exchange();
        let open = |agent: &Agent| agent.exit.is_none() || !agent.link.is_at_end();
        // The ranks of an agent that is gone have been marked as lost before.
        self.childless = self.starter.is_none()
            && !self.agents.iter().any(open)
            && !self.ranks.iter().any(RankProcess::is_running);
    }

    fn serve_agent(&mut self, host: usize, budget: &mut Budget) {
        let may_read = !self.stderr.is_full();
        let agent = &mut self.agents[host];
        agent.link.flush();
        if agent.link.backlog() < BACKLOG && agent.link.pull() {
            agent.session.heard(Instant::now());
        }
        if may_read {
            agent.pull_text();
        }
        if !agent.has_answered
            && let Err(why) = agent.meet()
        {
            self.host_failed(host, terminal_text::lines(&why), 1);
        }
        if self.agents[host].has_answered {
            self.handle_frames(host, budget);
            self.look_after_agent(host);
        }
        let text = self.agents[host].take_text();
        self.stderr.push(&[text.as_bytes()]);
        self.check_agent(host);
    }

    fn handle_frames(&mut self, host: usize, budget: &mut Budget) {
        while !budget.is_spent() && self.agents[host].link.backlog() < BACKLOG {
            let agent = &mut self.agents[host];
            budget.spend(agent.link.length().unwrap_or(0));
            let read = agent.link.next::<FromAgent>();
            let checked = read.and_then(|frame| match frame {
                Some(frame) => {
                    agent.session.accept(&frame, Instant::now())?;
                    Ok(Some(frame))
                }
                None => Ok(None),
            });
            match checked {
                Ok(Some(frame)) => self.handle_frame(host, frame),
                Ok(None) => return,
                Err(why) => return self.rules_broken(host, &why),
            }
        }
    }

    /// Ends the job because an agent has broken the rules, and hears no more of it.
    pub(super) fn rules_broken(&mut self, host: usize, why: &str) {
        let why = format!("its agent has broken the rules of the connection: {why}");
        self.host_failed(host, why, 1);
        let agent = &mut self.agents[host];
        agent.link.shut();
        agent.kill(Signal::SIGKILL);
    }

    /// Sends signs of life to an agent, and gives it up if it sends none.
    fn look_after_agent(&mut self, host: usize) {
        let agent = &mut self.agents[host];
        let (beat, why) = agent.session.look(Instant::now());
        if beat {
            agent.link.post(&ToAgent::Beat);
        }
        if let Some(why) = why {
            self.host_failed(host, why, 1);
        }
    }

    fn handle_frame(&mut self, host: usize, frame: FromAgent) {
        let is_local = |number: &usize| {
            let rank = self.ranks.get(*number);
            rank.is_some_and(|rank| rank.host == Some(host))
        };
        match frame {
            FromAgent::Started(pids) => {
                let ranks = self.ranks.iter_mut();
                let ranks = ranks.filter(|rank| rank.host == Some(host));
                for (rank, pid) in ranks.zip(pids) {
                    rank.pid = Pid::from_raw(pid);
                }
                self.show_debugger();
                self.say_started(Some(host));
                self.tree.started(Instant::now());
            }
            FromAgent::Refused { why, code } => {
                self.lose(host);
                self.host_failed(host, terminal_text::lines(&why), code);
            }
            FromAgent::Leaving(why) => {
                self.host_failed(host, format!("its agent {}", terminal_text::lines(&why)), 1)
            }
            // A command between the launcher and the agent ends when it reads the end.
            FromAgent::Done => self.agents[host].link.close(),
            FromAgent::Packet(number, packet) if is_local(&number) => {
                let events = self.ranks[number].handle_packet(&packet);
                match events.iter().any(RankEvent::is_exchange) {
                    true => self.rules_broken(host, "it has passed on a line of the exchange"),
                    false => self.handle_events(number, events),
                }
            }
            FromAgent::ProgramGone(number) if is_local(&number) => {
                if let Some(cause) = self.ranks[number].program_ended() {
                    self.rank_failed(number, cause);
                }
            }
            FromAgent::Ended(number, exit, fences) if is_local(&number) => {
                self.root.end(number, fences);
                self.rank_ended(number, exit);
            }
            FromAgent::Up(up) => self.hear_exchange(host, up),
            FromAgent::Misused(number, why) => self.rank_misused(host, number, &why),
            FromAgent::Tree(report) => {
                if let Err(why) = self.tree.hear(host, report, Instant::now()) {
                    self.rules_broken(host, &why);
                }
            }
            FromAgent::Output(number, target, bytes) if is_local(&number) => {
                let (stream, sink) = self.stream(number, target);
                stream.feed(&bytes, sink);
            }
            FromAgent::EndOfOutput(number, target) if is_local(&number) => {
                let (stream, sink) = self.stream(number, target);
                stream.close(sink);
            }
            FromAgent::InputTaken(bytes) => self.input.confirm(bytes),
            FromAgent::InputClosed => self.input.close(),
            FromAgent::Counted(at, bytes) => self.keep_counted(host, at, &bytes),
            FromAgent::Beat => {}
            // Its session accepts no frame for a rank of another host.
            _ => {}
        }
    }

    /// Puts a piece of the profile of a host's ranks in the profile of the job.
    fn keep_counted(&mut self, host: usize, at: u64, bytes: &[u8]) {
        let Some(profile) = &self.options.profile else {
            return;
        };
        let file = profile.try_clone().map(File::from);
        let kept = file.and_then(|file| profile::put_piece(&file, at, bytes));
        if let Err(why) = kept
            && !std::mem::replace(&mut self.agents[host].has_bad_profile, true)
        {
            let name = &self.options.hosts[host].name;
            let text = format!("the profile of the ranks on {name} is incomplete: {why}");
            self.say(&text);
        }
    }

    fn stream(
        &mut self,
        number: usize,
        target: OutputTarget,
    ) -> (&mut OutputStream, &mut OutputSink) {
        let sink = match target {
            OutputTarget::Stdout => &mut self.stdout,
            OutputTarget::Stderr => &mut self.stderr,
        };
        (&mut self.ranks[number].streams[target as usize], sink)
    }

    /// Lets agents send more output, as far as earlier output has been written.
    pub(super) fn acknowledge(&mut self) {
        for target in [OutputTarget::Stdout, OutputTarget::Stderr] {
            let sink = self.sink(target);
            let (full, closed) = (sink.is_full(), sink.is_closed());
            for agent in &mut self.agents {
                let index = target as usize;
                if closed && agent.has_answered && !agent.knows_closed[index] {
                    agent.knows_closed[index] = true;
                    agent.link.post(&ToAgent::Closed(target));
                }
                if full {
                    continue;
                }
                let taken = agent.session.confirm(index);
                if taken > 0 {
                    agent.link.post(&ToAgent::Taken(target, taken));
                }
            }
        }
    }

    /// Ends the job if an agent has not answered, or was lost before its ranks ended.
    fn check_agent(&mut self, host: usize) {
        let now = Instant::now();
        let agent = &mut self.agents[host];
        if !agent.has_answered && agent.exit.is_none() && now >= agent.since + PATIENCE {
            let (command, time) = (&agent.command, PATIENCE.as_secs());
            let why = format!("`{command}` has not answered for {time} s");
            self.host_failed(host, why, 1);
            return;
        }
        if !agent.link.is_at_end() {
            return;
        }
        let since = *agent.ended.get_or_insert(now);
        let open = self
            .ranks
            .iter()
            .any(|rank| rank.host == Some(host) && rank.is_running());
        if open && (self.agents[host].exit.is_some() || now >= since + EXIT) {
            let agent = &mut self.agents[host];
            agent.pull_text();
            let (why, code) = (agent.obituary(), agent.exit_code());
            agent.kill(Signal::SIGTERM);
            self.lose(host);
            self.host_failed(host, why, code);
        }
    }

    /// Marks the running ranks of a host as lost.
    fn lose(&mut self, host: usize) {
        let ranks = self.ranks.iter_mut();
        for rank in ranks.filter(|rank| rank.host == Some(host) && rank.is_running()) {
            rank.lost = true;
        }
    }

    fn host_failed(&mut self, host: usize, why: String, code: u8) {
        if self.is_ending() {
            return;
        }
        let host = self.options.hosts[host].name.clone();
        let verdict = Verdict {
            rank: None,
            cause: Cause::Host { host, why, code },
        };
        self.fail(verdict, &[Signal::SIGTERM, Signal::SIGKILL]);
    }

    /// Handles the ends of agents' commands.
    pub(super) fn reap_agents(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            let Some(host) = self.agents.iter().position(|agent| agent.pid == pid) else {
                continue;
            };
            if !status.stopped() {
                self.agents[host].exit = Some(status.into());
                // Ends the processes that a wrapper left running.
                self.agents[host].kill(Signal::SIGKILL);
            } else if used_terminal(status) && !self.agents[host].has_answered {
                let why = format!(
                    "`{}` asks for input on the terminal, which it cannot have: make it work without a password \
                     (ssh-agent, or a key)",
                    self.agents[host].command
                );
                self.host_failed(host, why, 1);
            }
        }
    }

    /// Orders agents to end their ranks and then themselves.
    pub(super) fn end_agents(&mut self, steps: &[Signal], hurry: bool) {
        let now = Instant::now();
        self.overdue = Some(now + GRACE * steps.len() as u32 + OVERDUE);
        let signals: Vec<i32> = steps.iter().map(|&signal| signal as i32).collect();
        for agent in &mut self.agents {
            let signals = signals.clone();
            match agent.has_answered {
                true => agent.link.post(&ToAgent::End { signals, hurry }),
                false => {
                    agent.link.close();
                    agent.kill(Signal::SIGTERM);
                    agent.kill(Signal::SIGCONT);
                }
            }
        }
    }

    /// Kills agents that have not ended in time.
    pub(super) fn end_overdue_agents(&mut self, now: Instant) {
        if self.overdue.is_none_or(|time| now < time) {
            return;
        }
        self.overdue = Some(now + GRACE);
        let silent = self.agents.iter().filter(|agent| agent.exit.is_none());
        silent.for_each(|agent| agent.kill(Signal::SIGKILL));
    }

    /// Tells agents that this process will be stopped, so that they do not take it for dead.
    pub(super) fn announce_silence(&mut self) {
        let until = Instant::now() + FAREWELL;
        for agent in self.agents.iter_mut().filter(|agent| agent.has_answered) {
            agent.link.post(&ToAgent::Suspended);
            while !agent.link.has_sent_all() && Instant::now() < until {
                let wanted = agent.link.wanted();
                let writers = wanted.filter(|(_, flags)| *flags == PollFlags::OUT);
                let mut writers: Vec<PollFd> = writers
                    .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags))
                    .collect();
                // An interrupted wait is tried again.
                let _ = poll(&mut writers, Some(&timespec(until)));
                agent.link.flush();
            }
        }
    }

    /// Forwards a signal to all ranks, on whatever host they are.
    pub(super) fn pass_on(&mut self, signal: Signal, had: bool) {
        processes::to_ranks(&self.ranks, signal, had);
        for agent in self
            .agents
            .iter_mut()
            .filter(|agent| agent.session.has_started())
        {
            agent.link.post(&ToAgent::Signal(signal as i32));
        }
    }
}

/// Whether a process was stopped because it used the terminal from the background.
fn used_terminal(status: WaitStatus) -> bool {
    let signals = [Signal::SIGTTIN as i32, Signal::SIGTTOU as i32];
    status
        .stopping_signal()
        .is_some_and(|signal| signals.contains(&signal))
}
