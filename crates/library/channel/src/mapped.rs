//! Memory that several ranks of a host have mapped: collective buffers, and the counters of
//! cooperative copies. The others load what one rank stores there; no transfer is needed.

use crate::piece_counter::PieceCounter;
use crate::shm::collective_buffer::{BufferOffer, CollectiveBuffer};
use crate::{End, Result, Router};

/// Mapped memory of a rank and its peers.
pub trait MappedMemory {
    /// This rank shares memory with each of these world ranks, itself excepted.
    fn shares_memory(&self, group: impl Iterator<Item = usize>) -> bool;

    /// Offers the free collective buffers to a group of world ranks. The offer is empty if they do
    /// not all share memory or if an earlier offer has not ended. The members combine their offers:
    /// `free` by AND, `first_round` by maximum.
    fn offer_buffers(&mut self, group: impl Iterator<Item = usize>) -> BufferOffer;

    /// Ends this rank's offer, whatever the members agreed on.
    fn end_offer(&mut self, offer: BufferOffer);

    /// The first collective buffer of a combined offer, for the group of world ranks that made it;
    /// `None` if no buffer is free for all.
    ///
    /// # Panics
    /// If this rank is no member, has not offered the buffer, or shares no memory with a member.
    fn collective_buffer(
        &mut self,
        agreed: BufferOffer,
        group: impl Iterator<Item = usize>,
    ) -> Result<Option<CollectiveBuffer>>;

    /// The state that this rank and `peer` share to copy one message together, if memory is shared.
    fn cooperation(&self, peer: usize, end: End) -> Option<&PieceCounter>;

    /// This rank, the sender, joins the cooperative copy that the receiver has just opened with
    /// this generation.
    fn join_cooperation(&mut self, peer: usize, generation: u32);

    /// Wakes a peer that may sleep until this rank has changed memory that both map.
    fn ring(&self, peer: usize);
}

impl MappedMemory for Router {
    fn shares_memory(&self, mut group: impl Iterator<Item = usize>) -> bool {
        let shm = self.transports.shm.as_ref();
        shm.is_some_and(|shm| group.all(|rank| shm.reaches(rank)))
    }

    fn offer_buffers(&mut self, mut group: impl Iterator<Item = usize>) -> BufferOffer {
        match &mut self.transports.shm {
            Some(shm) if group.all(|rank| shm.reaches(rank)) => shm.offer_buffers(),
            _ => BufferOffer::default(),
        }
    }

    fn end_offer(&mut self, offer: BufferOffer) {
        if let Some(shm) = &mut self.transports.shm {
            shm.end_offer(offer);
        }
    }

    fn collective_buffer(
        &mut self,
        agreed: BufferOffer,
        group: impl Iterator<Item = usize>,
    ) -> Result<Option<CollectiveBuffer>> {
        match &mut self.transports.shm {
            Some(shm) if agreed.free != 0 => {
                let index = agreed.free.trailing_zeros() as usize;
                shm.take_buffer(index, group, agreed.first_round).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn cooperation(&self, peer: usize, end: End) -> Option<&PieceCounter> {
        self.shm_to(peer)?.piece_counter(peer, end)
    }

    fn join_cooperation(&mut self, peer: usize, generation: u32) {
        if let Some(shm) = self.shm_to_mut(peer) {
            shm.joins(peer, generation);
        }
    }

    fn ring(&self, peer: usize) {
        if let Some(shm) = self.shm_to(peer) {
            shm.ring(peer);
        }
    }
}
