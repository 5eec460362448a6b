//! A job on several hosts: the exchange of frames with its agents.

use std::fs::File;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::{RunningJob, say};
use crate::agent::contact::{Agent, PATIENCE};
use crate::agent::frame::{FromAgent, ToAgent};
use crate::kill_sequence::GRACE;
use crate::output::{OutputSink, OutputStream, OutputTarget};
use crate::processes;
use crate::rank::RankProcess;
use crate::verdict::{Cause, Verdict};

/// The time to wait for the exit of an agent's command after the end of the agent's stream.
const EXIT: Duration = Duration::from_millis(300);
/// The time for agents to end after the time for their ranks.
const OVERDUE: Duration = Duration::from_secs(2);

impl RunningJob<'_> {
    pub(super) fn is_remote(&self) -> bool {
        !self.options.hosts.is_empty()
    }

    /// The descriptors to poll for events of agents.
    pub(super) fn wanted_of_agents(&self) -> Vec<PollFd<'_>> {
        let mut wanted = Vec::new();
        for agent in &self.agents {
            let link = agent.link.wanted();
            wanted.extend(link.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
            let stderr = agent.stderr().filter(|_| agent.exit.is_none());
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
        answers.chain(silent).chain(self.overdue).min()
    }

    /// Handles the frames and ends of all agents.
    pub(super) fn serve_agents(&mut self) {
        for host in 0..self.agents.len() {
            let agent = &mut self.agents[host];
            agent.link.flush();
            agent.link.pull();
            agent.pull_text();
            if !agent.has_answered
                && let Err(why) = agent.meet()
            {
                self.host_failed(host, why, 1);
            }
            if self.agents[host].has_answered {
                self.handle_frames(host);
            }
            let text = self.agents[host].take_text();
            self.stderr.push(&[&text]);
            self.check_agent(host);
        }
        self.find_early_leavers();
        let open = |agent: &Agent| agent.exit.is_none() || !agent.link.is_at_end();
        // The ranks of an agent that is gone have been marked as lost before.
        self.childless =
            !self.agents.iter().any(open) && !self.ranks.iter().any(RankProcess::is_running);
    }

    fn handle_frames(&mut self, host: usize) {
        loop {
            match self.agents[host].link.next() {
                Ok(Some(frame)) => self.handle_frame(host, frame),
                Ok(None) => return,
                Err(why) => {
                    let why = format!("a frame of its agent cannot be read: {why}");
                    self.host_failed(host, why, 1);
                    self.agents[host].kill(Signal::SIGKILL);
                    return;
                }
            }
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
                self.agents[host].has_started = true;
                self.say_started(Some(host));
            }
            FromAgent::Refused { why, code } => {
                self.lose(host);
                self.host_failed(host, why, code);
            }
            FromAgent::Leaving(why) => self.host_failed(host, format!("its agent {why}"), 1),
            // A command between the launcher and the agent ends when it reads the end.
            FromAgent::Done => self.agents[host].link.close(),
            FromAgent::Packet(number, packet) if is_local(&number) => {
                let events = self.ranks[number].handle_packet(&packet);
                self.handle_events(number, events);
            }
            FromAgent::ProgramGone(number) if is_local(&number) => {
                if let Some(cause) = self.ranks[number].program_ended() {
                    self.rank_failed(number, cause);
                }
            }
            FromAgent::Ended(number, exit) if is_local(&number) => self.rank_ended(number, exit),
            FromAgent::Output(number, target, bytes) if is_local(&number) => {
                self.agents[host].taken[target as usize] += bytes.len();
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
            // For a rank of another host.
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
        if let Err(why) = kept {
            let name = &self.options.hosts[host].name;
            say(&format!(
                "the profile of the ranks on {name} is incomplete: {why}"
            ));
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
                let taken = agent.taken[index];
                if taken > 0 && !full {
                    agent.taken[index] = 0;
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
        let host = self.agents[host].name.clone();
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

    /// Forwards a signal to all ranks, on whatever host they are.
    pub(super) fn pass_on(&mut self, signal: Signal, had: bool) {
        processes::to_ranks(&self.ranks, signal, had);
        for agent in self.agents.iter_mut().filter(|agent| agent.has_started) {
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
