//! How a rank sleeps until somebody writes to it.
//!
//! The sleeper sets its word, fences, looks at its rings once more, and sleeps on the word. Whoever writes to it fences,
//! reads the word, and wakes it if it is set. The two fences are asymmetric: the writer's is free, the sleeper's pays
//! for both (see `sync`).

use crate::sync::{AtomicU32, Ordering, heavy_fence, light_fence};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

#[repr(C, align(64))]
pub struct Doorbell {
    word: AtomicU32,
}

impl Default for Doorbell {
    fn default() -> Self {
        Doorbell {
            word: AtomicU32::new(AWAKE),
        }
    }
}

impl Doorbell {
    /// The owner is about to sleep: after this it must look at everything that could have arrived, and then either
    /// [`wait`](Doorbell::wait) or [`disarm`](Doorbell::disarm). False: a wake-up can be missed, so sleep shortly.
    pub fn arm(&self) -> bool {
        self.word.store(ASLEEP, Ordering::SeqCst);
        heavy_fence()
    }

    pub fn disarm(&self) {
        self.word.store(AWAKE, Ordering::Relaxed);
    }

    /// Sleeps until rung, at most `nanos`.
    #[cfg(not(loom))]
    pub fn wait(&self, nanos: u64) {
        crate::sync::futex_wait(&self.word, ASLEEP, nanos);
        self.disarm();
    }

    /// Wakes all who sleep. A sleeper that gets up has disarmed the bell for others of its rank, who must arm it again.
    #[cfg(not(loom))]
    pub fn rouse(&self) {
        self.word.store(AWAKE, Ordering::SeqCst);
        crate::sync::futex_wake(&self.word);
    }

    /// To be called after writing something that the owner waits for.
    #[inline(always)]
    pub fn ring(&self) {
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

    /// Would a sleeper still be asleep? (What the futex checks.)
    #[cfg(loom)]
    pub fn is_armed(&self) -> bool {
        self.word.load(Ordering::SeqCst) == ASLEEP
    }
}
