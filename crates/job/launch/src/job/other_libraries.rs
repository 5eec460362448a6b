//! The search of ranks' memory for MPI libraries other than ours. Ranks that load one are not ranks
//! of this job, and cannot report that themselves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Options;
use crate::library::{MPICH_LIBRARY, own_library};
use crate::linked::{late_remark, mapped_libraries};
use crate::rank_state::{RankState, states};
use crate::start::libraries::linked_to;
use crate::verdict::{Cause, Verdict};
use crate::wheel::wheel_remark;

/// The times after the start at which the memory of ranks is searched, in milliseconds.
const SEARCHES: [u64; 5] = [100, 300, 1_000, 3_000, 10_000];

/// The search for other MPI libraries, with the libraries found so far.
pub(super) struct OtherLibraries {
    start: Instant,
    /// The number of searches of the ranks' memory that are complete.
    done: usize,
    /// The time of the next search. `None` if no more searches are needed.
    pub next: Option<Instant>,
    found: BTreeSet<PathBuf>,
}

impl OtherLibraries {
    /// Plans the searches. There are none for a single rank, which needs no other library, nor for
    /// ranks on other hosts, which are not visible.
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

    /// Searches the memory of ranks if that is due. Once a rank is in MPI, it uses our library, and
    /// the search ends.
    pub(super) fn search(
        &mut self,
        ranks: &[impl AsRef<RankState>],
        own: Option<&Path>,
        is_ending: bool,
        now: Instant,
    ) {
        if self.next.is_none_or(|time| now < time) {
            return;
        }
        if has_mpi(ranks) || is_ending {
            self.next = None;
            return;
        }
        let running = states(ranks).filter(|rank| rank.is_running());
        let pids: Vec<_> = running.filter_map(|rank| rank.pid).collect();
        self.found.extend(mapped_libraries(&pids, own));
        self.done += 1;
        self.plan();
        if !self.found.is_empty() {
            self.next = None;
        }
    }

    /// The remark after the job that its ranks loaded other MPI libraries, unless that was reported
    /// before the start.
    pub(super) fn remark(
        &self,
        ranks: &[impl AsRef<RankState>],
        options: &Options,
    ) -> Option<String> {
        let text = late_remark(ranks.len(), &self.found)?;
        let mut programs = options.programs.iter();
        let mut was_said =
            || programs.any(|program| linked_to(options, program).obstacle.is_some());
        (!has_mpi(ranks) && !was_said()).then_some(text)
    }
}

/// The remark after the job that the python of the rank that failed has an mpi4py for other ABIs.
pub(super) fn remark_on_wheel(
    ranks: &[impl AsRef<RankState>],
    options: &Options,
    verdict: Option<&Verdict>,
) -> Option<String> {
    let failed = verdict.filter(|verdict| matches!(verdict.cause, Cause::Exit { .. }));
    let number = failed?.rank?;
    let own = options.library.as_deref();
    let has_abi = own.is_some_and(|own| own_library(own, MPICH_LIBRARY.as_ref()).is_some());
    let is_here = options.hosts.is_empty() && !has_mpi(ranks) && !has_abi;
    let program = options.program(number).1;
    is_here.then(|| wheel_remark(program)).flatten()
}

/// True if a rank has completed MPI_Init.
fn has_mpi(ranks: &[impl AsRef<RankState>]) -> bool {
    states(ranks).any(|rank| rank.init.is_some())
}
