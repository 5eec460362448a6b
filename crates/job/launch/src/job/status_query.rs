//! Queries of the status of all ranks: before the job is ended, for a report, and to detect a stuck
//! job.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::RunningJob;
use crate::agent::frame::ToAgent;
use crate::describe;
use crate::rank::RankProcess;
use crate::verdict::{Cause, Verdict};

/// The time for ranks to answer where nothing is urgent.
pub(super) const REPORT: Duration = Duration::from_millis(300);

/// A query that ranks are answering.
pub(super) struct StatusQuery {
    pub purpose: QueryPurpose,
    /// The end of the time for answers.
    pub until: Instant,
}

/// The use of the answers.
pub(super) enum QueryPurpose {
    /// To report this verdict, and then to end the job by these signals.
    End(Verdict, &'static [Signal]),
    /// To print a report that the user asked for.
    Report,
    /// To detect a stuck job.
    Stuck,
}

impl RunningJob<'_> {
    /// Requests the status of every rank.
    pub(super) fn query_status(&mut self, purpose: QueryPurpose, time: Duration) {
        if self.is_ending() {
            return;
        }
        let ranks = self.ranks.iter_mut();
        for rank in ranks.filter(|rank| rank.is_running() && !rank.finalized) {
            rank.request_status();
            if let Some(host) = rank.host.filter(|_| rank.pid.is_some()) {
                self.agents[host]
                    .link
                    .post(&ToAgent::RequestStatus(rank.number));
            }
        }
        self.query = Some(StatusQuery {
            purpose,
            until: Instant::now() + time,
        });
    }

    /// Does what is due.
    pub(super) fn handle_deadlines(&mut self) {
        let now = Instant::now();
        self.search_other_libraries(now);
        self.send_due_signals();
        self.end_overdue_agents(now);
        self.stdout.look(now);
        self.stderr.look(now);
        if self.timeout.is_some_and(|time| now >= time) && !self.is_ending() {
            self.timeout = None;
            let time = self.options.timeout.unwrap_or_default();
            let verdict = Verdict {
                rank: None,
                cause: Cause::Timeout(time),
            };
            self.fail(verdict, &[Signal::SIGTERM, Signal::SIGKILL]);
        }
        if self.query.as_ref().is_some_and(|query| now >= query.until) || self.all_answered() {
            self.conclude(now);
        }
        if self.query.is_none()
            && self.ending.is_none()
            && self.stuck.as_ref().is_some_and(|s| now >= s.next)
        {
            self.query_status(QueryPurpose::Stuck, REPORT);
        }
    }

    fn all_answered(&self) -> bool {
        if let Some(StatusQuery {
            purpose: QueryPurpose::End(verdict, _),
            ..
        }) = &self.query
            && let Cause::Deadlock { .. } = verdict.cause
        {
            let is_known = |rank: &RankProcess| rank.deadlocked || !rank.is_in_mpi();
            return self.ranks.iter().all(is_known);
        }
        let open =
            |rank: &RankProcess| rank.is_running() && !rank.finalized && rank.answer.is_none();
        !self.ranks.iter().any(open)
    }

    /// Ends the query and uses the answers.
    fn conclude(&mut self, now: Instant) {
        let Some(query) = self.query.take() else {
            return;
        };
        match query.purpose {
            QueryPurpose::End(verdict, steps) => {
                let has_status = |rank: &RankProcess| {
                    rank.is_running() || rank.deadlocked || rank.last_words().is_some()
                };
                let others = self.ranks.iter().any(has_status);
                let line = self.line(&verdict, others);
                self.say(&line);
                self.verdict.get_or_insert(verdict);
                self.end(steps);
            }
            QueryPurpose::Report => self.report("what the ranks wait for:"),
            QueryPurpose::Stuck => {
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

    fn report(&mut self, title: &str) {
        let mut text = title.to_string();
        for line in describe::in_lines(&self.ranks) {
            text.push_str(&format!("\n  {line}"));
        }
        self.say(&text);
    }
}
