//! For each core of a host, in shared memory: how many ranks run on it, and how often a rank has
//! yielded it.
//!
//! A rank is counted on the core that it ran on when it last waited or woke. A rank that waits on a
//! shared core keeps the other rank there from running. Neither needs to know which peer the other
//! waits for, and a check costs the same with any number of ranks.
//!
//! A rank that yields its core increments the core's count of yields. So it knows afterwards
//! whether other ranks of the job have run there meanwhile, or only other processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

/// Number of cores with counts of their own: their counts fit in a page. Two cores whose numbers
/// have the same remainder share counts, so a rank on one of them may sleep too early.
const CORES: usize = 1000;
/// The core of a rank that is not counted on any.
const NOWHERE: usize = usize::MAX;

/// The counts of one core: ranks on it, and yields of it.
struct Core {
    /// The number of ranks that are counted on this core.
    ranks: AtomicU16,
    /// Number of times that a rank has yielded this core. It wraps.
    turns: AtomicU16,
}

/// For each core of a host, the counts of ranks on it and of yields of it.
#[repr(transparent)]
pub(crate) struct CoreCounts([Core; CORES]);

impl CoreCounts {
    /// Moves one rank's count from core `from` to core `to`.
    fn change(&self, from: usize, to: usize) {
        if from != NOWHERE {
            self.0[from % CORES].ranks.fetch_sub(1, Ordering::Relaxed);
        }
        if to != NOWHERE {
            self.0[to % CORES].ranks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// True if more than one rank is counted on `core`.
    fn is_shared(&self, core: usize) -> bool {
        self.0[core % CORES].ranks.load(Ordering::Relaxed) > 1
    }
}

/// A rank's access to the counts of cores, with the core on which it is counted.
pub(crate) struct CoreWatch {
    counts: *const CoreCounts,
    /// The core on which this rank is counted.
    core: AtomicUsize,
    /// The owner of the counts' mapping, which stays mapped as long as this value exists.
    _memory: Arc<dyn Send + Sync>,
}

/// A yield of a core by a rank: the core, and its count of yields just after.
pub(crate) struct Turn {
    core: usize,
    number: u16,
}

// SAFETY: the pointer leads to atomics, which stay as long as the watch.
unsafe impl Send for CoreWatch {}
// SAFETY: as for `Send`.
unsafe impl Sync for CoreWatch {}

impl CoreWatch {
    /// The entry of a rank that is not counted on any core yet.
    ///
    /// # Safety
    /// `memory` keeps the counts mapped.
    pub(crate) unsafe fn new(counts: *const CoreCounts, memory: Arc<dyn Send + Sync>) -> CoreWatch {
        CoreWatch {
            counts,
            core: NOWHERE.into(),
            _memory: memory,
        }
    }

    fn counts(&self) -> &CoreCounts {
        // SAFETY: `_memory` keeps the counts mapped.
        unsafe { &*self.counts }
    }

    /// Counts the rank on the calling thread's core. True if another rank is counted on that core
    /// as well.
    #[inline]
    pub(crate) fn core_is_shared(&self) -> bool {
        if let Some(core) = datatype::double::ask(|double| double.core()) {
            return self.moves_to(core);
        }
        // SAFETY: the function has no precondition.
        let core = unsafe { libc::sched_getcpu() };
        usize::try_from(core).is_ok_and(|core| self.moves_to(core))
    }

    /// Counts a yield of the rank's core, immediately before the yield.
    pub(crate) fn begin_turn(&self) -> Turn {
        self.core_is_shared();
        self.begin_turn_on(self.core.load(Ordering::Relaxed))
    }

    fn begin_turn_on(&self, core: usize) -> Turn {
        let turns = &self.counts().0[core % CORES].turns;
        Turn {
            core,
            number: turns.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
        }
    }

    /// True if another rank has yielded the core since `turn`, and has therefore run on it.
    pub(crate) fn others_had(&self, turn: &Turn) -> bool {
        let turns = &self.counts().0[turn.core % CORES].turns;
        turns.load(Ordering::Relaxed) != turn.number
    }

    #[inline]
    fn moves_to(&self, core: usize) -> bool {
        if self.core.load(Ordering::Relaxed) != core {
            let last = self.core.swap(core, Ordering::Relaxed);
            self.counts().change(last, core);
        }
        self.counts().is_shared(core)
    }
}

impl Drop for CoreWatch {
    fn drop(&mut self) {
        let last = *self.core.get_mut();
        self.counts().change(last, NOWHERE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> Arc<CoreCounts> {
        let core = || Core {
            ranks: 0.into(),
            turns: 0.into(),
        };
        Arc::new(CoreCounts(std::array::from_fn(|_| core())))
    }

    #[test]
    fn a_turn_of_another_rank_on_the_core_is_seen() {
        let counts = none();
        // SAFETY: the watches keep the counts.
        let [a, b] =
            [(); 2].map(|()| unsafe { CoreWatch::new(Arc::as_ptr(&counts), counts.clone()) });
        let turn = a.begin_turn_on(3);
        b.begin_turn_on(4);
        assert!(!a.others_had(&turn));
        b.begin_turn_on(3);
        assert!(a.others_had(&turn));
    }

    #[test]
    fn ranks_share_a_core_until_one_of_them_moves_or_ends() {
        let counts = none();
        // SAFETY: the watches keep the counts.
        let [a, b] =
            [(); 2].map(|()| unsafe { CoreWatch::new(Arc::as_ptr(&counts), counts.clone()) });
        assert!(!a.moves_to(0));
        assert!(!a.moves_to(0));
        assert!(b.moves_to(0));
        assert!(a.moves_to(0));
        assert!(!b.moves_to(7));
        assert!(!a.moves_to(0));
        assert!(b.moves_to(0));
        drop(b);
        assert!(!a.moves_to(0));
    }
}
