//! The lock of a stripe of a window, in memory that several processes map. Zero is a free lock.
//!
//! Invariants:
//! - to release the lock costs no atomic read-modify-write: a thread that is about to sleep pays
//!   for both sides, by a heavy fence;
//! - the futex word of a held lock names its holder, and every sleep is limited, so a waiter
//!   notices that the holder has ended.

use crate::sync::{AtomicU32, Ordering, heavy_fence, light_fence};
#[cfg(not(loom))]
use crate::sync::{futex_wait, futex_wake};

/// Number of attempts to take the lock before a sleep.
#[cfg(not(loom))]
const SPINS: u32 = 200;
/// The longest sleep before a check that the holder still runs, in nanoseconds.
const LONG: u64 = 500_000_000;
/// The longest sleep where a wake-up can be missed, in nanoseconds.
const SHORT: u64 = 100_000;

/// The futex word of a free lock.
const FREE: u32 = 0;

/// The lock of one stripe of a window's memory, for accumulates that change the stripe.
#[repr(C, align(64))]
pub(crate) struct StripeLock {
    /// The number of the thread that holds the lock, or [`FREE`].
    word: AtomicU32,
    /// The number of threads that may sleep until the lock is free.
    waiting: AtomicU32,
}

impl StripeLock {
    /// Takes the lock for `me`, a number other than 0. The error is the number of a holder for
    /// which `has_ended` is true.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn take(&self, me: u32, has_ended: impl Fn(u32) -> bool) -> Result<(), u32> {
        match self.try_take(me) {
            Ok(_) => Ok(()),
            Err(_) => self.wait(me, &has_ended),
        }
    }

    /// Takes the lock if it is free. The error is the number of its holder.
    #[inline]
    pub(crate) fn try_take(&self, me: u32) -> Result<u32, u32> {
        let word = &self.word;
        word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Releases the lock, which the caller holds, and wakes the threads that sleep for it.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn give(&self) {
        if self.set_free() {
            self.wake();
        }
    }

    /// Releases the lock. True: a thread may sleep for it and must be woken.
    #[inline]
    pub(crate) fn set_free(&self) -> bool {
        self.word.store(FREE, Ordering::Release);
        light_fence();
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Announces that the caller may sleep for the lock: from here on a holder that releases it
    /// wakes the caller. Returns the longest permitted sleep in nanoseconds.
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
        // Another thread waits, and gets the lock when the holder releases it.
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
