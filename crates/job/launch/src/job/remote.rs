//! The handling of frames from agents about the ranks of other hosts, and of failures of hosts.

use std::fs::File;

use rustix::process::Pid;

use super::agents::HostFailure;
use super::course::TERMINATE;
use super::running::RunningJob;
use crate::agent::frame::FromAgent;
use crate::budget::Budget;
use crate::exchange::Up;
use crate::output::{OutputSink, OutputStream, OutputTarget};
use crate::rank_state::RankEvent;
use crate::verdict::{Cause, Verdict};

impl RunningJob<'_> {
    /// Starts agents that have not been started, unless the job is ending.
    pub(super) fn start_agents(&mut self) {
        if !self.course.is_ending() {
            match self.agents.start() {
                Ok(()) => return,
                Err(failure) => self.host_failed(failure),
            }
        }
        for host in self.agents.give_up_unstarted() {
            self.lose(host);
        }
    }

    /// Handles the exits of the commands that reach agents.
    pub(super) fn reap_agents(&mut self) {
        for failure in self.agents.reap() {
            self.host_failed(failure);
        }
    }

    /// Handles frames and disconnections of agents, as far as the budget of one pass allows. Each
    /// pass begins with another agent.
    pub(super) fn serve_agents(&mut self) {
        self.start_agents();
        let mut budget = Budget::default();
        self.turn = self.turn.wrapping_add(1);
        for step in 0..self.agents.len() {
            let host = (self.turn + step) % self.agents.len();
            self.serve_agent(host, &mut budget);
        }
        self.find_early_leavers();
        self.agents.send_exchange();
        // The ranks of an agent that is gone have been marked as lost already.
        let is_running = self.ranks.iter().any(|rank| rank.is_running());
        self.childless = self.agents.are_gone() && !is_running;
    }

    fn serve_agent(&mut self, host: usize, budget: &mut Budget) {
        let may_read = self.may_read_text();
        let met = self.agents.move_bytes(host, may_read);
        self.check_host(met);
        loop {
            match self.agents.next_frame(host, budget) {
                Ok(Some(frame)) => self.handle_frame(host, frame),
                Ok(None) => break,
                Err(failure) => {
                    self.rules_broken(failure);
                    break;
                }
            }
        }
        let heard = self.agents.beat(host);
        self.check_host(heard);
        let text = self.agents.get_mut(host).take_text();
        let stderr = self.console.sink_mut(OutputTarget::Stderr);
        stderr.push(text.as_bytes());
        let mut ranks = self.ranks.iter();
        let has_ranks = ranks.any(|rank| rank.host == Some(host) && rank.is_running());
        let checked = self.agents.check(host, has_ranks);
        self.check_host(checked);
    }

    fn check_host(&mut self, outcome: Result<(), HostFailure>) {
        if let Err(failure) = outcome {
            self.host_failed(failure);
        }
    }

    fn host_failed(&mut self, failure: HostFailure) {
        if failure.lost {
            self.lose(failure.host);
        }
        if self.course.is_ending() {
            return;
        }
        let verdict = Verdict {
            rank: None,
            cause: Cause::Host {
                host: self.options.hosts[failure.host].name.clone(),
                why: failure.why,
                code: failure.code,
            },
        };
        self.fail(verdict, TERMINATE);
    }

    /// Ends the job because an agent has violated the protocol, and closes the connection to that
    /// agent.
    fn rules_broken(&mut self, failure: HostFailure) {
        let host = failure.host;
        self.host_failed(failure);
        self.agents.shut(host);
    }

    /// Marks the running ranks of a host as lost.
    fn lose(&mut self, host: usize) {
        let ranks = self.ranks.iter_mut();
        for rank in ranks.filter(|rank| rank.host == Some(host) && rank.is_running()) {
            rank.lost = true;
        }
    }

    fn handle_frame(&mut self, host: usize, frame: FromAgent) {
        let is_local = |number: &usize| {
            let rank = self.ranks.get(*number);
            rank.is_some_and(|rank| rank.host == Some(host))
        };
        let broken = |why: &str| HostFailure::rules_broken(host, why);
        match frame {
            FromAgent::Started(pids) => {
                let ranks = self.ranks.iter_mut();
                let ranks = ranks.filter(|rank| rank.host == Some(host));
                for (rank, pid) in ranks.zip(pids) {
                    rank.pid = Pid::from_raw(pid);
                }
                self.show_debugger();
                self.say_started(Some(host));
            }
            FromAgent::Refused { why, code } => self.host_failed(HostFailure {
                host,
                why: terminal_text::lines(&why),
                code,
                lost: true,
            }),
            FromAgent::Leaving(why) => self.host_failed(HostFailure {
                host,
                why: format!("its agent {}", terminal_text::lines(&why)),
                code: 1,
                lost: false,
            }),
            // A command between launcher and agent ends when it reads end of file.
            FromAgent::Done => self.agents.get_mut(host).link.close(),
            FromAgent::Packet(number, packet) if is_local(&number) => {
                let events = self.ranks[number].handle_packet(&packet);
                match events.iter().any(RankEvent::is_exchange) {
                    true => self.rules_broken(broken("it has passed on a line of the exchange")),
                    false => self.handle_events(number, events),
                }
            }
            FromAgent::ProgramGone(number) if is_local(&number) => {
                if let Some(cause) = self.ranks[number].program_ended() {
                    self.rank_failed(number, cause);
                }
            }
            FromAgent::Ended(number, exit, fences) if is_local(&number) => {
                self.agents.hub.end(number, fences);
                self.rank_ended(number, exit);
            }
            FromAgent::Up(up) => self.handle_exchange(host, up),
            FromAgent::Misused(number, why) if is_local(&number) => {
                let why = terminal_text::lines(&why);
                self.rank_failed(number, Cause::Kvs { why });
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
            // The agent's session accepts no frame for a rank of another host.
            _ => {}
        }
    }

    fn stream(
        &mut self,
        number: usize,
        target: OutputTarget,
    ) -> (&mut OutputStream, &mut OutputSink) {
        let stream = &mut self.ranks[number].streams[target as usize];
        (stream, self.console.sink_mut(target))
    }

    /// Handles a message of the key-value store's exchange.
    fn handle_exchange(&mut self, host: usize, up: Up) {
        match self.agents.hub.handle(host, up) {
            Ok(misuses) => {
                for misuse in misuses {
                    self.rank_failed(misuse.rank, Cause::Kvs { why: misuse.why });
                }
            }
            Err(why) => self.rules_broken(HostFailure::rules_broken(host, &why)),
        }
    }

    /// Writes a piece of the profile of a host's ranks into the profile of the job.
    fn keep_counted(&mut self, host: usize, at: u64, bytes: &[u8]) {
        let Some(profile) = &self.options.profile else {
            return;
        };
        let file = profile.try_clone().map(File::from);
        let kept = file.and_then(|file| profile::put_piece(&file, at, bytes));
        let agent = self.agents.get_mut(host);
        if let Err(why) = kept
            && !std::mem::replace(&mut agent.has_bad_profile, true)
        {
            let name = &self.options.hosts[host].name;
            let text = format!("the profile of the ranks on {name} is incomplete: {why}");
            self.console.say(&text);
        }
    }
}
