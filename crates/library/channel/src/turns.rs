//! A lock that a rank's calls share with its progress thread.
//!
//! The rank's calls do not overlap, so the lock has at most two users: one call and the progress
//! thread. The thread never waits for the lock: it takes it only while no call holds it. A call
//! that finds the thread inside waits until the thread releases the lock, which is then reserved
//! for the call, so a call waits for at most one critical section of the thread. Without contention
//! a call pays one compare-and-swap and one store.

use crate::sync::{AtomicU32, Ordering};

/// The value of the futex word while the lock is free.
pub(crate) const FREE: u32 = 2;
/// A call holds the lock. Values are odd while a call is in MPI.
const HELD: u32 = 3;
/// The value of the futex word while the progress thread holds the lock.
const THREAD: u32 = 4;
/// The progress thread holds the lock, and a call waits for it.
pub(crate) const AWAITED: u32 = 5;
/// The lock is free, and the progress thread must leave it to the call that has waited.
const RESERVED: u32 = 6;

/// The outcome of a call's attempt to take the lock of the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The call has taken the lock, which was free.
    Taken,
    /// The progress thread holds the lock, and will wake the calls that sleep while the futex word
    /// is [`AWAITED`].
    Wait,
    /// Another call holds the lock, although the program promised that calls do not overlap.
    Overlap,
}

/// Takes the lock for a call, unless the progress thread or another call holds it.
pub(crate) fn enter(word: &AtomicU32) -> Entry {
    loop {
        let seen = word.load(Ordering::Relaxed);
        let (next, entry) = match seen {
            FREE | RESERVED => (HELD, Entry::Taken),
            THREAD => (AWAITED, Entry::Wait),
            AWAITED => return Entry::Wait,
            _ => return Entry::Overlap,
        };
        let swapped = word.compare_exchange(seen, next, Ordering::Acquire, Ordering::Relaxed);
        if swapped.is_ok() {
            return entry;
        }
    }
}

/// Releases the lock of a call. False: no call holds it, but the progress thread.
pub(crate) fn leave(word: &AtomicU32) -> bool {
    let is_held = word.load(Ordering::Relaxed) == HELD;
    if is_held {
        // The thread writes to the word only while no call holds the lock.
        word.store(FREE, Ordering::Release);
    }
    is_held
}

/// Takes the lock for the progress thread. False: a call holds it or waits for it.
pub(crate) fn try_take(word: &AtomicU32) -> bool {
    word.load(Ordering::Relaxed) == FREE
        && word
            .compare_exchange(FREE, THREAD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
}

/// Releases the lock of the progress thread. True: the thread must wake the call that waits.
pub(crate) fn give_back(word: &AtomicU32) -> bool {
    let left = word.compare_exchange(THREAD, FREE, Ordering::Release, Ordering::Relaxed);
    if left.is_err() {
        word.store(RESERVED, Ordering::Release);
    }
    left.is_err()
}
