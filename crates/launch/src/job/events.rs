//! What ranks say, and how they end: which of it is a failure of the job.

use nix::sys::signal::Signal;
use pmi::FromLauncher;
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use super::{Job, say};
use crate::agent::frame::{Down, Exit};
use crate::rank::{News, Rank};
use crate::verdict::{Cause, Verdict};

impl Job<'_> {
    pub(super) fn listen(&mut self, ready: &[usize]) {
        for &number in ready {
            let rank = &mut self.ranks[number];
            let gone = rank.program_has_ended();
            // What a process said just before it ended counts more than its end, so this comes after looking.
            let news = rank.listen();
            rank.flush();
            self.hear(number, news);
            let rank = &mut self.ranks[number];
            let gone = gone || rank.program_is_gone;
            if gone && let Some(cause) = rank.program_ended() {
                self.rank_failed(number, cause);
            }
        }
        self.miss_early_leavers();
    }

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
        // What ranks left running after they ended, ends too.
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

    pub(super) fn hear(&mut self, number: usize, news: Vec<News>) {
        for news in news {
            match news {
                News::Failure(cause) => self.rank_failed(number, cause),
                News::Put { key, value } => match self.kvs.put(number, &key, &value) {
                    Ok(waiting) => {
                        let line = FromLauncher::Value { key, value };
                        waiting
                            .into_iter()
                            .for_each(|other| self.tell(other, &line));
                    }
                    Err(why) => self.rank_failed(number, Cause::Kvs { why }),
                },
                News::Get { key } => match self.kvs.get(number, &key) {
                    Ok(Some(value)) => {
                        let value = value.to_string();
                        self.tell(number, &FromLauncher::Value { key, value });
                    }
                    Ok(None) => {}
                    Err(why) => self.rank_failed(number, Cause::Kvs { why }),
                },
                News::Fence => match self.kvs.enter_fence(number) {
                    Ok(true) => {
                        let all = 0..self.ranks.len();
                        all.for_each(|rank| self.tell(rank, &FromLauncher::Fence));
                    }
                    Ok(false) => {}
                    Err(why) => self.rank_failed(number, Cause::Kvs { why }),
                },
            }
        }
    }

    fn tell(&mut self, number: usize, line: &FromLauncher) {
        let packet = format!("{line}\n");
        match self.ranks[number].host {
            None => self.ranks[number].tell(packet),
            Some(host) => self.agents[host].link.post(&Down::Tell(number, packet)),
        }
    }

    pub(super) fn rank_ended(&mut self, number: usize, exit: Exit) {
        let said = self.ranks[number].listen();
        self.hear(number, said);
        let others_in_mpi = self
            .ranks
            .iter()
            .any(|rank| rank.number != number && rank.init.is_some());
        let cause = self.ranks[number].ended(exit, others_in_mpi);
        let missed = self.kvs.fence_waits_for(number);
        if let Some(cause) = cause.or(missed.then_some(Cause::LeftFence)) {
            self.rank_failed(number, cause);
        }
    }

    /// Finds a rank that has left while others wait for it in vain: in a fence, or because it left before they showed that
    /// this is an MPI job.
    pub(super) fn miss_early_leavers(&mut self) {
        if self.is_ending() {
            return;
        }
        let missed = |rank: &&Rank| !rank.is_running() && self.kvs.fence_waits_for(rank.number);
        if let Some(number) = self.ranks.iter().find(missed).map(|rank| rank.number) {
            self.rank_failed(number, Cause::LeftFence);
        }
        if !self.ranks.iter().any(Rank::is_in_mpi) {
            return;
        }
        let left = |rank: &&Rank| !rank.is_running() && rank.init.is_none();
        if let Some(number) = self.ranks.iter().find(left).map(|rank| rank.number) {
            self.rank_failed(number, Cause::NoInit);
        }
    }

    /// Only the first failure counts. Nobody depends on a rank that is past MPI_Finalize, so then the job goes on.
    pub(super) fn rank_failed(&mut self, number: usize, cause: Cause) {
        if self.is_ending() {
            return;
        }
        let verdict = Verdict {
            rank: Some(number),
            cause,
        };
        let alone = self
            .ranks
            .iter()
            .all(|rank| rank.number == number || !rank.is_running());
        let left_properly = self.ranks[number].finalized && verdict.cause.is_end_of_a_process();
        if left_properly && !alone {
            say(&self.line(&verdict, false));
            self.verdict.get_or_insert(verdict);
        } else {
            self.fail(verdict, &[Signal::SIGTERM, Signal::SIGKILL]);
        }
    }
}
