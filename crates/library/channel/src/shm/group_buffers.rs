//! The collective buffers that this rank takes for a group: the members' areas and doorbells.

use std::sync::Arc;

use super::Shm;
use super::buffer_pool::Taken;
use super::collective_buffer::{AREA, BUFFERS, BufferOffer, CollectiveBuffer, Member};
use crate::Result;

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
            memory: Arc::new((mapping, boards)),
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
            taken.memory.clone(),
        );
        self.buffers.taken[index] = Some(taken);
        Ok(buffer)
    }
}
