//! The ranks on each core of a host, in shared memory: their number, and the turns that they take.
//!
//! A rank is counted for the core that it ran on when it last waited or woke. A rank that waits on
//! a core with another one keeps that other from answering. Neither needs to know which peer the
//! other waits for, and a check costs the same with any number of ranks.
//!
//! A rank that yields its core counts a turn of that core. So it knows afterwards whether other
//! ranks of the job had the core meanwhile, or only tasks of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

/// Number of cores with counts of their own: they fit a page. Two cores with the same remainder
/// share counts, so a rank on one of them may sleep too early.
const CORES: usize = 1000;
/// The core of a rank that is not counted yet.
const NOWHERE: usize = usize::MAX;

/// The counts of one core.
struct Core {
    /// Ranks.
    ranks: AtomicU16,
    /// Number of times that a rank yielded this core. It wraps.
    turns: AtomicU16,
}

/// The counts of each core.
#[repr(transparent)]
pub(crate) struct CoreCounts([Core; CORES]);

impl CoreCounts {
    /// Counts a rank of core `from` for core `to`.
    fn change(&self, from: usize, to: usize) {
        if from != NOWHERE {
            self.0[from % CORES].ranks.fetch_sub(1, Ordering::Relaxed);
        }
        if to != NOWHERE {
            self.0[to % CORES].ranks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// More than one rank is counted for `core`.
    fn is_shared(&self, core: usize) -> bool {
        self.0[core % CORES].ranks.load(Ordering::Relaxed) > 1
    }
}

/// The place of one rank among the counts.
pub(crate) struct CoreWatch {
    counts: *const CoreCounts,
    /// The core that the rank is counted for.
    core: AtomicUsize,
    /// Keeps the counts.
    _memory: Arc<dyn Send + Sync>,
}

/// A turn of a core that a rank gave away.
pub(crate) struct Turn {
    core: usize,
    number: u16,
}

// SAFETY: the pointer leads to atomics, which stay as long as the watch.
unsafe impl Send for CoreWatch {}
// SAFETY: as for `Send`.
unsafe impl Sync for CoreWatch {}

impl CoreWatch {
    /// A rank that is not counted yet.
    ///
    /// # Safety
    /// `memory` keeps the counts.
    pub(crate) unsafe fn new(counts: *const CoreCounts, memory: Arc<dyn Send + Sync>) -> CoreWatch {
        CoreWatch {
            counts,
            core: NOWHERE.into(),
            _memory: memory,
        }
    }

    fn counts(&self) -> &CoreCounts {
        // SAFETY: the memory of the counts is kept.
        unsafe { &*self.counts }
    }

    /// Counts the rank for the calling thread's core. True: another rank was last there, too.
    #[inline]
    pub(crate) fn core_is_shared(&self) -> bool {
        // SAFETY: the function has no precondition.
        let core = unsafe { libc::sched_getcpu() };
        usize::try_from(core).is_ok_and(|core| self.moves_to(core))
    }

    /// Counts a turn of the rank's core, which it is about to give away.
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

    /// Another rank has had a turn on that core since.
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
