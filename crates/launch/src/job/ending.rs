//! Ending a job: signals, one stronger than the other, until no process of it is left.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::Job;
use super::questions::{Inquiry, Purpose};
use crate::rank::Rank;
use crate::verdict::Verdict;
use crate::{describe, processes};

/// How long ranks have to say what they wait for before the job is ended.
const LAST_WORDS: Duration = Duration::from_millis(150);
/// Between a signal that asks a rank to end and a stronger one.
const GRACE: Duration = Duration::from_millis(300);
/// Between looks for processes that appeared while others were killed.
const AGAIN: Duration = Duration::from_millis(20);
/// A process that SIGKILL does not end within this time waits in the system, for a device or a file server.
const HOPELESS: Duration = Duration::from_secs(10);

impl Job<'_> {
    pub(super) fn is_ending(&self) -> bool {
        let last_words = matches!(
            &self.inquiry,
            Some(Inquiry {
                purpose: Purpose::End(..),
                ..
            })
        );
        self.ending.is_some() || last_words
    }

    /// Ends the job for this reason by these signals, once ranks have had the time to say what they wait for.
    pub(super) fn fail(&mut self, verdict: Verdict, steps: &'static [Signal]) {
        // What they had said before is the state at which the job failed.
        self.ranks.iter_mut().for_each(|rank| drop(rank.listen()));
        let time = if self.ranks.iter().any(Rank::is_in_mpi) {
            LAST_WORDS
        } else {
            Duration::ZERO
        };
        self.inquire(Purpose::End(verdict, steps), time);
    }

    /// Sends these signals, one after the other, until nothing is left.
    pub(super) fn end(&mut self, steps: &[Signal]) {
        let now = Instant::now();
        let times = (0..).map(|step| now + GRACE * step);
        self.ending = Some(times.zip(steps.iter().copied()).collect());
        self.hopeless = Some(now + GRACE * steps.len() as u32 + HOPELESS);
        self.inquiry = None;
        self.take_steps();
    }

    pub(super) fn take_steps(&mut self) {
        let now = Instant::now();
        while let Some(&(time, signal)) = self.ending.as_ref().and_then(|steps| steps.front()) {
            if time > now {
                break;
            }
            self.take_step(signal);
            let Some(steps) = &mut self.ending else { break };
            steps.pop_front();
            if signal == Signal::SIGKILL && !self.childless {
                steps.push_back((now + AGAIN, signal));
            }
        }
    }

    fn take_step(&self, signal: Signal) {
        if self.childless {
            return;
        }
        self.pass_on(signal, self.had == Some(signal));
        // A stopped process takes a signal only when it goes on.
        self.pass_on(Signal::SIGCONT, false);
        let orphans = processes::children()
            .into_iter()
            .filter(|&pid| self.ranks.iter().all(|rank| rank.pid != pid));
        orphans.for_each(|pid| processes::to_process(pid, signal));
    }

    /// The one line about the end.
    pub(super) fn line(&self, verdict: &Verdict, with_others: bool) -> String {
        let who = verdict.rank.map_or(String::new(), |number| {
            let host = rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned();
            let pid = self.ranks[number].pid.as_raw_nonzero();
            format!(
                "rank {number} (pid {pid}, {} on {host}) ",
                self.options.program.to_string_lossy()
            )
        });
        let others = describe::in_a_line(&self.ranks, verdict.rank).filter(|_| with_others);
        let others = others.map_or(String::new(), |others| format!("; {others}"));
        format!("{who}{}{others}", verdict.cause.text())
    }
}
