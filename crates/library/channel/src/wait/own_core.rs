//! The core that a rank runs on, and the ranks and tasks that it may share it with.

use super::clock::WallClock;
use super::yields::Yields;
use crate::core_counts::CoreWatch;

/// The core of this rank.
pub(super) struct OwnCore {
    /// The ranks on this host's cores; `None` where the rank does not yield to others.
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

    /// The rank yields its core to others.
    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Another rank was last on this core, too.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.watch.as_ref().is_some_and(CoreWatch::core_is_shared)
    }

    /// Yields are costly at this moment, and a sleep is possible.
    pub(super) fn sleeps_instead(&self) -> bool {
        let sleeps = self.watch.is_some() && !self.yields.are_cheap();
        if sleeps {
            self.yields.rested();
        }
        sleeps
    }

    /// Yields the core, and notes the price.
    pub(super) fn give_way(&self, clock: &WallClock) {
        let turn = self.watch.as_ref().map(|watch| (watch, watch.begin_turn()));
        let before = clock.now();
        std::thread::yield_now();
        let nanos = clock.now().saturating_sub(before);
        let among_ranks = turn.is_some_and(|(watch, turn)| watch.others_had(&turn));
        self.yields.took(nanos, among_ranks);
    }
}
