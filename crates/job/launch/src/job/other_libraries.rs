//! The search for MPI libraries that are not ours in the memory of ranks: ranks that load one are
//! not ranks of this job, which they would never say.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{RunningJob, say};
use crate::Options;
use crate::library::{MPICH_LIBRARY, own_library};
use crate::linked::{late_remark, mapped_libraries};
use crate::rank::RankProcess;
use crate::start::linked_to;
use crate::verdict::Cause;
use crate::wheel::wheel_remark;

/// The times after the start at which the memory of ranks is searched, in milliseconds.
const SEARCHES: [u64; 5] = [100, 300, 1_000, 3_000, 10_000];

/// The search, and its finds.
pub(super) struct OtherLibraries {
    start: Instant,
    /// The number of searches so far.
    done: usize,
    /// The time of the next search. None if no more is needed.
    pub next: Option<Instant>,
    found: BTreeSet<PathBuf>,
}

impl OtherLibraries {
    /// One rank alone needs no other, and those of other hosts are out of sight.
    pub(super) fn new(options: &Options, now: Instant) -> Self {
        let is_needed = options.ranks() > 1 && options.hosts.is_empty();
        let mut search = OtherLibraries {
            start: now,
            done: 0,
            next: None,
            found: BTreeSet::new(),
        };
        search.plan();
        search.next = search.next.filter(|_| is_needed);
        search
    }

    fn plan(&mut self) {
        let millis = SEARCHES.get(self.done).copied();
        self.next = millis.map(|millis| self.start + Duration::from_millis(millis));
    }
}

impl RunningJob<'_> {
    /// Searches the memory of ranks, if that is due. A rank in MPI shows that this library is used.
    pub(super) fn search_other_libraries(&mut self, now: Instant) {
        if self.others.next.is_none_or(|time| now < time) {
            return;
        }
        if self.has_mpi_ranks() || self.is_ending() {
            self.others.next = None;
            return;
        }
        let running = self.ranks.iter().filter(|rank| rank.is_running());
        let pids: Vec<_> = running.filter_map(|rank| rank.pid).collect();
        let found = mapped_libraries(&pids, self.options.library.as_deref());
        self.others.found.extend(found);
        self.others.done += 1;
        self.others.plan();
        if !self.others.found.is_empty() {
            self.others.next = None;
        }
    }

    /// Reports after the job that its ranks had other libraries.
    pub(super) fn say_other_libraries(&self) {
        if let Some(text) = late_remark(self.ranks.len(), &self.others.found)
            && !self.has_mpi_ranks()
            && !self.was_said_at_the_start()
        {
            say(&text);
        }
    }

    /// Reports after the job that the python of the rank that failed has an mpi4py for other ABIs.
    pub(super) fn say_wheel(&self) {
        let failed = self
            .verdict
            .as_ref()
            .filter(|verdict| matches!(verdict.cause, Cause::Exit { .. }));
        let Some(number) = failed.and_then(|verdict| verdict.rank) else {
            return;
        };
        let own = self.options.library.as_deref();
        let has_abi = own.is_some_and(|own| own_library(own, MPICH_LIBRARY.as_ref()).is_some());
        let is_here = self.options.hosts.is_empty() && !self.has_mpi_ranks() && !has_abi;
        let program = self.options.program(number).1;
        if let Some(text) = is_here.then(|| wheel_remark(program)).flatten() {
            say(&text);
        }
    }

    fn was_said_at_the_start(&self) -> bool {
        let mut programs = self.options.programs.iter();
        programs.any(|program| linked_to(self.options, program).obstacle.is_some())
    }

    fn has_mpi_ranks(&self) -> bool {
        self.ranks
            .iter()
            .any(|rank: &RankProcess| rank.init.is_some())
    }
}
