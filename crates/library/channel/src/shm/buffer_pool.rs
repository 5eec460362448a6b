//! The collective buffers of a rank, and which group uses which.
//!
//! The members of a group agree on a buffer: each offers those that are free, and all take the
//! first that is free for all, from the highest first round on.
//!
//! Invariant: a buffer serves one group at a time, and the next group begins with a
//! round that no member has taken before.

use std::sync::Arc;

use super::collective_buffer::{BUFFERS, BufferOffer, Member};
use crate::sync::Ordering;

/// The collective buffers of a rank.
#[derive(Default)]
pub(super) struct BufferPool {
    pub(super) taken: Vec<Option<Taken>>,
    /// The highest round taken in buffers that are free again.
    pub(super) highest: u64,
    /// The free buffers are offered to a group: they may not be offered to another meanwhile.
    pub(super) offered: bool,
}

/// A buffer in use, or one that members may still read.
pub(super) struct Taken {
    pub(super) members: Arc<[Member]>,
    pub(super) me: usize,
    /// Keeps the areas and the doorbells of the members.
    pub(super) memory: Arc<dyn Send + Sync>,
}

impl Taken {
    /// The last round that a member has ended.
    fn done(&self, member: usize) -> u64 {
        self.members[member].done().load(Ordering::Acquire)
    }

    /// The group has given the buffer up, and every member has ended the last round that this rank
    /// took.
    fn is_free(&self) -> bool {
        let last = self.done(self.me);
        Arc::strong_count(&self.members) == 1
            && (0..self.members.len()).all(|member| self.done(member) >= last)
    }
}

impl BufferPool {
    pub(super) fn offer(&mut self) -> BufferOffer {
        if self.offered {
            return BufferOffer::default();
        }
        let mut free = u64::MAX;
        self.taken.resize_with(BUFFERS, || None);
        for (index, entry) in self.taken.iter_mut().enumerate() {
            let Some(taken) = entry else { continue };
            self.highest = self.highest.max(taken.done(taken.me));
            if taken.is_free() {
                *entry = None;
            } else {
                free &= !(1 << index);
            }
        }
        self.offered = free != 0;
        BufferOffer {
            free,
            first_round: self.highest + 1,
        }
    }
}
