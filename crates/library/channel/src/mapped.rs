//! Memory that several ranks of a host have mapped: collective buffers, the counters of cooperative
//! copies, claims on exposed memory, and the words of the host. What one rank stores there, the
//! others load; no transfer is needed.

use crate::host_words::HostWords;
use crate::path_preference::PathPreference;
use crate::piece_counter::PieceCounter;
use crate::shm::collective_buffer::{BufferOffer, CollectiveBuffer};
use crate::zero_copy::BEYOND;
use crate::{End, Error, Exposure, RemoteKey, Result, Router};

/// Length in bytes of the longest exposure that its owner can copy while a peer may read it.
pub const LONGEST_SHARED: usize = crate::claim::LONGEST;

/// Operations on memory that this rank and its peers have mapped.
pub trait MappedMemory {
    /// True if this rank shares memory with each of these world ranks; itself is not checked.
    fn shares_memory(&self, group: impl Iterator<Item = usize>) -> bool;

    /// Offers the free collective buffers to a group of world ranks. The offer is empty if they do
    /// not all share memory or if an earlier offer is still open. The members combine their offers:
    /// `free` by AND, `first_round` by maximum.
    fn offer_buffers(&mut self, group: impl Iterator<Item = usize>) -> BufferOffer;

    /// Closes this rank's offer, whatever the members have agreed on.
    fn end_offer(&mut self, offer: BufferOffer);

    /// Claims the lowest-numbered collective buffer of a combined offer, for the group of world
    /// ranks that made it. `None`: no buffer is free for all.
    ///
    /// # Panics
    /// If this rank is no member, has not offered the buffer, or shares no memory with a member.
    fn collective_buffer(
        &mut self,
        agreed: BufferOffer,
        group: impl Iterator<Item = usize>,
    ) -> Result<Option<CollectiveBuffer>>;

    /// The shared counter from which this rank, as `end`, and `peer` claim pieces of one message
    /// that they copy together. `None`: they share no memory, or no ring between them is open.
    fn cooperation(&self, peer: usize, end: End) -> Option<&PieceCounter>;

    /// As the sender of a message, joins the cooperative copy that its receiver `peer` has just
    /// opened with this generation.
    fn join_cooperation(&mut self, peer: usize, generation: u32);

    /// The word by which the receiver of messages informs their sender which path they should take;
    /// this rank is the end `end`, and `peer` the other end. `None`: see
    /// [`cooperation`](MappedMemory::cooperation).
    fn preference(&self, peer: usize, end: End) -> Option<&PathPreference>;

    /// Records that the first `copied` bytes of an exposure to `peer` are in a copy of this rank
    /// that begins at the address `copy`, at most [`LONGEST_SHARED`] bytes. False: the peer has
    /// claimed the bytes beyond what was recorded before, and will read them.
    fn advance_copy(&self, peer: usize, exposure: &Exposure, copy: usize, copied: usize) -> bool;

    /// True if the peer has claimed what this rank has not copied of an exposure.
    fn is_claimed(&self, peer: usize, exposure: &Exposure) -> bool;

    /// Claims the bytes that the peer has not copied of the memory that `key` names. Reads by this
    /// key find the others in the peer's copy.
    ///
    /// # Errors
    /// The peer does not expose that memory, or it was claimed before.
    fn claim(&self, peer: usize, key: &RemoteKey) -> Result<()>;

    /// Records in shared memory that this rank receives nothing any more.
    fn receive_no_more(&self);

    /// True if a peer on this host receives nothing any more.
    fn has_left(&self, peer: usize) -> bool;

    /// The words that all ranks of this host share. `None`: this rank shares no memory.
    fn host_words(&self) -> Option<HostWords>;

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

    fn preference(&self, peer: usize, end: End) -> Option<&PathPreference> {
        self.shm_to(peer)?.preference(peer, end)
    }

    fn advance_copy(&self, peer: usize, exposure: &Exposure, copy: usize, copied: usize) -> bool {
        let shm = self.shm_to(peer).filter(|_| exposure.is_held());
        shm.is_some_and(|shm| shm.advance_copy(exposure, copy, copied))
    }

    fn is_claimed(&self, peer: usize, exposure: &Exposure) -> bool {
        let shm = self.shm_to(peer).filter(|_| exposure.is_held());
        shm.is_none_or(|shm| shm.is_claimed(exposure))
    }

    fn claim(&self, peer: usize, key: &RemoteKey) -> Result<()> {
        match self.shm_to(peer) {
            Some(shm) => shm.claim(peer, key),
            None => Err(Error::broken(peer, BEYOND)),
        }
    }

    fn receive_no_more(&self) {
        if let Some(shm) = &self.transports.shm {
            shm.leave();
        }
    }

    fn has_left(&self, peer: usize) -> bool {
        self.shm_to(peer).is_some_and(|shm| shm.has_left(peer))
    }

    fn host_words(&self) -> Option<HostWords> {
        let shm = self.transports.shm.as_ref();
        shm.map(|shm| shm.host_words())
    }

    fn ring(&self, peer: usize) {
        if let Some(shm) = self.shm_to(peer) {
            shm.ring(peer);
        }
    }
}
