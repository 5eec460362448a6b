//! The course of a job to its end: which failure decides its outcome, when ranks are asked for
//! their status, and which signals end it. It is a state machine without access to clock, processes
//! and output: its inputs are events and the time, its results are orders.
//!
//! Invariants:
//! - the first failure is the verdict;
//! - before a failed job is ended, its ranks have had time to report their status, unless the user
//!   interrupts that wait, too;
//! - the last signal is SIGKILL, which is repeated until no process is left.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::kill_sequence::{GRACE, KillSequence};
use crate::rank_state::{RankState, states};
use crate::stuck::StuckDetector;
use crate::verdict::{Cause, Verdict};

/// The signals that end a job, in the order in which they are sent.
pub(super) type Steps = &'static [Signal];
/// The signals that end a job that has failed.
pub(super) const TERMINATE: Steps = &[Signal::SIGTERM, Signal::SIGKILL];

/// The time for ranks to report their status before a failed job is ended.
const LAST_WORDS: Duration = Duration::from_millis(150);
/// The time for all ranks of a deadlock to report it.
const DEADLOCK_REPORTS: Duration = Duration::from_secs(10);
/// The time for ranks to report their status when the job is not ending.
const REPORT: Duration = Duration::from_millis(300);
/// The time after SIGKILL after which a process that is still left is given up: it waits in a
/// system call, for a device or a file server.
const HOPELESS: Duration = Duration::from_secs(10);

/// A query of the status of all ranks that has not ended.
struct StatusQuery {
    purpose: QueryPurpose,
    /// The time at which the query ends without further answers.
    until: Instant,
}

/// The purpose of a status query.
enum QueryPurpose {
    /// Report this verdict, then end the job by these signals.
    End(Verdict, Steps),
    /// Print a report that the user has requested.
    Report,
    /// Check whether the job is stuck.
    Stuck,
}

/// A line for the user that reports a failure.
#[derive(Debug, PartialEq)]
pub(super) struct FailureLine {
    pub rank: Option<usize>,
    pub text: String,
    /// True if the report includes the states of the other ranks.
    pub with_others: bool,
}

/// A command of the course to the job's event loop, which carries it out.
#[derive(Debug, PartialEq)]
pub(super) enum Order {
    /// Print a line about a failure.
    Say(FailureLine),
    /// Print the states of all ranks under this title.
    Report(String),
    /// Request the status of the ranks that run.
    AskStatus,
    /// End all ranks: agents do it on their hosts; the signals to ranks of this host become due.
    End(Steps),
}

/// The consequence of a rank's failure for the job.
#[derive(Debug)]
pub(super) enum Judgement {
    /// Nothing follows, because the job is already ending.
    Late,
    /// A line is printed, and the job continues.
    Line(FailureLine),
    /// The job ends with this verdict.
    End(Verdict),
}

/// The state of a job on its course to its end: the first failure, the status query that runs, the
/// signals still to be sent.
pub(super) struct Course {
    /// The first failure, which determines the outcome of the job. `None`: there is none yet.
    verdict: Option<Verdict>,
    /// The status query whose answers ranks are sending.
    query: Option<StatusQuery>,
    /// The signals still to be sent to end the job. `None` while the job is not ending.
    ending: Option<KillSequence>,
    /// True if the job failed or was interrupted: then its end does not wait for the reader of its
    /// output.
    hurry: bool,
    /// The time at which the launcher stops waiting for processes that SIGKILL has not ended.
    hopeless: Option<Instant>,
    /// The signal that the terminal has already sent to the ranks in its foreground process group,
    /// if any.
    had: Option<Signal>,
    /// The time at which the job times out, and the limit on its duration.
    timeout: Option<(Instant, Duration)>,
    stuck: Option<StuckDetector>,
}

impl FailureLine {
    pub(super) fn of(verdict: &Verdict, with_others: bool) -> FailureLine {
        FailureLine {
            rank: verdict.rank,
            text: verdict.cause.text(),
            with_others,
        }
    }
}

impl Course {
    /// The course of a job of `ranks` ranks that starts now. `timeout` limits its duration,
    /// `patience` the time without progress before a report.
    pub(super) fn new(
        timeout: Option<Duration>,
        patience: Option<Duration>,
        ranks: usize,
        now: Instant,
    ) -> Course {
        let patience = patience.filter(|time| !time.is_zero());
        Course {
            verdict: None,
            query: None,
            ending: None,
            hurry: false,
            hopeless: None,
            had: None,
            timeout: timeout.and_then(|time| Some((now.checked_add(time)?, time))),
            stuck: patience.map(|patience| StuckDetector::new(patience, ranks, now)),
        }
    }

    /// The first failure, if there was one.
    pub(super) fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// True if the job is ending, or will end as soon as its ranks have reported their status.
    pub(super) fn is_ending(&self) -> bool {
        let purpose = self.query.as_ref().map(|query| &query.purpose);
        self.ending.is_some() || matches!(purpose, Some(QueryPurpose::End(..)))
    }

    /// True if the launcher gives up on processes that are left.
    pub(super) fn has_given_up(&self, now: Instant) -> bool {
        self.hopeless.is_some_and(|time| now >= time)
    }

    /// True if the job does not wait for the reader of its output any more: it failed, and all
    /// signals have been sent.
    pub(super) fn leaves_output(&self) -> bool {
        self.hurry && self.ending.as_ref().is_some_and(KillSequence::is_empty)
    }

    /// True if the end of the job does not wait for the reader of its output.
    pub(super) fn is_in_a_hurry(&self) -> bool {
        self.hurry
    }

    /// The next time at which [`Course::check`] has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        let is_idle = self.query.is_none() && self.ending.is_none();
        let timeout = self.timeout.filter(|_| self.ending.is_none());
        let deadlines = [
            self.query.as_ref().map(|query| query.until),
            self.ending.as_ref().and_then(KillSequence::next),
            self.hopeless,
            timeout.map(|(time, _)| time),
            self.stuck
                .as_ref()
                .filter(|_| is_idle)
                .map(|stuck| stuck.next),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Judges the failure of a rank. No rank depends on one that has completed MPI_Finalize, so the
    /// job continues after the failure of such a rank.
    pub(super) fn judge(
        &mut self,
        ranks: &[impl AsRef<RankState>],
        number: usize,
        cause: Cause,
    ) -> Judgement {
        if self.is_ending() {
            return Judgement::Late;
        }
        let failed = ranks[number].as_ref();
        // All ranks of a deadlock fail; which of them is handled first is arbitrary.
        let verdict = match failed.deadlocked {
            true => Verdict {
                rank: None,
                cause: Cause::Deadlock {
                    code: cause.exit_code(),
                },
            },
            false => Verdict {
                rank: Some(number),
                cause,
            },
        };
        let is_alone = states(ranks).all(|rank| rank.number == number || !rank.is_running());
        if !failed.finalized || !verdict.cause.is_end_of_a_process() || is_alone {
            return Judgement::End(verdict);
        }
        let line = FailureLine::of(&verdict, false);
        self.verdict.get_or_insert(verdict);
        Judgement::Line(line)
    }

    /// Finds a rank that has ended while others wait for it, and its failure. The others wait in a
    /// fence, or in MPI because the rank ended before they showed that this is an MPI job.
    pub(super) fn early_leaver(
        &self,
        ranks: &[impl AsRef<RankState>],
        fence_waits_for: impl Fn(usize) -> bool,
    ) -> Option<(usize, Cause)> {
        if self.is_ending() {
            return None;
        }
        let mut gone = states(ranks).filter(|rank| !rank.is_running());
        if let Some(rank) = gone.find(|rank| fence_waits_for(rank.number)) {
            return Some((rank.number, Cause::LeftFence));
        }
        if !states(ranks).any(RankState::is_in_mpi) {
            return None;
        }
        let mut gone = states(ranks).filter(|rank| !rank.is_running());
        let left = gone.find(|rank| rank.init.is_none())?;
        Some((left.number, Cause::NoInit))
    }

    /// Begins the end of the job with this verdict: queries the status of ranks, after which the
    /// signals `steps` end them.
    pub(super) fn fail(
        &mut self,
        ranks: &[impl AsRef<RankState>],
        verdict: Verdict,
        steps: Steps,
        now: Instant,
    ) -> Option<Order> {
        let time = match verdict.cause {
            Cause::Deadlock { .. } => DEADLOCK_REPORTS,
            _ if states(ranks).any(RankState::is_in_mpi) => LAST_WORDS,
            _ => Duration::ZERO,
        };
        self.ask(QueryPurpose::End(verdict, steps), now + time)
    }

    /// Begins the report of ranks' states that the user has requested.
    pub(super) fn report(&mut self, now: Instant) -> Option<Order> {
        self.ask(QueryPurpose::Report, now + REPORT)
    }

    fn ask(&mut self, purpose: QueryPurpose, until: Instant) -> Option<Order> {
        if self.is_ending() {
            return None;
        }
        self.query = Some(StatusQuery { purpose, until });
        Some(Order::AskStatus)
    }

    /// Handles a signal that interrupts the job. Returns the verdict and the signals for its end.
    /// `None`: the job is ending already, and must be killed.
    pub(super) fn interrupt(
        &mut self,
        signal: Signal,
        from_terminal: bool,
    ) -> Option<(Verdict, Steps)> {
        if self.is_ending() {
            return None;
        }
        self.had = Some(signal).filter(|_| from_terminal);
        let steps: Steps = match signal {
            Signal::SIGINT => &[Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL],
            Signal::SIGHUP => &[Signal::SIGHUP, Signal::SIGTERM, Signal::SIGKILL],
            _ => TERMINATE,
        };
        let verdict = Verdict {
            rank: None,
            cause: Cause::Interrupt(signal),
        };
        Some((verdict, steps))
    }

    /// Ends the job by the signals `steps`, one after the other. With `hurry` its end does not wait
    /// for the reader of its output.
    pub(super) fn end(&mut self, steps: Steps, hurry: bool, now: Instant) -> Vec<Order> {
        self.ending = Some(KillSequence::new(steps.iter().copied(), now));
        self.hopeless = Some(now + GRACE * steps.len() as u32 + HOPELESS);
        self.hurry = hurry;
        let mut orders = Vec::new();
        // After a second interrupt the status of ranks is not awaited.
        if let Some(query) = self.query.take()
            && let QueryPurpose::End(verdict, _) = query.purpose
        {
            orders.push(Order::Say(FailureLine::of(&verdict, false)));
            self.verdict.get_or_insert(verdict);
        }
        orders.push(Order::End(steps));
        orders
    }

    /// The next signal that is due, and true if the terminal has already sent it to the ranks of
    /// its process group. Signals are returned only while processes are `left`; then SIGKILL is
    /// repeated.
    pub(super) fn take_signal(&mut self, left: bool, now: Instant) -> Option<(Signal, bool)> {
        let steps = self.ending.as_mut()?;
        while let Some(signal) = steps.take(now) {
            if left {
                if signal == Signal::SIGKILL {
                    steps.repeat(signal, now);
                }
                return Some((signal, self.had == Some(signal)));
            }
        }
        None
    }

    /// The verdict for a job that has timed out. `None`: it has not, or it is ending already.
    pub(super) fn time_out(&mut self, now: Instant) -> Option<Verdict> {
        let (_, time) = self.timeout.filter(|(end, _)| now >= *end)?;
        if self.is_ending() {
            return None;
        }
        self.timeout = None;
        Some(Verdict {
            rank: None,
            cause: Cause::Timeout(time),
        })
    }

    /// Performs what is due at `now`: ends a status query, or begins the check for a job without
    /// progress.
    pub(super) fn check(&mut self, ranks: &[impl AsRef<RankState>], now: Instant) -> Vec<Order> {
        let mut orders = Vec::new();
        if self.query.as_ref().is_some_and(|query| now >= query.until) || self.is_answered(ranks) {
            orders = self.conclude(ranks, now);
        }
        let is_idle = self.query.is_none() && self.ending.is_none();
        if is_idle && self.stuck.as_ref().is_some_and(|stuck| now >= stuck.next) {
            orders.extend(self.ask(QueryPurpose::Stuck, now + REPORT));
        }
        orders
    }

    fn is_answered(&self, ranks: &[impl AsRef<RankState>]) -> bool {
        if let Some(query) = &self.query
            && let QueryPurpose::End(verdict, _) = &query.purpose
            && let Cause::Deadlock { .. } = verdict.cause
        {
            return states(ranks).all(|rank| rank.deadlocked || !rank.is_in_mpi());
        }
        let is_open = |rank: &RankState| rank.is_running() && !rank.finalized;
        !states(ranks).any(|rank| is_open(rank) && rank.answer.is_none())
    }

    /// Ends the status query, and uses the answers according to its purpose.
    fn conclude(&mut self, ranks: &[impl AsRef<RankState>], now: Instant) -> Vec<Order> {
        match self.query.take().map(|query| query.purpose) {
            None => Vec::new(),
            Some(QueryPurpose::End(verdict, steps)) => {
                let has_status = |rank: &RankState| {
                    rank.is_running() || rank.deadlocked || rank.last_words().is_some()
                };
                let line = FailureLine::of(&verdict, states(ranks).any(has_status));
                self.verdict.get_or_insert(verdict);
                let mut orders = vec![Order::Say(line)];
                orders.extend(self.end(steps, true, now));
                orders
            }
            Some(QueryPurpose::Report) => vec![Order::Report("what the ranks wait for:".into())],
            Some(QueryPurpose::Stuck) => {
                let stuck = self.stuck.as_mut();
                let time = stuck.and_then(|stuck| stuck.judge(ranks, now));
                let title = time.map(|time| {
                    let time = time.as_secs_f64();
                    format!("no rank made progress for {time:.1} s:")
                });
                title.map(Order::Report).into_iter().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;
