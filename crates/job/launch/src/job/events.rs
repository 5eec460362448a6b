//! The lines that ranks send, and the ends of their processes: which of them are failures of the
//! job.

use nix::sys::signal::Signal;
use pmi::FromLauncher;
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use super::RunningJob;
use super::budget::Budget;
use crate::agent::frame::ProcessExit;
use crate::rank::{RankEvent, RankProcess};
use crate::verdict::{Cause, Verdict};

/// The bytes of lines that a rank may have sent before its end.
const LAST_LINES: usize = 1 << 20;

/// The most warnings of a job, each with a topic of its own.
const WARNINGS: usize = 64;

impl RunningJob<'_> {
    /// Handles the lines of these ranks, and the ends of programs below wrappers.
    pub(super) fn handle_ranks(&mut self, ready: &[usize]) {
        let mut budget = Budget::default();
        self.turn = self.turn.wrapping_add(1);
        // Each turn begins with another rank, and those that the budget does not reach stay ready.
        for step in 0..ready.len() {
            let number = ready[(self.turn + step) % ready.len()];
            let rank = &mut self.ranks[number];
            let gone = rank.program_has_ended();
            // The last lines of a process count before its end, so they are received after this
            // check.
            rank.flush();
            self.receive_all(number, &mut budget);
            let rank = &mut self.ranks[number];
            let gone = (gone && !budget.is_spent()) || rank.program_is_gone;
            if gone && let Some(cause) = rank.program_ended() {
                self.rank_failed(number, cause);
            }
        }
        self.find_early_leavers();
    }

    /// Receives and handles the lines of a rank, as far as the budget allows.
    fn receive_all(&mut self, number: usize, budget: &mut Budget) {
        while let Some(events) = self.ranks[number].receive_events(budget) {
            self.handle_events(number, events);
        }
    }

    /// Handles the ends of processes.
    pub(super) fn reap(&mut self) {
        match self.is_remote() {
            true => {
                self.reap_agents();
                self.serve_agents();
            }
            false => self.reap_ranks(),
        }
        if self.childless {
            return;
        }
        // Processes that ranks left running end after them.
        if !self.is_ending() && self.ranks.iter().all(|rank| !rank.is_running()) {
            self.end_in_order(&[Signal::SIGTERM, Signal::SIGKILL]);
        }
    }

    fn reap_ranks(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if let Some(number) = self
                        .ranks
                        .iter()
                        .position(|rank| rank.pid == Some(pid) && rank.is_running())
                    {
                        self.rank_ended(number, status.into());
                    }
                }
                Ok(None) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    /// Handles lines of a rank that concern the whole job.
    pub(super) fn handle_events(&mut self, number: usize, events: Vec<RankEvent>) {
        for event in events {
            match event {
                RankEvent::Failure(cause) => self.rank_failed(number, cause),
                RankEvent::Put { key, value } => match self.kvs.put(number, &key, &value) {
                    Ok(waiting) => {
                        let line = FromLauncher::Value { key, value };
                        let waiting = waiting.into_iter().flatten();
                        waiting.for_each(|other| self.send(other, &line));
                    }
                    Err(why) => self.rank_failed(number, Cause::Kvs { why }),
                },
                RankEvent::Get { key } => match self.kvs.get(number, &key) {
                    Ok(Some(value)) => {
                        let value = value.to_string();
                        self.send(number, &FromLauncher::Value { key, value });
                    }
                    Ok(None) => {}
                    Err(why) => self.rank_failed(number, Cause::Kvs { why }),
                },
                RankEvent::Warning { .. } | RankEvent::Unsupported { .. } => {
                    self.say_remarks(number, vec![event]);
                }
                RankEvent::Fence => match self.kvs.enter_fence(number) {
                    Ok(true) => {
                        let all = 0..self.ranks.len();
                        all.for_each(|rank| self.send(rank, &FromLauncher::Fence));
                    }
                    Ok(false) => {}
                    Err(why) => self.rank_failed(number, Cause::Kvs { why }),
                },
            }
        }
    }

    /// Prints what these lines of a rank say to the user. The other lines are left out: they count
    /// no more once the job has failed.
    pub(super) fn say_remarks(&mut self, number: usize, events: Vec<RankEvent>) {
        for event in events {
            match event {
                RankEvent::Warning { topic, text } => {
                    let may = self.warned.len() < WARNINGS;
                    if may && self.warned.insert(topic) {
                        self.say(&format!("rank {number}: {text}"));
                    }
                }
                RankEvent::Unsupported { procedure } => self.unsupported_called(number, procedure),
                _ => {}
            }
        }
    }

    /// Sends a line to a rank of this host.
    fn send(&mut self, number: usize, line: &FromLauncher) {
        self.ranks[number].send(format!("{line}\n"));
    }

    /// Records the end of a rank's process.
    pub(super) fn rank_ended(&mut self, number: usize, exit: ProcessExit) {
        // A key on the terminal reaches this process no later than the rank that it has killed, but
        // perhaps after the last look for signals.
        if exit != ProcessExit::Code(0) {
            self.take_signals();
        }
        // It reads nothing more, and its last lines fit its socket.
        self.ranks[number].discard_outbox();
        self.receive_all(number, &mut Budget::of(LAST_LINES));
        let others_in_mpi = self
            .ranks
            .iter()
            .any(|rank| rank.number != number && rank.init.is_some());
        let cause = self.ranks[number].ended(exit, others_in_mpi);
        let left_fence = self.fence_waits_for(number);
        if let Some(cause) = cause.or(left_fence.then_some(Cause::LeftFence)) {
            self.rank_failed(number, cause);
        }
    }

    /// Whether ranks are in a fence that this one is not in.
    fn fence_waits_for(&self, rank: usize) -> bool {
        match self.is_remote() {
            true => self.root.fence_waits_for(rank),
            false => self.kvs.fence_waits_for(rank),
        }
    }

    /// Ends the job if a rank has ended while others wait for it: in a fence, or in MPI because it
    /// ended before the others showed that this is an MPI job.
    pub(super) fn find_early_leavers(&mut self) {
        if self.is_ending() {
            return;
        }
        let missed = |rank: &&RankProcess| !rank.is_running() && self.fence_waits_for(rank.number);
        if let Some(number) = self.ranks.iter().find(missed).map(|rank| rank.number) {
            self.rank_failed(number, Cause::LeftFence);
        }
        if !self.ranks.iter().any(RankProcess::is_in_mpi) {
            return;
        }
        let left = |rank: &&RankProcess| !rank.is_running() && rank.init.is_none();
        if let Some(number) = self.ranks.iter().find(left).map(|rank| rank.number) {
            self.rank_failed(number, Cause::NoInit);
        }
    }

    /// Ends the job for the failure of a rank, unless it is ending already. No rank depends on one
    /// that has completed MPI_Finalize, so after such a failure the job continues.
    pub(super) fn rank_failed(&mut self, number: usize, cause: Cause) {
        if self.is_ending() {
            return;
        }
        // All ranks of a deadlock fail; which one is seen first is chance.
        let verdict = match self.ranks[number].deadlocked {
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
        let alone = self
            .ranks
            .iter()
            .all(|rank| rank.number == number || !rank.is_running());
        let left_properly = self.ranks[number].finalized && verdict.cause.is_end_of_a_process();
        if left_properly && !alone {
            let line = self.line(&verdict, false);
            self.say(&line);
            self.verdict.get_or_insert(verdict);
        } else {
            self.fail(verdict, &[Signal::SIGTERM, Signal::SIGKILL]);
        }
    }
}
