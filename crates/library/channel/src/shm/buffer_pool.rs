//! The collective buffers of a rank, and which group uses which.
//!
//! The members of a group agree on a buffer: each offers those that are free, and all take the
//! first that is free for all, from the highest first round on.
//!
//! Invariant: a buffer serves one group at a time, and the next group begins with a
//! round that no member has taken before.

use std::sync::Arc;

use super::Shm;
use super::collective_buffer::{AREA, BUFFERS, CollectiveBuffer, Member};
use crate::Result;
use crate::sync::Ordering;

/// The collective buffers that a rank can use with a group. The empty offer: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferOffer {
    /// Bit `n`: buffer `n` is free.
    pub free: u64,
    /// The first round that is new in all buffers.
    pub first_round: u64,
}

/// The collective buffers of a rank.
#[derive(Default)]
pub(super) struct BufferPool {
    taken: Vec<Option<Taken>>,
    /// The highest round taken in buffers that are free again.
    highest: u64,
    /// The free buffers are offered to a group: they may not be offered to another meanwhile.
    offered: bool,
}

/// A buffer in use, or one that members may still read.
struct Taken {
    members: Arc<[Member]>,
    me: usize,
    /// Keeps the areas and the doorbells of the members.
    _memory: Arc<dyn Send + Sync>,
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
    fn offer(&mut self) -> BufferOffer {
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

impl Shm {
    /// The members of a group, given as world ranks, in buffer `index`; and this rank's number
    /// among them.
    fn members(&self, index: usize, group: impl Iterator<Item = usize>) -> Result<Taken> {
        let segment = &self.segment;
        let mapping = Arc::new(segment.collective_buffer(index)?);
        let boards = segment.board_mapping();
        let places: Vec<usize> = group
            .map(|rank| self.local.of(rank).expect("a member on this host"))
            .collect();
        let me = places.iter().position(|&place| place == self.place);
        let member = |&place: &usize| {
            // SAFETY: the mapping holds an area for each place of the segment, the mapping of the
            // boards the doorbell; both are kept beside the members.
            unsafe {
                let area = mapping.base().add(place * AREA);
                Member::new(area, &segment.board(place).doorbell)
            }
        };
        Ok(Taken {
            members: places.iter().map(member).collect(),
            me: me.expect("this rank is a member"),
            _memory: Arc::new((mapping, boards)),
        })
    }

    /// Offers the free buffers. The offer is empty if an earlier one has not ended.
    pub(crate) fn offer_buffers(&mut self) -> BufferOffer {
        self.buffers.offer()
    }

    /// Ends the offer, whatever the members agreed on.
    pub(crate) fn end_offer(&mut self, offer: BufferOffer) {
        self.buffers.offered &= offer.free == 0;
    }

    /// Takes buffer `index` for a group.
    pub(crate) fn take_buffer(
        &mut self,
        index: usize,
        group: impl Iterator<Item = usize>,
        first_round: u64,
    ) -> Result<CollectiveBuffer> {
        assert!(index < BUFFERS && first_round > self.buffers.highest);
        self.buffers.taken.resize_with(BUFFERS, || None);
        assert!(self.buffers.taken[index].is_none(), "the buffer is in use");
        let taken = self.members(index, group)?;
        let non_temporal_from = match self.cores.near {
            true => usize::MAX,
            false => self.cores.non_temporal_from,
        };
        let buffer = CollectiveBuffer::new(
            taken.members.clone(),
            taken.me,
            first_round,
            non_temporal_from,
            taken._memory.clone(),
        );
        self.buffers.taken[index] = Some(taken);
        Ok(buffer)
    }
}
