//! Asking ranks what they wait for: before the job is ended, for a report, and to see whether it is stuck.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::{Job, say};
use crate::agent::frame::Down;
use crate::describe;
use crate::rank::Rank;
use crate::verdict::{Cause, Verdict};

/// How long ranks have to answer where nothing is urgent.
pub(super) const REPORT: Duration = Duration::from_millis(300);

/// Ranks have been asked what they wait for.
pub(super) struct Inquiry {
    pub purpose: Purpose,
    pub until: Instant,
}

pub(super) enum Purpose {
    /// The line about this failure, and then the end by these signals.
    End(Verdict, &'static [Signal]),
    /// A report that somebody asked for.
    Report,
    /// Is the job stuck?
    Stuck,
}

impl Job<'_> {
    pub(super) fn inquire(&mut self, purpose: Purpose, time: Duration) {
        if self.is_ending() {
            return;
        }
        let asked = self.ranks.iter_mut();
        for rank in asked.filter(|rank| rank.is_running() && !rank.finalized) {
            rank.ask();
            if let Some(host) = rank.host.filter(|_| rank.pid.is_some()) {
                self.agents[host].link.post(&Down::Ask(rank.number));
            }
        }
        self.inquiry = Some(Inquiry {
            purpose,
            until: Instant::now() + time,
        });
    }

    pub(super) fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        self.take_steps();
        self.end_overdue_agents(now);
        if self.timeout.is_some_and(|time| now >= time) && !self.is_ending() {
            self.timeout = None;
            let time = self.options.timeout.unwrap_or_default();
            let verdict = Verdict {
                rank: None,
                cause: Cause::Timeout(time),
            };
            self.fail(verdict, &[Signal::SIGTERM, Signal::SIGKILL]);
        }
        if self
            .inquiry
            .as_ref()
            .is_some_and(|inquiry| now >= inquiry.until)
            || self.all_answered()
        {
            self.conclude(now);
        }
        if self.inquiry.is_none()
            && self.ending.is_none()
            && self.stuck.as_ref().is_some_and(|s| now >= s.next)
        {
            self.inquire(Purpose::Stuck, REPORT);
        }
    }

    fn all_answered(&self) -> bool {
        let open = |rank: &Rank| rank.is_running() && !rank.finalized && rank.answer.is_none();
        !self.ranks.iter().any(open)
    }

    fn conclude(&mut self, now: Instant) {
        let Some(inquiry) = self.inquiry.take() else {
            return;
        };
        match inquiry.purpose {
            Purpose::End(verdict, steps) => {
                let tells = |rank: &Rank| rank.is_running() || rank.last_words().is_some();
                let others = self.ranks.iter().any(tells);
                say(&self.line(&verdict, others));
                self.verdict.get_or_insert(verdict);
                self.end(steps);
            }
            Purpose::Report => self.report("what the ranks wait for:"),
            Purpose::Stuck => {
                let time = self
                    .stuck
                    .as_mut()
                    .and_then(|stuck| stuck.judge(&self.ranks, now));
                if let Some(time) = time {
                    self.report(&format!(
                        "no rank made progress for {:.1} s:",
                        time.as_secs_f64()
                    ));
                }
            }
        }
    }

    fn report(&self, title: &str) {
        let mut text = title.to_string();
        for line in describe::in_lines(&self.ranks) {
            text.push_str(&format!("\n  {line}"));
        }
        say(&text);
    }
}
