//! The lock of a stripe of a window, in memory that several processes map. Zero is a free lock.
//!
//! Invariants:
//! - to give the lock up costs no atomic operation: whoever is about to sleep pays for both sides,
//!   by a heavy fence;
//! - the word of a held lock names its holder, and no sleep is endless, so whoever waits can notice
//!   that the holder has ended.

use crate::sync::{AtomicU32, Ordering, heavy_fence, light_fence};
#[cfg(not(loom))]
use crate::sync::{futex_wait, futex_wake};

/// Tries to take the lock before a sleep.
#[cfg(not(loom))]
const SPINS: u32 = 200;
/// The longest sleep before a check that the holder still runs, in nanoseconds.
const LONG: u64 = 500_000_000;
/// The longest sleep where a wake-up can be missed, in nanoseconds.
const SHORT: u64 = 100_000;

/// The word of a free lock.
const FREE: u32 = 0;

/// The lock of a stripe.
#[repr(C, align(64))]
pub(crate) struct StripeLock {
    /// The number of the holder.
    word: AtomicU32,
    /// Number of threads that may sleep for it.
    waiting: AtomicU32,
}

impl StripeLock {
    /// Takes the lock for `me`, a number other than 0. The error is a holder that `has_ended`.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn take(&self, me: u32, has_ended: impl Fn(u32) -> bool) -> Result<(), u32> {
        match self.try_take(me) {
            Ok(_) => Ok(()),
            Err(_) => self.wait(me, &has_ended),
        }
    }

    /// Takes the lock, or finds its holder.
    #[inline]
    pub(crate) fn try_take(&self, me: u32) -> Result<u32, u32> {
        let word = &self.word;
        word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Gives the lock up, which the caller holds.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn give(&self) {
        if self.set_free() {
            self.wake();
        }
    }

    /// Gives the lock up. True: somebody may sleep for it.
    #[inline]
    pub(crate) fn set_free(&self) -> bool {
        self.word.store(FREE, Ordering::Release);
        light_fence();
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// A sleep for the lock may follow: a holder that gives it up from here on knows. The result is
    /// the longest sleep in nanoseconds.
    pub(crate) fn begin_wait(&self) -> u64 {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if heavy_fence() { LONG } else { SHORT }
    }

    #[cfg(not(loom))]
    #[cold]
    #[inline(never)]
    fn wake(&self) {
        futex_wake(&self.word);
    }

    #[cfg(not(loom))]
    #[cold]
    #[inline(never)]
    fn wait(&self, me: u32, has_ended: &dyn Fn(u32) -> bool) -> Result<(), u32> {
        for _ in 0..SPINS {
            std::hint::spin_loop();
            if self.word.load(Ordering::Relaxed) == FREE && self.try_take(me).is_ok() {
                return Ok(());
            }
        }
        let longest = self.begin_wait();
        let outcome = loop {
            let Err(holder) = self.try_take(me) else {
                break Ok(());
            };
            futex_wait(&self.word, holder, longest);
            if self.word.load(Ordering::Relaxed) == holder && has_ended(holder) {
                break Err(holder);
            }
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        outcome
    }
}

#[cfg(loom)]
impl Default for StripeLock {
    fn default() -> Self {
        StripeLock {
            word: AtomicU32::new(FREE),
            waiting: AtomicU32::new(0),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_holder_is_noticed() {
        let lock = StripeLock {
            word: AtomicU32::new(FREE),
            waiting: AtomicU32::new(0),
        };
        let never = |_| false;
        lock.take(7, never).unwrap();
        assert_eq!(lock.take(8, |holder| holder == 7), Err(7));
        assert!(!lock.set_free());
        lock.take(8, never).unwrap();
        assert_eq!(lock.try_take(7), Err(8));
        // Somebody waits, and gets the lock from its holder.
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| lock.take(7, never));
            while lock.waiting.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            lock.give();
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
        assert_eq!(lock.try_take(8), Err(7));
    }
}
