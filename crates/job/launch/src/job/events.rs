//! The handling of lines that ranks send, and of the ends of their processes. Failures of the job
//! are detected here.

use std::time::Instant;

use pmi::FromLauncher;
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use super::course::{Judgement, Order, TERMINATE};
use super::running::RunningJob;
use crate::budget::Budget;
use crate::process_exit::ProcessExit;
use crate::rank_state::RankEvent;
use crate::verdict::Cause;

/// The most bytes of lines that are received from a rank after its end.
const LAST_LINES: usize = 1 << 20;

impl RunningJob<'_> {
    /// Handles the lines of the ranks `ready`, and the ends of programs below wrappers.
    pub(super) fn handle_ranks(&mut self, ready: &[usize]) {
        let mut budget = Budget::default();
        self.turn = self.turn.wrapping_add(1);
        // Each pass begins with another rank; ranks that the budget does not reach stay ready.
        for step in 0..ready.len() {
            let number = ready[(self.turn + step) % ready.len()];
            let rank = &mut self.ranks[number];
            let gone = rank.program_has_ended();
            // The last lines of a process must be handled before its end, so they are received
            // after this check.
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

    /// Handles the ends of processes: of agents' commands, or of ranks.
    pub(super) fn reap(&mut self) {
        match self.agents.are_wanted() {
            true => {
                self.reap_agents();
                self.serve_agents();
            }
            false => self.reap_ranks(),
        }
        if self.childless {
            return;
        }
        // Processes that ranks have left running are ended after the ranks.
        if !self.course.is_ending() && self.ranks.iter().all(|rank| !rank.is_running()) {
            let orders = self.course.end(TERMINATE, false, Instant::now());
            self.follow(orders);
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

    /// Handles events of a rank that concern the whole job.
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

    /// Prints the remarks to the user among these events of a rank. Other events are ignored: they
    /// no longer matter once the job has failed.
    pub(super) fn say_remarks(&mut self, number: usize, events: Vec<RankEvent>) {
        for event in events {
            if let Some(text) = self.remarks.text(number, event) {
                self.console.say(&text);
            }
        }
    }

    /// Sends a line to a rank of this host.
    fn send(&mut self, number: usize, line: &FromLauncher) {
        self.ranks[number].send(format!("{line}\n"));
    }

    /// Records the end of a rank's process.
    pub(super) fn rank_ended(&mut self, number: usize, exit: ProcessExit) {
        // A signal from the terminal reaches this process no later than the rank that it has
        // killed, but perhaps after the last call of `take_signals`.
        if exit != ProcessExit::Code(0) {
            self.take_signals();
        }
        // The rank reads nothing more; its last lines fit into its socket's buffer.
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

    /// True if other ranks are in a fence that this rank has not entered.
    fn fence_waits_for(&self, rank: usize) -> bool {
        match self.agents.are_wanted() {
            true => self.agents.hub.fence_waits_for(rank),
            false => self.kvs.fence_waits_for(rank),
        }
    }

    /// Ends the job if a rank has ended while other ranks wait for it.
    pub(super) fn find_early_leavers(&mut self) {
        let waits = |rank| self.fence_waits_for(rank);
        if let Some((number, cause)) = self.course.early_leaver(&self.ranks, waits) {
            self.rank_failed(number, cause);
        }
    }

    /// Handles the failure of a rank: the job ends, unless it is ending already or continues
    /// without the rank.
    pub(super) fn rank_failed(&mut self, number: usize, cause: Cause) {
        // The output of the rank precedes the line about its failure.
        self.move_output(&[]);
        self.pull_all(number);
        match self.course.judge(&self.ranks, number, cause) {
            Judgement::Late => {}
            Judgement::Line(line) => self.follow([Order::Say(line)]),
            Judgement::End(verdict) => self.fail(verdict, TERMINATE),
        }
    }
}
