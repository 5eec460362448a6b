//! The lock of a rank, without atomic read-modify-write operations where calls do not overlap.
//!
//! Without threads it is a mark in plain memory: it costs a load and a store, and it turns a
//! forbidden second borrow (a callback of the program that calls MPI while a borrow is held) into a
//! clear message instead of undefined behaviour. With a progress thread of the library, calls and
//! that thread use the lock alternately (see `turns`). With threads that call concurrently it is a
//! mutex on a futex, and the progress thread is one of those threads.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sync::{futex_wait, futex_wake};
use crate::turns::{self, Entry};

// The futex word is odd while the lock is held, whatever its mode; the launcher may read it.

// Values of the futex word while calls do not overlap.
const FREE: u32 = 0;
const HELD: u32 = 1;

// The values with a progress thread, 2 to 6, are those of `turns`.

// Values while several threads may call concurrently.
const FREE_AMONG_THREADS: u32 = 8;
const HELD_AMONG_THREADS: u32 = 9;
const CONTENDED: u32 = 11;

/// Longest sleep for the lock, in nanoseconds, before the word is checked again.
const LONG: u64 = 1_000_000_000;

/// The lock that protects the state of a rank.
pub struct RankLock<T> {
    word: AtomicU32,
    /// Text for the user after a second borrow: how to avoid it.
    advice: &'static str,
    value: UnsafeCell<T>,
}

// SAFETY: with threads, the futex mutex gives exclusive access. Otherwise the program has promised
// that calls do not overlap, and orders calls of different threads itself.
unsafe impl<T: Send> Sync for RankLock<T> {}
// SAFETY: the lock owns its value.
unsafe impl<T: Send> Send for RankLock<T> {}

impl<T> RankLock<T> {
    /// The lock of a rank whose calls do not overlap. `advice` is shown to the user if they overlap
    /// nevertheless.
    pub fn new(value: T, advice: &'static str) -> Self {
        RankLock {
            word: AtomicU32::new(FREE),
            advice,
            value: UnsafeCell::new(value),
        }
    }

    /// Allows several threads to call concurrently. Call this while only one thread calls, and
    /// holds no guard.
    pub fn allow_threads(&self) {
        self.word.store(FREE_AMONG_THREADS, Ordering::SeqCst);
    }

    /// True if several threads may call the library at once.
    #[inline]
    pub fn threads(&self) -> bool {
        self.word.load(Ordering::Relaxed) >= FREE_AMONG_THREADS
    }

    /// Allows a progress thread to take the lock between calls. Call this while no other thread
    /// calls, and without a guard.
    pub fn admit_progress_thread(&self) {
        if !self.threads() {
            self.word.store(turns::FREE, Ordering::SeqCst);
        }
    }

    /// Ends the admission of a progress thread, which has ended. Call this while no other thread
    /// calls, and without a guard.
    pub fn dismiss_progress_thread(&self) {
        if !self.threads() {
            self.word.store(FREE, Ordering::SeqCst);
        }
    }

    /// True if a progress thread may take the lock between two calls, and calls do not overlap.
    #[inline]
    pub fn has_progress_thread(&self) -> bool {
        (turns::FREE..FREE_AMONG_THREADS).contains(&self.word.load(Ordering::Relaxed))
    }

    /// Takes the lock for the progress thread. `None`: a call has it or waits for it.
    pub fn try_lock_for_progress(&self) -> Option<Guard<'_, T>> {
        let is_taken = match self.threads() {
            false => turns::try_take(&self.word),
            true => self.try_among_threads(),
        };
        is_taken.then(|| Guard { lock: self })
    }

    /// The address of the lock's futex word, which is odd while the lock is held.
    pub fn word_address(&self) -> usize {
        (&raw const self.word).addr()
    }

    /// Takes the lock for a call.
    ///
    /// # Panics
    /// If the lock is held already and calls must not overlap.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, T> {
        if self.word.load(Ordering::Relaxed) == FREE {
            self.word.store(HELD, Ordering::Relaxed);
        } else {
            self.lock_among_threads();
        }
        Guard { lock: self }
    }

    #[inline(never)]
    fn lock_among_threads(&self) {
        if !self.threads() {
            return self.lock_in_turns();
        }
        for _ in 0..100 {
            if self.try_among_threads() {
                return;
            }
            std::hint::spin_loop();
        }
        while self.word.swap(CONTENDED, Ordering::Acquire) != FREE_AMONG_THREADS {
            futex_wait(&self.word, CONTENDED, LONG);
        }
    }

    #[inline(always)]
    fn try_among_threads(&self) -> bool {
        self.word.load(Ordering::Relaxed) == FREE_AMONG_THREADS
            && self
                .word
                .compare_exchange(
                    FREE_AMONG_THREADS,
                    HELD_AMONG_THREADS,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    fn lock_in_turns(&self) {
        if !self.has_progress_thread() {
            held_twice(self.advice);
        }
        let mut looks = 0;
        loop {
            match turns::enter(&self.word) {
                Entry::Taken => return,
                Entry::Overlap => held_twice(self.advice),
                Entry::Wait if looks < 100 => std::hint::spin_loop(),
                Entry::Wait => futex_wait(&self.word, turns::AWAITED, LONG),
            }
            looks += 1;
        }
    }

    #[inline(always)]
    fn unlock(&self) {
        if self.word.load(Ordering::Relaxed) == HELD {
            self.word.store(FREE, Ordering::Relaxed);
        } else {
            self.unlock_among_threads();
        }
    }

    #[inline(never)]
    fn unlock_among_threads(&self) {
        if !self.threads() {
            return self.unlock_in_turns();
        }
        if self.word.swap(FREE_AMONG_THREADS, Ordering::Release) == CONTENDED {
            futex_wake(&self.word);
        }
    }

    fn unlock_in_turns(&self) {
        if !turns::leave(&self.word) && turns::give_back(&self.word) {
            futex_wake(&self.word);
        }
    }
}

/// The payload of a panic that the program has caused, not the library. Its text is for the user.
#[derive(Debug)]
pub struct Misuse(pub String);

#[cold]
fn held_twice(advice: &str) -> ! {
    std::panic::panic_any(Misuse(format!(
        "the program called MPI while another call was running: from a signal handler, which must not call MPI, or from \
         a second thread ({advice})"
    )));
}

/// Access to the state of a rank until the guard is dropped.
pub struct Guard<'a, T> {
    lock: &'a RankLock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard proves exclusive access.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard proves exclusive access, and is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_exclude_each_other() {
        let lock = RankLock::new(0u64, "");
        lock.allow_threads();
        let each = if cfg!(miri) { 50 } else { 20_000 };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..each {
                        let mut guard = lock.lock();
                        let before = *guard;
                        *guard = std::hint::black_box(before) + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 4 * each);
    }

    #[test]
    fn calls_and_the_progress_thread_exclude_each_other() {
        let lock = RankLock::new(0u64, "");
        lock.admit_progress_thread();
        assert!(lock.has_progress_thread() && !lock.threads());
        let each = if cfg!(miri) { 50 } else { 20_000 };
        let add = |mut guard: Guard<'_, u64>| {
            let before = *guard;
            *guard = std::hint::black_box(before) + 1;
        };
        let taken = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut turns = 0;
                while turns < each {
                    match lock.try_lock_for_progress() {
                        Some(guard) => {
                            add(guard);
                            turns += 1;
                        }
                        None => std::thread::yield_now(),
                    }
                }
                turns
            });
            for _ in 0..each {
                add(lock.lock());
            }
            thread.join().unwrap()
        });
        lock.dismiss_progress_thread();
        assert!(!lock.has_progress_thread());
        assert_eq!((*lock.lock(), taken), (2 * each, each));
    }

    #[test]
    fn the_progress_thread_leaves_a_held_lock_alone_and_a_second_borrow_is_caught() {
        let lock = RankLock::new((), "call from one thread");
        lock.admit_progress_thread();
        let held = lock.lock();
        assert!(lock.try_lock_for_progress().is_none());
        let again = std::panic::AssertUnwindSafe(|| drop(lock.lock()));
        assert!(std::panic::catch_unwind(again).is_err());
        drop(held);
        assert!(lock.try_lock_for_progress().is_some());
        lock.allow_threads();
        assert!(lock.try_lock_for_progress().is_some() && !lock.has_progress_thread());
    }

    #[test]
    fn a_second_borrow_is_caught_without_threads() {
        let lock = RankLock::new((), "call from one thread");
        let _held = lock.lock();
        let again = std::panic::AssertUnwindSafe(|| drop(lock.lock()));
        let payload = std::panic::catch_unwind(again).unwrap_err();
        let Misuse(text) = payload.downcast_ref().unwrap();
        assert!(text.contains("(call from one thread)"), "{text}");
    }
}
