//! Ending a job: signals, one stronger than the other, until no process of it is left.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::status_query::{Inquiry, Purpose};
use super::{Job, say};
use crate::kill_sequence::{GRACE, Steps};
use crate::rank::Rank;
use crate::verdict::Verdict;
use crate::{describe, processes};

/// How long ranks have to say what they wait for before the job is ended.
const LAST_WORDS: Duration = Duration::from_millis(150);
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
        self.end_by(steps, true);
    }

    /// The same for what ranks left running when they had ended as they should: their output is waited for.
    pub(super) fn end_in_order(&mut self, steps: &[Signal]) {
        self.end_by(steps, false);
    }

    fn end_by(&mut self, steps: &[Signal], hurry: bool) {
        let now = Instant::now();
        self.ending = Some(Steps::new(steps.iter().copied(), now));
        self.hopeless = Some(now + GRACE * steps.len() as u32 + HOPELESS);
        // Whoever is in a hurry does not wait for what ranks would have said.
        if let Some(Inquiry {
            purpose: Purpose::End(verdict, _),
            ..
        }) = self.inquiry.take()
        {
            say(&self.line(&verdict, false));
            self.verdict.get_or_insert(verdict);
        }
        self.hurry = hurry;
        self.end_agents(steps, hurry);
        self.take_steps();
    }

    pub(super) fn take_steps(&mut self) {
        let now = Instant::now();
        let had = self.had;
        let Some(steps) = &mut self.ending else {
            return;
        };
        while let Some(signal) = steps.take(now) {
            // Agents take the steps of a job on several hosts.
            if self.childless || !self.agents.is_empty() {
                continue;
            }
            processes::to_all(&self.ranks, signal, had == Some(signal));
            if signal == Signal::SIGKILL {
                steps.repeat(signal, now);
            }
        }
    }

    /// The one line about the end.
    pub(super) fn line(&self, verdict: &Verdict, with_others: bool) -> String {
        let who = verdict.rank.map_or(String::new(), |number| {
            let rank = &self.ranks[number];
            let host = match rank.host {
                Some(host) => self.agents[host].name.clone(),
                None => {
                    let own = rustix::system::uname();
                    own.nodename().to_string_lossy().into_owned()
                }
            };
            let pid = rank.pid.map_or(0, |pid| pid.as_raw_nonzero().get());
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
