//! The short path of messages: what lets a rank send and receive without the work that messages in
//! general need.

use crate::body::BodyStores;
use crate::transports::each;
use crate::waitable::Waitable;
use crate::{First, Head, Result, Router};

/// Short cuts beside [`Transport`](crate::Transport), for speed: a caller could do without each of
/// them.
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

    /// A cheap check says that a poll would find nothing.
    fn has_nothing(&self) -> bool;

    /// The stores for the next body to `peer`, which has `len` bytes.
    fn stores(&mut self, peer: usize, len: usize) -> BodyStores;
}

impl ShortPath for Router {
    #[inline(always)]
    fn first_if<T>(
        &mut self,
        wanted: impl FnOnce(Head) -> bool,
        take: impl FnOnce(Head, &[u8]) -> T,
    ) -> Result<First<T>> {
        match &mut self.transports.shm {
            Some(shm) => shm.get_first_if(wanted, take),
            None => Ok(First::Nothing),
        }
    }

    fn can_peek(&self) -> bool {
        !self.only_devices()
    }

    #[inline(always)]
    fn has_nothing(&self) -> bool {
        each!(&self.transports, transport => {
            if !transport.has_nothing() {
                return false;
            }
        });
        true
    }

    #[inline]
    fn stores(&mut self, peer: usize, len: usize) -> BodyStores {
        match self.shm_to_mut(peer) {
            Some(shm) => shm.stores(peer, len),
            None => BodyStores::CACHED,
        }
    }
}
