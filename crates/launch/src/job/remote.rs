//! A job on several hosts: what its agents say, and what they are told.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::Job;
use crate::agent::contact::{Agent, PATIENCE};
use crate::agent::frame::{Down, PIECE, Up, WINDOW};
use crate::kill_sequence::GRACE;
use crate::output::{Sink, Stream, Target};
use crate::processes;
use crate::rank::Rank;
use crate::verdict::{Cause, Verdict};

/// How long the exit of an agent's command is waited for once the agent has fallen silent.
const EXIT: Duration = Duration::from_millis(300);
/// How long agents have to end after their ranks had to.
const OVERDUE: Duration = Duration::from_secs(2);

/// The launcher's own input, on its way to rank 0.
#[derive(Default)]
pub(super) struct Input {
    under_way: usize,
    at_end: bool,
}

impl Job<'_> {
    pub(super) fn is_remote(&self) -> bool {
        !self.options.hosts.is_empty()
    }

    /// What to poll for the agents' sake.
    pub(super) fn wanted_of_agents(&self) -> Vec<PollFd<'_>> {
        let mut wanted = Vec::new();
        for agent in &self.agents {
            let link = agent.link.wanted();
            wanted.extend(link.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
            let stderr = agent.stderr().filter(|_| agent.exit.is_none());
            wanted.extend(stderr.map(|fd| PollFd::new(fd, PollFlags::IN)));
        }
        if self.wants_input() {
            wanted.push(PollFd::from_borrowed_fd(
                rustix::stdio::stdin(),
                PollFlags::IN,
            ));
        }
        wanted
    }

    fn wants_input(&self) -> bool {
        let started = self.agents.first().is_some_and(|agent| agent.has_started);
        let open = !self.input.at_end && self.input.under_way < WINDOW && self.ending.is_none();
        started && open && may_read_input()
    }

    /// When the agents want attention without having said anything.
    pub(super) fn deadline_of_agents(&self) -> Option<Instant> {
        let answers = self.agents.iter().filter(|agent| !agent.is_there);
        let answers = answers
            .filter(|_| !self.is_ending())
            .map(|agent| agent.since + PATIENCE);
        let silent = self.agents.iter().filter(|agent| agent.exit.is_none());
        let silent = silent.filter_map(|agent| Some(agent.ended? + EXIT));
        let silent = silent.filter(|&time| time > Instant::now());
        answers.chain(silent).chain(self.overdue).min()
    }

    pub(super) fn serve_agents(&mut self) {
        for host in 0..self.agents.len() {
            let agent = &mut self.agents[host];
            agent.link.flush();
            agent.link.pull();
            agent.pull_text();
            if !agent.is_there
                && let Err(why) = agent.meet()
            {
                self.host_failed(host, why, 1);
            }
            if self.agents[host].is_there {
                self.take_frames(host);
            }
            let text = self.agents[host].take_text();
            self.stderr.push(&[&text]);
            self.miss(host);
        }
        self.move_input();
        self.miss_early_leavers();
        let open = |agent: &Agent| agent.exit.is_none() || !agent.link.is_at_end();
        // An agent that is gone has been missed first.
        self.childless = !self.agents.iter().any(open) && !self.ranks.iter().any(Rank::is_running);
    }

    fn take_frames(&mut self, host: usize) {
        loop {
            match self.agents[host].link.next() {
                Ok(Some(frame)) => self.take(host, frame),
                Ok(None) => return,
                Err(why) => {
                    let why = format!("what comes from its agent cannot be read: {why}");
                    self.host_failed(host, why, 1);
                    self.agents[host].kill(Signal::SIGKILL);
                    return;
                }
            }
        }
    }

    fn take(&mut self, host: usize, frame: Up) {
        let is_there = |number: &usize| {
            let rank = self.ranks.get(*number);
            rank.is_some_and(|rank| rank.host == Some(host))
        };
        match frame {
            Up::Started(pids) => {
                let ranks = self.ranks.iter_mut();
                let ranks = ranks.filter(|rank| rank.host == Some(host));
                for (rank, pid) in ranks.zip(pids) {
                    rank.pid = Pid::from_raw(pid);
                }
                self.agents[host].has_started = true;
            }
            Up::Refused { why, code } => {
                self.lose(host);
                self.host_failed(host, why, code);
            }
            Up::Leaving(why) => self.host_failed(host, format!("its agent {why}"), 1),
            // A command between here and the agent ends when it sees the end.
            Up::Done => self.agents[host].link.close(),
            Up::Said(number, packet) if is_there(&number) => {
                let news = self.ranks[number].hear(&packet);
                self.hear(number, news);
            }
            Up::ProgramGone(number) if is_there(&number) => {
                if let Some(cause) = self.ranks[number].program_ended() {
                    self.rank_failed(number, cause);
                }
            }
            Up::Ended(number, exit) if is_there(&number) => self.rank_ended(number, exit),
            Up::Output(number, target, bytes) if is_there(&number) => {
                self.agents[host].taken[target as usize] += bytes.len();
                let (stream, sink) = self.stream(number, target);
                stream.feed(&bytes, sink);
            }
            Up::EndOfOutput(number, target) if is_there(&number) => {
                let (stream, sink) = self.stream(number, target);
                stream.close(sink);
            }
            Up::InputTaken(bytes) => {
                self.input.under_way = self.input.under_way.saturating_sub(bytes);
            }
            Up::InputClosed => self.input.at_end = true,
            // Of a rank that is elsewhere.
            _ => {}
        }
    }

    fn stream(&mut self, number: usize, target: Target) -> (&mut Stream, &mut Sink) {
        let sink = match target {
            Target::Stdout => &mut self.stdout,
            Target::Stderr => &mut self.stderr,
        };
        (&mut self.ranks[number].streams[target as usize], sink)
    }

    /// Lets agents send more output, where what came before has found its reader.
    pub(super) fn acknowledge(&mut self) {
        for target in [Target::Stdout, Target::Stderr] {
            let sink = self.sink(target);
            let (full, closed) = (sink.is_full(), sink.is_closed());
            for agent in &mut self.agents {
                let index = target as usize;
                if closed && agent.is_there && !agent.deaf[index] {
                    agent.deaf[index] = true;
                    agent.link.post(&Down::Deaf(target));
                }
                let taken = agent.taken[index];
                if taken > 0 && !full {
                    agent.taken[index] = 0;
                    agent.link.post(&Down::Taken(target, taken));
                }
            }
        }
    }

    fn move_input(&mut self) {
        while self.wants_input() && is_readable(rustix::stdio::stdin()) {
            let mut bytes = vec![0; PIECE];
            let frame = match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
                Err(Errno::INTR | Errno::AGAIN) => return,
                Ok(0) | Err(_) => {
                    self.input.at_end = true;
                    Down::EndOfInput
                }
                Ok(length) => {
                    bytes.truncate(length);
                    self.input.under_way += length;
                    Down::Input(bytes)
                }
            };
            self.agents[0].link.post(&frame);
        }
    }

    /// An agent that has not answered, or has fallen silent before its ranks had ended.
    fn miss(&mut self, host: usize) {
        let now = Instant::now();
        let agent = &mut self.agents[host];
        if !agent.is_there && agent.exit.is_none() && now >= agent.since + PATIENCE {
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

    /// Nothing more will be heard of this host's ranks.
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

    pub(super) fn reap_agents(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            let Some(host) = self.agents.iter().position(|agent| agent.pid == pid) else {
                continue;
            };
            if !status.stopped() {
                self.agents[host].exit = Some(status.into());
                // What a wrapper left running.
                self.agents[host].kill(Signal::SIGKILL);
            } else if asks(status) && !self.agents[host].is_there {
                let why = format!(
                    "`{}` wants to ask something on the terminal, which it cannot from here: let it need no password \
                     (ssh-agent, or a key)",
                    self.agents[host].command
                );
                self.host_failed(host, why, 1);
            }
        }
    }

    /// Agents end their ranks, and then themselves.
    pub(super) fn end_agents(&mut self, steps: &[Signal], hurry: bool) {
        let now = Instant::now();
        self.overdue = Some(now + GRACE * steps.len() as u32 + OVERDUE);
        let signals: Vec<i32> = steps.iter().map(|&signal| signal as i32).collect();
        for agent in &mut self.agents {
            let signals = signals.clone();
            match agent.is_there {
                true => agent.link.post(&Down::End { signals, hurry }),
                false => {
                    agent.link.close();
                    agent.kill(Signal::SIGTERM);
                    agent.kill(Signal::SIGCONT);
                }
            }
        }
    }

    /// Who has not ended by now does not hear us.
    pub(super) fn end_overdue_agents(&mut self, now: Instant) {
        if self.overdue.is_none_or(|time| now < time) {
            return;
        }
        self.overdue = Some(now + GRACE);
        let silent = self.agents.iter().filter(|agent| agent.exit.is_none());
        silent.for_each(|agent| agent.kill(Signal::SIGKILL));
    }

    /// To all ranks, wherever they are.
    pub(super) fn pass_on(&mut self, signal: Signal, had: bool) {
        processes::to_ranks(&self.ranks, signal, had);
        for agent in self.agents.iter_mut().filter(|agent| agent.has_started) {
            agent.link.post(&Down::Signal(signal as i32));
        }
    }
}

/// A process in the background must not read from its terminal.
fn may_read_input() -> bool {
    let stdin = rustix::stdio::stdin();
    match rustix::termios::tcgetpgrp(stdin) {
        Ok(foreground) => foreground == rustix::process::getpgrp(),
        Err(_) => true,
    }
}

fn is_readable(fd: impl AsFd) -> bool {
    let now = rustix::event::Timespec::default();
    let mut wanted = [PollFd::new(&fd, PollFlags::IN)];
    rustix::event::poll(&mut wanted, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// It was stopped because it is no business of a background process to use the terminal.
fn asks(status: WaitStatus) -> bool {
    let signals = [Signal::SIGTTIN as i32, Signal::SIGTTOU as i32];
    status
        .stopping_signal()
        .is_some_and(|signal| signals.contains(&signal))
}
