//! The collective buffers of this host as one rank knows them, and the group that uses each.
//!
//! The members of a group agree on a buffer: each offers the buffers that are free for it, and all
//! take the lowest-numbered one that every member offers. The group begins there with the highest
//! `first_round` of the offers.
//!
//! Invariant: a buffer serves one group at a time, and the next group begins with a round that no
//! member has used before.

use std::sync::Arc;

use super::collective_area::Member;
use super::collective_buffer::{BUFFERS, BufferOffer};
use crate::sync::Ordering;

/// The collective buffers of a host as one rank knows them.
#[derive(Default)]
pub(super) struct BufferPool {
    pub(super) taken: Vec<Option<Taken>>,
    /// The highest round that this rank has ended in any of its buffers, updated at each offer.
    pub(super) highest: u64,
    /// True while the free buffers are offered to a group: they may not be offered to another
    /// group.
    pub(super) offered: bool,
}

/// A buffer that a group uses, or has given up while members may still read it.
pub(super) struct Taken {
    pub(super) members: Arc<[Member]>,
    pub(super) me: usize,
    /// The owner of the mapping of the members' areas and doorbells.
    pub(super) memory: Arc<dyn Send + Sync>,
}

impl Taken {
    /// The last round that a member has ended in this buffer.
    fn done(&self, member: usize) -> u64 {
        self.members[member].done().load(Ordering::Acquire)
    }

    /// True if the group has given the buffer up, and every member has ended the last round that
    /// this rank has ended.
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
