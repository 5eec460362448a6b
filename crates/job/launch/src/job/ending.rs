//! The end of a job: signals, each stronger than the one before, until no process of it is left.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::RunningJob;
use super::budget::Budget;
use super::status_query::{QueryPurpose, StatusQuery};
use crate::guard::Guard;
use crate::kill_sequence::{GRACE, KillSequence};
use crate::rank::RankProcess;
use crate::verdict::{Cause, Verdict};
use crate::{describe, mpir, processes};

/// The time for ranks to report their status before the job is ended.
const LAST_WORDS: Duration = Duration::from_millis(150);
/// The bytes of lines from before a failure that are received after it.
const EARLIER_LINES: usize = 4 << 20;
/// The time for all ranks of a deadlock to report it.
const DEADLOCK_REPORTS: Duration = Duration::from_secs(10);
/// The time after which a process that SIGKILL has not ended waits in a system call, for a device
/// or a file server.
const HOPELESS: Duration = Duration::from_secs(10);

impl RunningJob<'_> {
    /// Whether the job is ending, or only waits for the status of its ranks to end.
    pub(super) fn is_ending(&self) -> bool {
        let last_words = matches!(
            &self.query,
            Some(StatusQuery {
                purpose: QueryPurpose::End(..),
                ..
            })
        );
        self.ending.is_some() || last_words
    }

    /// Ends the job with this verdict by these signals, after ranks have had time to report their
    /// status.
    pub(super) fn fail(&mut self, verdict: Verdict, steps: &'static [Signal]) {
        // Their status is that of the time before the failure, so earlier lines are received first.
        let mut budget = Budget::of(EARLIER_LINES);
        for number in 0..self.ranks.len() {
            while let Some(events) = self.ranks[number].receive_events(&mut budget) {
                self.say_remarks(number, events);
            }
        }
        if !self.is_ending() {
            mpir::aborting(&self.line(&verdict, false));
        }
        let time = match verdict.cause {
            Cause::Deadlock { .. } => DEADLOCK_REPORTS,
            _ if self.ranks.iter().any(RankProcess::is_in_mpi) => LAST_WORDS,
            _ => Duration::ZERO,
        };
        self.query_status(QueryPurpose::End(verdict, steps), time);
    }

    /// Ends the job by these signals, one after the other.
    pub(super) fn end(&mut self, steps: &[Signal]) {
        self.end_by(steps, true);
    }

    /// Ends the processes that ranks left running after they ended properly. Waits for their
    /// output.
    pub(super) fn end_in_order(&mut self, steps: &[Signal]) {
        self.end_by(steps, false);
    }

    fn end_by(&mut self, steps: &[Signal], hurry: bool) {
        let now = Instant::now();
        self.ending = Some(KillSequence::new(steps.iter().copied(), now));
        self.hopeless = Some(now + GRACE * steps.len() as u32 + HOPELESS);
        // A second interrupt does not wait for the status of ranks.
        if let Some(StatusQuery {
            purpose: QueryPurpose::End(verdict, _),
            ..
        }) = self.query.take()
        {
            let line = self.line(&verdict, false);
            self.say(&line);
            self.verdict.get_or_insert(verdict);
        }
        self.hurry = hurry;
        self.end_agents(steps, hurry);
        self.send_due_signals();
    }

    /// Sends the signals that are due.
    pub(super) fn send_due_signals(&mut self) {
        let now = Instant::now();
        let had = self.had;
        let Some(steps) = &mut self.ending else {
            return;
        };
        while let Some(signal) = steps.take(now) {
            // In a job on several hosts, agents send the signals.
            if self.childless || !self.agents.is_empty() {
                continue;
            }
            let guard = self.guard.as_ref().map(Guard::pid);
            processes::to_all(&self.ranks, guard, signal, had == Some(signal));
            if signal == Signal::SIGKILL {
                steps.repeat(signal, now);
            }
        }
    }

    /// The line that reports the verdict; `with_others` adds the states of the other ranks.
    pub(super) fn line(&self, verdict: &Verdict, with_others: bool) -> String {
        let who = verdict.rank.map_or(String::new(), |rank| self.name(rank));
        let others = describe::in_a_line(&self.ranks, verdict.rank).filter(|_| with_others);
        let others = others.map_or(String::new(), |others| format!("; {others}"));
        format!("{who}{}{others}", verdict.cause.text())
    }

    /// A rank with its process, program and host, as the beginning of a message.
    pub(super) fn name(&self, number: usize) -> String {
        let rank = &self.ranks[number];
        let host = self.host_name(number);
        let pid = rank.pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        let program = self.options.program(number).1.program.to_string_lossy();
        let (program, host) = (terminal_text::line(&program), terminal_text::line(&host));
        format!("rank {number} (pid {pid}, {program} on {host}) ")
    }

    /// The name of the host of a rank.
    pub(super) fn host_name(&self, number: usize) -> String {
        match self.ranks[number].host {
            Some(host) => self.options.hosts[host].name.clone(),
            None => {
                let own = rustix::system::uname();
                own.nodename().to_string_lossy().into_owned()
            }
        }
    }
}
