//! The short path of messages: operations with which a rank sends and receives without the work of
//! the general path.

use crate::body::BodyStores;
use crate::transports::each;
use crate::waitable::Waitable;
use crate::{First, Head, Put, Result, Router};

/// Faster alternatives to operations of [`Transport`](crate::Transport): a caller could do without
/// each of them.
pub trait ShortPath {
    /// Consumes the first packet in the rings that it checks, if `wanted` accepts its head. It does
    /// not check all rings, so a caller that finds none for some time must poll.
    fn first_if<T>(
        &mut self,
        wanted: impl FnOnce(Head) -> bool,
        take: impl FnOnce(Head, &[u8]) -> T,
    ) -> Result<First<T>>;

    /// True if [`first_if`](ShortPath::first_if) works for at least one peer.
    fn can_peek(&self) -> bool;

    /// True if a cheap check shows that a poll would find nothing.
    fn has_nothing(&self) -> bool;

    /// The kind of stores for the next body to `peer`, which has `len` bytes.
    fn stores(&mut self, peer: usize, len: usize) -> BodyStores;

    /// Takes the end of the put of a body to this peer, of this length. The put began at the time
    /// that [`BodyStores::begin`] returned.
    fn stored(&mut self, to: (usize, usize), begun: Option<u64>, put: Put);
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

    #[inline(always)]
    fn stored(&mut self, to: (usize, usize), begun: Option<u64>, put: Put) {
        if let Some(begun) = begun
            && put != Put::Full
        {
            compared(self, to, begun);
        }
    }
}

#[cold]
#[inline(never)]
fn compared(router: &mut Router, (peer, len): (usize, usize), begun: u64) {
    let ns = crate::now().saturating_sub(begun);
    if let Some(shm) = router.shm_to_mut(peer) {
        shm.compared(peer, len, ns);
    }
}
