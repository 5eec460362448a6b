//! The short path of messages: what lets a rank send and receive without the work that messages in
//! general need.

use crate::body::BodyStores;
use crate::{First, Head, Result, Router, Transport};

/// Short cuts beside [`Transport`], for speed: a caller could do without each of them.
pub trait ShortPath {
    /// Takes the first packet in the polled rings if it is `wanted`. A caller that finds none for
    /// some time must poll.
    fn first_if<T>(
        &mut self,
        wanted: impl FnOnce(Head) -> bool,
        take: impl FnOnce(Head, &[u8]) -> T,
    ) -> Result<First<T>>;

    /// [`first_if`](ShortPath::first_if) can find the packets of some peer.
    fn can_peek(&self) -> bool;

    /// A poll would find nothing, as far as a short look can tell.
    fn has_nothing(&self) -> bool;

    /// The stores for the next body to `peer`, which has `len` bytes.
    fn stores(&mut self, peer: usize, len: usize) -> BodyStores;

    /// Length of the pieces of a message to `peer` that goes in several packets, in bytes.
    fn piece(&self, peer: usize) -> usize;
}

impl ShortPath for Router {
    #[inline(always)]
    fn first_if<T>(
        &mut self,
        wanted: impl FnOnce(Head) -> bool,
        take: impl FnOnce(Head, &[u8]) -> T,
    ) -> Result<First<T>> {
        match &mut self.shm {
            Some(shm) => shm.get_first_if(wanted, take),
            None => Ok(First::Nothing),
        }
    }

    fn can_peek(&self) -> bool {
        !self.only_devices()
    }

    #[inline(always)]
    fn has_nothing(&self) -> bool {
        self.loopback.is_empty()
            && self.rdma.is_none()
            && self.shm.as_ref().is_none_or(|shm| shm.has_nothing())
    }

    #[inline]
    fn stores(&mut self, peer: usize, len: usize) -> BodyStores {
        match self.shm_to_mut(peer) {
            Some(shm) => shm.stores(peer, len),
            None => BodyStores::CACHED,
        }
    }

    fn piece(&self, peer: usize) -> usize {
        match (self.shm_to(peer), &self.rdma) {
            (Some(shm), _) => shm.piece(),
            (None, Some(rdma)) if peer != self.rank => rdma.longest_packet(peer),
            _ => self.loopback.longest_packet(peer),
        }
    }
}
