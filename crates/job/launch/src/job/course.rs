//! The course of a job to its end: which failure decides it, when ranks are asked for their status,
//! and which signals end it. A machine without clock, processes and output: it is told what has
//! happened and what time it is, and answers with what is to be done.
//!
//! Invariants:
//! - the first failure is the verdict;
//! - before a failed job is ended, its ranks have had time to report their status, unless the user
//!   interrupts that too;
//! - the last signal is SIGKILL, which is repeated until no process is left.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::kill_sequence::{GRACE, KillSequence};
use crate::rank_state::{RankState, states};
use crate::stuck::StuckDetector;
use crate::verdict::{Cause, Verdict};

/// The signals that end a job.
pub(super) type Steps = &'static [Signal];
/// Those of a job that has failed.
pub(super) const TERMINATE: Steps = &[Signal::SIGTERM, Signal::SIGKILL];

/// The time for ranks to report their status before the job is ended.
const LAST_WORDS: Duration = Duration::from_millis(150);
/// The time for all ranks of a deadlock to report it.
const DEADLOCK_REPORTS: Duration = Duration::from_secs(10);
/// The time for ranks to answer where nothing is urgent.
const REPORT: Duration = Duration::from_millis(300);
/// The time after which a process that SIGKILL has not ended waits in a system call, for a device
/// or a file server.
const HOPELESS: Duration = Duration::from_secs(10);

/// A query of the status of all ranks.
struct StatusQuery {
    purpose: QueryPurpose,
    /// The end of the time for answers.
    until: Instant,
}

/// The use of the answers.
enum QueryPurpose {
    /// To report this verdict, and then to end the job by these signals.
    End(Verdict, Steps),
    /// To print a report that the user asked for.
    Report,
    /// To detect a stuck job.
    Stuck,
}

/// A line that reports a failure.
#[derive(Debug, PartialEq)]
pub(super) struct FailureLine {
    pub rank: Option<usize>,
    pub text: String,
    /// With the states of the other ranks.
    pub with_others: bool,
}

/// An order to the job's loop.
#[derive(Debug, PartialEq)]
pub(super) enum Order {
    /// Print a line.
    Say(FailureLine),
    /// Print the states of all ranks under this title.
    Report(String),
    /// Request the status of the ranks that run.
    AskStatus,
    /// Let agents end their ranks; the signals for ranks of this host become due.
    End(Steps),
}

/// The consequence of a rank's failure for the job.
#[derive(Debug)]
pub(super) enum Judgement {
    /// Nothing: the job is ending already.
    Late,
    /// A line; the job goes on.
    Line(FailureLine),
    /// The end of the job.
    End(Verdict),
}

/// How far a job is on its course.
pub(super) struct Course {
    /// The first failure.
    verdict: Option<Verdict>,
    /// The status query that ranks are answering.
    query: Option<StatusQuery>,
    /// The signals still to be sent to end the job. None while it runs.
    ending: Option<KillSequence>,
    /// Whether the job failed or was interrupted: then its end does not wait for the reader of its
    /// output.
    hurry: bool,
    /// The time at which the launcher gives up on processes that do not end.
    hopeless: Option<Instant>,
    /// The signal that the terminal has sent to the ranks in the launcher's process group.
    had: Option<Signal>,
    /// The time at which the job is ended, and its time from the start.
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
    /// A job of so many ranks that starts now, with the limits of its time and of the time without
    /// progress.
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

    /// The first failure.
    pub(super) fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// Whether the job is ending, or only waits for the status of its ranks to end.
    pub(super) fn is_ending(&self) -> bool {
        let purpose = self.query.as_ref().map(|query| &query.purpose);
        self.ending.is_some() || matches!(purpose, Some(QueryPurpose::End(..)))
    }

    /// Whether the job ends in spite of processes that are left.
    pub(super) fn has_given_up(&self, now: Instant) -> bool {
        self.hopeless.is_some_and(|time| now >= time)
    }

    /// Whether the job ends without the reader of its output: it failed, and all signals have been
    /// sent.
    pub(super) fn leaves_output(&self) -> bool {
        self.hurry && self.ending.as_ref().is_some_and(KillSequence::is_empty)
    }

    /// Whether its end does not wait for the reader of its output.
    pub(super) fn is_in_a_hurry(&self) -> bool {
        self.hurry
    }

    /// The next time at which something is due.
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

    /// Judges the failure of a rank. No rank depends on one that has completed MPI_Finalize, so
    /// after such a failure the job continues.
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
        // All ranks of a deadlock fail; which one is seen first is chance.
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

    /// A rank that has ended while others wait for it, and its failure: in a fence, or in MPI
    /// because it ended before the others showed that this is an MPI job.
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

    /// Ends the job with this verdict by these signals, after ranks have had time to report their
    /// status.
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

    /// The user asks for the states of ranks.
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

    /// A signal interrupts the job. Returns the verdict and the signals for its end. None: it is
    /// ending already, and is to be killed.
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

    /// Ends the job by these signals, one after the other. In a hurry its end does not wait for the
    /// reader of its output.
    pub(super) fn end(&mut self, steps: Steps, hurry: bool, now: Instant) -> Vec<Order> {
        self.ending = Some(KillSequence::new(steps.iter().copied(), now));
        self.hopeless = Some(now + GRACE * steps.len() as u32 + HOPELESS);
        self.hurry = hurry;
        let mut orders = Vec::new();
        // A second interrupt does not wait for the status of ranks.
        if let Some(query) = self.query.take()
            && let QueryPurpose::End(verdict, _) = query.purpose
        {
            orders.push(Order::Say(FailureLine::of(&verdict, false)));
            self.verdict.get_or_insert(verdict);
        }
        orders.push(Order::End(steps));
        orders
    }

    /// The next signal that is due, and whether the terminal has sent it to the ranks of its
    /// process group. Signals count only while processes are `left`; then SIGKILL is repeated.
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

    /// The verdict of a job whose time is over. None: there is time, or the job is ending.
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

    /// Does what is due: the end of a status query, and the search for a standstill.
    pub(super) fn look(&mut self, ranks: &[impl AsRef<RankState>], now: Instant) -> Vec<Order> {
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

    /// Ends the query and uses the answers.
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
