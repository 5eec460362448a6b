//! Turns at a lock that a rank's calls share with its progress thread.
//!
//! The rank's calls do not overlap, so at most one of them and the progress thread meet here. The
//! thread never waits for the lock: it takes it only while no call holds it. A call that meets the
//! thread waits until it lets go; the lock is then reserved for the call, so a call waits for at
//! most one turn of the thread. A call that meets nobody pays one compare-and-swap and one store.

use crate::sync::{AtomicU32, Ordering};

/// Nobody holds the lock.
pub(crate) const FREE: u32 = 2;
/// A call holds it. Words are odd while a call is in MPI.
const HELD: u32 = 3;
/// The progress thread holds it.
const THREAD: u32 = 4;
/// The progress thread holds it, and a call waits.
pub(crate) const AWAITED: u32 = 5;
/// Nobody holds it, and the progress thread leaves it to the call that has waited.
const RESERVED: u32 = 6;

/// The outcome of an attempt of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The call holds the lock.
    Taken,
    /// The progress thread holds it, and will wake those who sleep while the word is [`AWAITED`].
    Wait,
    /// Another call holds it, against the program's promise.
    Overlap,
}

/// A call takes the lock, if the progress thread has not.
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

/// A call gives the lock back. False: the progress thread holds it, and no call.
pub(crate) fn leave(word: &AtomicU32) -> bool {
    let is_held = word.load(Ordering::Relaxed) == HELD;
    if is_held {
        // The thread writes to the word only while no call holds the lock.
        word.store(FREE, Ordering::Release);
    }
    is_held
}

/// The progress thread takes the lock, if nobody holds it or waits for it.
pub(crate) fn try_take(word: &AtomicU32) -> bool {
    word.load(Ordering::Relaxed) == FREE
        && word
            .compare_exchange(FREE, THREAD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
}

/// The progress thread gives the lock back. True: it must wake the call that waits.
pub(crate) fn give_back(word: &AtomicU32) -> bool {
    let left = word.compare_exchange(THREAD, FREE, Ordering::Release, Ordering::Relaxed);
    if left.is_err() {
        word.store(RESERVED, Ordering::Release);
    }
    left.is_err()
}
