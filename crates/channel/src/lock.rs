//! One lock per rank, left out where the program promised to call from one thread at a time.
//!
//! Without threads it is a mark in plain memory: it costs two moves, and it turns a forbidden second borrow (a callback
//! of the user that comes back in while a borrow is held) into a clear message instead of undefined behaviour.
//! With `MPI_THREAD_MULTIPLE` it is a mutex on a futex.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::sync::{futex_wait, futex_wake};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

pub struct RankLock<T> {
    state: AtomicU32,
    /// Written once, before a second thread can exist for us.
    threads: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: with `threads` set, the futex mutex gives exclusive access. Without it the caller has promised (MPI 5.0
// §11.6.1: SINGLE, FUNNELED, SERIALIZED) that calls do not overlap, and hands over between threads by its own means.
unsafe impl<T: Send> Sync for RankLock<T> {}
// SAFETY: the lock owns its value.
unsafe impl<T: Send> Send for RankLock<T> {}

impl<T> RankLock<T> {
    pub fn new(value: T) -> Self {
        RankLock {
            state: AtomicU32::new(FREE),
            threads: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// From now on several threads may call at once. To be called while only one does.
    pub fn allow_threads(&self) {
        self.threads.store(true, Ordering::SeqCst);
    }

    #[inline]
    pub fn threads(&self) -> bool {
        self.threads.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, T> {
        if self.threads() {
            if self
                .state
                .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
            {
                self.wait_for_it();
            }
        } else {
            if self.state.load(Ordering::Relaxed) != FREE {
                held_twice();
            }
            self.state.store(HELD, Ordering::Relaxed);
        }
        Guard { lock: self }
    }

    #[cold]
    fn wait_for_it(&self) {
        for _ in 0..100 {
            if self.state.load(Ordering::Relaxed) == FREE
                && self
                    .state
                    .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return;
            }
            std::hint::spin_loop();
        }
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            futex_wait(&self.state, CONTENDED, 1_000_000_000);
        }
    }
}

#[cold]
fn held_twice() -> ! {
    panic!(
        "the library was entered by two threads at once, but MPI_THREAD_MULTIPLE was not granted: \
         ask for it with MPI_Init_thread, or call MPI from one thread at a time"
    );
}

pub struct Guard<'a, T> {
    lock: &'a RankLock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the proof of exclusive access.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.lock.threads() {
            if self.lock.state.swap(FREE, Ordering::Release) == CONTENDED {
                futex_wake(&self.lock.state);
            }
        } else {
            self.lock.state.store(FREE, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_exclude_each_other() {
        let lock = RankLock::new(0u64);
        lock.allow_threads();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let mut guard = lock.lock();
                        let before = *guard;
                        *guard = std::hint::black_box(before) + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 80_000);
    }

    #[test]
    #[should_panic(expected = "MPI_THREAD_MULTIPLE")]
    fn a_second_borrow_is_caught_without_threads() {
        let lock = RankLock::new(());
        let _held = lock.lock();
        let _again = lock.lock();
    }
}
