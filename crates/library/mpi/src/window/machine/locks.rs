//! The locks that origins hold on the window of this rank (MPI 5.0 §12.5.3). A pure state machine:
//! its caller reports grants.
//!
//! Invariant: requests are granted in their order, so a stream of shared locks does not starve
//! others.

use std::collections::VecDeque;

/// The kind of a window lock: shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockKind {
    /// `MPI_LOCK_SHARED`.
    Shared,
    /// `MPI_LOCK_EXCLUSIVE`.
    Exclusive,
}

/// The holders of a window's lock, and the queue of origins that wait for it.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    holders: Vec<u32>,
    is_exclusive: bool,
    queue: VecDeque<(u32, LockKind)>,
}

impl Locks {
    /// Requests the lock for an origin. It is granted once [`holds`](Locks::holds) returns true.
    pub(crate) fn request(&mut self, origin: u32, kind: LockKind) {
        self.queue.push_back((origin, kind));
        self.admit();
    }

    /// True if the origin holds the lock or waits for it.
    pub(crate) fn knows(&self, origin: u32) -> bool {
        self.holds(origin) || self.queue.iter().any(|(other, _)| *other == origin)
    }

    /// True if the origin holds the window's lock.
    pub(crate) fn holds(&self, origin: u32) -> bool {
        self.holders.contains(&origin)
    }

    /// Releases the lock of an origin. Returns false if the origin held none.
    pub(crate) fn release(&mut self, origin: u32) -> bool {
        let Some(at) = self.holders.iter().position(|other| *other == origin) else {
            return false;
        };
        self.holders.swap_remove(at);
        self.admit();
        true
    }

    /// Grants the lock to the first origins in the queue that can have it now.
    fn admit(&mut self) {
        while let Some(&(origin, kind)) = self.queue.front() {
            let fits = match kind {
                LockKind::Exclusive => self.holders.is_empty(),
                LockKind::Shared => self.holders.is_empty() || !self.is_exclusive,
            };
            if !fits {
                return;
            }
            self.queue.pop_front();
            self.holders.push(origin);
            self.is_exclusive = kind == LockKind::Exclusive;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LockKind::*;
    use super::*;

    #[test]
    fn a_lock_is_granted_in_the_order_of_requests() {
        let mut locks = Locks::default();
        locks.request(0, Shared);
        locks.request(1, Shared);
        locks.request(2, Exclusive);
        locks.request(3, Shared);
        locks.request(4, Shared);
        let holders = |locks: &Locks| (0..5).filter(|&at| locks.holds(at)).collect::<Vec<_>>();
        assert_eq!(holders(&locks), [0, 1]);
        assert!(locks.knows(3) && !locks.knows(5) && !locks.release(3));
        assert!(locks.release(1));
        assert_eq!(holders(&locks), [0]);
        assert!(locks.release(0));
        assert_eq!(holders(&locks), [2]);
        assert!(locks.release(2));
        assert_eq!(holders(&locks), [3, 4]);
        locks.request(0, Exclusive);
        locks.request(1, Exclusive);
        assert!(locks.release(3) && locks.release(4));
        assert_eq!(holders(&locks), [0]);
        assert!(locks.release(0));
        assert_eq!(holders(&locks), [1]);
    }
}
