//! The doorbell of a rank: the futex on which it sleeps and which its peers ring.
//!
//! The sleeper sets the futex word, fences, polls once more, and sleeps on the word. A writer
//! fences after its write, reads the word, and wakes the sleeper if the word is set. The two fences
//! are asymmetric: the writer's is free, the sleeper's pays for both (see `sync`).

use std::sync::Arc;

use crate::sync::{AtomicU32, Ordering, heavy_fence, light_fence};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The doorbell of one rank.
#[repr(C, align(64))]
pub(crate) struct Doorbell {
    word: AtomicU32,
}

/// A doorbell in memory that other ranks map, too. It stays mapped as long as this value exists.
#[derive(Clone)]
pub(crate) struct Bell {
    doorbell: *const Doorbell,
    _memory: Arc<dyn Send + Sync>,
}

// SAFETY: a doorbell is one atomic, and its memory stays mapped as long as the value exists.
unsafe impl Send for Bell {}
// SAFETY: as for `Send`.
unsafe impl Sync for Bell {}

impl Bell {
    /// A handle of a doorbell.
    ///
    /// # Safety
    /// `memory` keeps the doorbell mapped.
    pub(crate) unsafe fn new(doorbell: *const Doorbell, memory: Arc<dyn Send + Sync>) -> Bell {
        Bell {
            doorbell,
            _memory: memory,
        }
    }
}

impl std::ops::Deref for Bell {
    type Target = Doorbell;
    #[inline(always)]
    fn deref(&self) -> &Doorbell {
        // SAFETY: `_memory` keeps the doorbell mapped.
        unsafe { &*self.doorbell }
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        Doorbell {
            word: AtomicU32::new(AWAKE),
        }
    }
}

impl Doorbell {
    /// Announces that the owner is about to sleep. The owner must then poll everything that could
    /// have arrived, and call [`wait`](Doorbell::wait) or [`disarm`](Doorbell::disarm). With
    /// `fence` this interrupts all cores where the kernel offers that, and no wake-up is missed.
    /// False: a wake-up can be missed, so the sleep must be short.
    pub(crate) fn arm(&self, fence: bool) -> bool {
        self.word.store(ASLEEP, Ordering::SeqCst);
        fence && heavy_fence()
    }

    /// Withdraws what `arm` has announced: this rank does not sleep.
    pub(crate) fn disarm(&self) {
        self.word.store(AWAKE, Ordering::Relaxed);
    }

    /// Sleeps until the doorbell is rung, for at most `nanos` nanoseconds.
    #[cfg(not(loom))]
    pub(crate) fn wait(&self, nanos: u64) {
        crate::sync::futex_wait(&self.word, ASLEEP, nanos);
        self.disarm();
    }

    /// Wakes all sleeping threads of the rank. The first that wakes has disarmed the doorbell for
    /// all of them, which must arm it again.
    #[cfg(not(loom))]
    pub(crate) fn rouse(&self) {
        self.word.store(AWAKE, Ordering::SeqCst);
        crate::sync::futex_wake(&self.word);
    }

    /// Wakes the owner if it sleeps. Call this after each write that the owner may wait for.
    #[inline(always)]
    pub(crate) fn ring(&self) {
        light_fence();
        if self.word.load(Ordering::Relaxed) != AWAKE {
            self.wake();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        if self.word.swap(AWAKE, Ordering::SeqCst) == ASLEEP {
            #[cfg(not(loom))]
            crate::sync::futex_wake(&self.word);
        }
    }

    /// True if a sleeper would still be asleep: the condition that the futex checks.
    #[cfg(loom)]
    pub(crate) fn is_armed(&self) -> bool {
        self.word.load(Ordering::SeqCst) == ASLEEP
    }
}
