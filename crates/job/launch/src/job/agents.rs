//! The agents of a job on several hosts: their start, their connections, their end, and the
//! exchange of values and fences with them.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{WaitOptions, WaitStatus, wait};

use super::console::Console;
use crate::agent::contact::{AT_ONCE, Agent, AgentStarter, PATIENCE};
use crate::agent::frame::{FromAgent, ToAgent};
use crate::budget::Budget;
use crate::exchange::hub::Hub;
use crate::kill_sequence::GRACE;
use crate::output::OutputTarget;
use crate::{Options, timespec};

/// The time to wait for the exit of an agent's command after its stream has ended.
const EXIT: Duration = Duration::from_millis(300);
/// The additional time for agents to end after the time for their ranks.
const OVERDUE: Duration = Duration::from_secs(2);
/// The time for agents to receive the notice that the launcher will be stopped.
const FAREWELL: Duration = Duration::from_millis(200);
/// The number of unsent bytes to an agent from which on the launcher reads nothing from it.
const BACKLOG: usize = 1 << 20;

/// A host or agent that has failed, and the reason.
pub(super) struct HostFailure {
    pub host: usize,
    pub why: String,
    pub code: u8,
    /// True if the ranks of the host are lost: nothing more can be received about them.
    pub lost: bool,
}

impl HostFailure {
    fn of(host: usize, why: String) -> HostFailure {
        HostFailure {
            host,
            why,
            code: 1,
            lost: false,
        }
    }

    /// The failure of an agent that has violated the protocol.
    pub(super) fn rules_broken(host: usize, why: &str) -> HostFailure {
        let why = format!("its agent has broken the rules of the connection: {why}");
        HostFailure::of(host, why)
    }
}

/// The agents, one for each host. Empty for a job on this machine.
pub(super) struct Agents<'a> {
    options: &'a Options,
    all: Vec<Agent>,
    /// The starter of the remaining agents. `None` once all have been started.
    starter: Option<AgentStarter>,
    /// The exchange of values and fences of the key-value store with the agents.
    pub hub: Hub,
    /// The time at which agents that have not ended are killed.
    overdue: Option<Instant>,
}

impl<'a> Agents<'a> {
    pub(super) fn new(options: &'a Options, starter: Option<AgentStarter>) -> Agents<'a> {
        let counts: Vec<usize> = options.hosts.iter().map(|host| host.ranks).collect();
        Agents {
            options,
            all: Vec::new(),
            starter,
            hub: Hub::new(&counts),
            overdue: None,
        }
    }

    /// True if the job has agents on other hosts.
    pub(super) fn are_wanted(&self) -> bool {
        !self.options.hosts.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, host: usize) -> Option<&Agent> {
        self.all.get(host)
    }

    pub(super) fn get_mut(&mut self, host: usize) -> &mut Agent {
        &mut self.all[host]
    }

    /// The descriptors to poll for events of all agents.
    pub(super) fn wanted(&self, may_read: bool) -> Vec<PollFd<'_>> {
        let mut wanted = Vec::new();
        for agent in &self.all {
            let is_heard = agent.link.backlog() < BACKLOG;
            let link = agent.link.wanted();
            let link = link.filter(|(_, flags)| is_heard || *flags == PollFlags::OUT);
            wanted.extend(link.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
            let stderr = agent.stderr();
            let stderr = stderr.filter(|_| agent.exit.is_none() && may_read);
            wanted.extend(stderr.map(|fd| PollFd::new(fd, PollFlags::IN)));
        }
        wanted
    }

    /// The earliest deadline of any agent.
    pub(super) fn next(&self, is_ending: bool) -> Option<Instant> {
        let answers = self.all.iter().filter(|agent| !agent.has_answered);
        let answers = answers
            .filter(|_| !is_ending)
            .map(|agent| agent.since + PATIENCE);
        let silent = self.all.iter().filter(|agent| agent.exit.is_none());
        let silent = silent.filter_map(|agent| Some(agent.ended? + EXIT));
        let silent = silent.filter(|&time| time > Instant::now());
        let started = self.all.iter().filter(|agent| agent.has_answered);
        let looks = started.filter_map(|agent| agent.session.next());
        let answers = answers.chain(silent).chain(looks);
        answers.chain(self.overdue).min()
    }

    /// True if frames have been received that no poll event will announce.
    pub(super) fn has_waiting_frames(&self) -> bool {
        let may = |agent: &Agent| agent.link.has_frame() && agent.link.backlog() < BACKLOG;
        self.all
            .iter()
            .any(|agent| agent.has_answered && may(agent))
    }

    /// Starts agents, while fewer than [`AT_ONCE`] have yet to answer: each may be a remote shell.
    pub(super) fn start(&mut self) -> Result<(), HostFailure> {
        let is_open = |agent: &&Agent| !agent.has_answered && agent.exit.is_none();
        let mut open = self.all.iter().filter(is_open).count();
        while open < AT_ONCE
            && let Some(starter) = &mut self.starter
        {
            match starter.start_next(self.options) {
                None => self.starter = None,
                Some(Ok(agent)) => {
                    self.all.push(agent);
                    open += 1;
                }
                Some(Err(error)) => {
                    let (text, host) = (error.to_string(), self.all.len());
                    let name = &self.options.hosts[host].name;
                    let name = format!("host {}: ", terminal_text::line(name));
                    return Err(HostFailure {
                        why: text.strip_prefix(&name).unwrap_or(&text).to_string(),
                        code: error.exit_code(),
                        ..HostFailure::of(host, String::new())
                    });
                }
            }
        }
        Ok(())
    }

    /// Gives up starting the remaining agents. Returns the numbers of their hosts.
    pub(super) fn give_up_unstarted(&mut self) -> std::ops::Range<usize> {
        match self.starter.take() {
            Some(_) => self.all.len()..self.options.hosts.len(),
            None => 0..0,
        }
    }

    /// Reads and writes bytes of an agent's connection. `may_read`: there is room for the text of
    /// its command.
    pub(super) fn move_bytes(&mut self, host: usize, may_read: bool) -> Result<(), HostFailure> {
        let agent = &mut self.all[host];
        agent.link.flush();
        if agent.link.backlog() < BACKLOG && agent.link.pull() {
            agent.session.heard(Instant::now());
        }
        if may_read {
            agent.pull_text();
        }
        match agent.has_answered {
            true => Ok(()),
            false => agent
                .connect()
                .map_err(|why| HostFailure::of(host, terminal_text::lines(&why))),
        }
    }

    /// Decodes and checks the next frame of an agent, as far as the budget allows. An error is a
    /// violation of the protocol; [`Agents::shut`] then ends the agent.
    pub(super) fn next_frame(
        &mut self,
        host: usize,
        budget: &mut Budget,
    ) -> Result<Option<FromAgent>, HostFailure> {
        let agent = &mut self.all[host];
        if !agent.has_answered || budget.is_spent() || agent.link.backlog() >= BACKLOG {
            return Ok(None);
        }
        budget.spend(agent.link.length().unwrap_or(0));
        let read = agent.link.next::<FromAgent>();
        let checked = read.and_then(|frame| match frame {
            Some(frame) => {
                agent.session.accept(&frame, Instant::now())?;
                Ok(Some(frame))
            }
            None => Ok(None),
        });
        checked.map_err(|why| HostFailure::rules_broken(host, &why))
    }

    /// Closes the connection to an agent that has violated the protocol, and kills its command.
    pub(super) fn shut(&mut self, host: usize) {
        let agent = &mut self.all[host];
        agent.link.shut();
        agent.kill(Signal::SIGKILL);
    }

    /// Sends a heartbeat to an agent if one is due, and gives the agent up if it has been silent
    /// for too long.
    pub(super) fn beat(&mut self, host: usize) -> Result<(), HostFailure> {
        let agent = &mut self.all[host];
        if !agent.has_answered {
            return Ok(());
        }
        let (beat, why) = agent.session.check(Instant::now());
        if beat {
            agent.link.post(&ToAgent::Beat);
        }
        why.map_or(Ok(()), |why| Err(HostFailure::of(host, why)))
    }

    /// Checks that an agent has answered in time, and that its connection has not ended while ranks
    /// of its host are running.
    pub(super) fn check(&mut self, host: usize, has_ranks: bool) -> Result<(), HostFailure> {
        let now = Instant::now();
        let agent = &mut self.all[host];
        if !agent.has_answered && agent.exit.is_none() && now >= agent.since + PATIENCE {
            let (command, time) = (&agent.command, PATIENCE.as_secs());
            let why = format!("`{command}` has not answered for {time} s");
            return Err(HostFailure::of(host, why));
        }
        if !agent.link.is_at_end() {
            return Ok(());
        }
        let since = *agent.ended.get_or_insert(now);
        if has_ranks && (agent.exit.is_some() || now >= since + EXIT) {
            agent.pull_text();
            let (why, code) = (agent.obituary(), agent.exit_code());
            agent.kill(Signal::SIGTERM);
            return Err(HostFailure {
                host,
                why,
                code,
                lost: true,
            });
        }
        Ok(())
    }

    /// True if no agent, and none of its frames, is left.
    pub(super) fn are_gone(&self) -> bool {
        let is_open = |agent: &Agent| agent.exit.is_none() || !agent.link.is_at_end();
        self.starter.is_none() && !self.all.iter().any(is_open)
    }

    /// Handles the exits of agents' commands. Returns the failures of commands that need a
    /// terminal.
    pub(super) fn reap(&mut self) -> Vec<HostFailure> {
        let mut failures = Vec::new();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            let Some(host) = self.all.iter().position(|agent| agent.pid == pid) else {
                continue;
            };
            let agent = &mut self.all[host];
            if !status.stopped() {
                agent.exit = Some(status.into());
                // Kills processes that a wrapper has left running.
                agent.kill(Signal::SIGKILL);
            } else if used_terminal(status) && !agent.has_answered {
                let why = format!(
                    "`{}` asks for input on the terminal, which it cannot have: make it work without a password \
                     (ssh-agent, or a key)",
                    agent.command
                );
                failures.push(HostFailure::of(host, why));
            }
        }
        failures
    }

    /// Orders all agents to end their ranks, and then themselves.
    pub(super) fn end(&mut self, steps: &[Signal], hurry: bool) {
        let now = Instant::now();
        self.overdue = Some(now + GRACE * steps.len() as u32 + OVERDUE);
        let signals: Vec<i32> = steps.iter().map(|&signal| signal as i32).collect();
        for agent in &mut self.all {
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

    /// Kills the commands of agents that have not ended in time.
    pub(super) fn end_overdue(&mut self, now: Instant) {
        if self.overdue.is_none_or(|time| now < time) {
            return;
        }
        self.overdue = Some(now + GRACE);
        let silent = self.all.iter().filter(|agent| agent.exit.is_none());
        silent.for_each(|agent| agent.kill(Signal::SIGKILL));
    }

    /// Notifies agents that this process will be stopped, so that they do not regard it as dead.
    pub(super) fn announce_silence(&mut self) {
        let until = Instant::now() + FAREWELL;
        for agent in self.all.iter_mut().filter(|agent| agent.has_answered) {
            agent.link.post(&ToAgent::Suspended);
            while !agent.link.has_sent_all() && Instant::now() < until {
                let wanted = agent.link.wanted();
                let writers = wanted.filter(|(_, flags)| *flags == PollFlags::OUT);
                let mut writers: Vec<PollFd> = writers
                    .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags))
                    .collect();
                // An interrupted poll is repeated.
                let _ = poll(&mut writers, Some(&timespec(until)));
                agent.link.flush();
            }
        }
    }

    /// Forwards a signal to the ranks of all agents.
    pub(super) fn pass_on(&mut self, signal: Signal) {
        let started = self.all.iter_mut();
        for agent in started.filter(|agent| agent.session.has_started()) {
            agent.link.post(&ToAgent::Signal(signal as i32));
        }
    }

    /// Permits agents to send more output, as far as earlier output has been written.
    pub(super) fn acknowledge(&mut self, console: &Console) {
        for target in [OutputTarget::Stdout, OutputTarget::Stderr] {
            let sink = console.sink(target);
            let (full, closed) = (sink.is_full(), sink.is_closed());
            for agent in &mut self.all {
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

    /// Sends pending messages of the key-value store's exchange to agents.
    pub(super) fn send_exchange(&mut self) {
        let all = &self.all;
        let has_answered = |host: usize| all.get(host).is_some_and(|agent| agent.has_answered);
        for (host, down) in self.hub.take(has_answered) {
            for down in down.frames() {
                self.all[host].link.post(&ToAgent::Down(down));
            }
        }
    }
}

/// True if a process was stopped because it used the terminal from the background.
fn used_terminal(status: WaitStatus) -> bool {
    let signals = [Signal::SIGTTIN as i32, Signal::SIGTTOU as i32];
    status
        .stopping_signal()
        .is_some_and(|signal| signals.contains(&signal))
}
