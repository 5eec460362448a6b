//! The claim of a collective buffer for a group, and the members' areas and doorbells in it.

use std::sync::Arc;

use super::Shm;
use super::buffer_pool::Taken;
use super::cache_distance::CacheDistance;
use super::collective_area::{AREA, Member};
use super::collective_buffer::{BUFFERS, BufferOffer, CollectiveBuffer};
use crate::Result;

impl Shm {
    /// The entry of buffer `index` for a group whose members are given as world ranks: each
    /// member's area and doorbell, and this rank's number among the members.
    fn members(&self, index: usize, group: impl Iterator<Item = usize>) -> Result<Taken> {
        let segment = &self.segment;
        let mapping = Arc::new(segment.collective_buffer(index)?);
        let boards = segment.board_mapping();
        let places: Vec<usize> = group
            .map(|rank| self.local.of(rank).expect("a member on this host"))
            .collect();
        let me = places.iter().position(|&place| place == self.place);
        let member = |&place: &usize| {
            // SAFETY: the mapping holds an area for each local rank, the mapping of the boards its
            // doorbell; both are stored beside the members.
            unsafe {
                let area = mapping.base().add(place * AREA);
                Member::new(area, &segment.board(place).doorbell)
            }
        };
        Ok(Taken {
            members: places.iter().map(member).collect(),
            me: me.expect("this rank is a member"),
            memory: Arc::new((mapping, boards)),
        })
    }

    /// Offers the buffers that are free for this rank. Empty while an earlier offer is open.
    pub(crate) fn offer_buffers(&mut self) -> BufferOffer {
        self.buffers.offer()
    }

    /// Closes the offer, whatever the members have agreed on, so that another one can be made.
    pub(crate) fn end_offer(&mut self, offer: BufferOffer) {
        self.buffers.offered &= offer.free == 0;
    }

    /// Claims buffer `index` for a group of world ranks. `first_round`: the agreed first round.
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
        let buffer = CollectiveBuffer::new(
            taken.members.clone(),
            taken.me,
            first_round,
            CacheDistance::new(self.cores.near, self.cores.non_temporal_from),
            taken.memory.clone(),
        );
        self.buffers.taken[index] = Some(taken);
        Ok(buffer)
    }
}
