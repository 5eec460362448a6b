//! The core on which a rank runs, and the ranks and processes with which it may share it.

use datatype::double::{Primitive, spend};

use super::clock::WallClock;
use super::yields::Yields;
use crate::core_counts::CoreWatch;

/// The core on which a rank runs, as far as the rank knows it.
pub(super) struct OwnCore {
    /// This rank's entry in the counts of this host's cores; `None` where the rank does not yield
    /// to others.
    watch: Option<CoreWatch>,
    yields: Yields,
}

impl OwnCore {
    pub(super) fn new(watch: Option<CoreWatch>) -> OwnCore {
        OwnCore {
            watch,
            yields: Yields::new(),
        }
    }

    /// True if the rank yields its core to others.
    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// True if another rank ran on this core when it was last counted.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.watch.as_ref().is_some_and(CoreWatch::core_is_shared)
    }

    /// True if yields are costly at present, and the rank can sleep instead. Counts the sleep.
    pub(super) fn sleeps_instead(&self) -> bool {
        let sleeps = self.watch.is_some() && !self.yields.are_cheap();
        if sleeps {
            self.yields.rested();
        }
        sleeps
    }

    /// Yields the core to other processes, and records how long that took.
    pub(super) fn give_way(&self, clock: &WallClock) {
        let turn = self.watch.as_ref().map(|watch| (watch, watch.begin_turn()));
        let before = clock.now();
        spend(Primitive::Yield);
        std::thread::yield_now();
        let nanos = clock.now().saturating_sub(before);
        let among_ranks = turn.is_some_and(|(watch, turn)| watch.others_had(&turn));
        self.yields.took(nanos, among_ranks);
    }
}
