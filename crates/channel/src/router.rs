//! All the channels of one rank behind one face: who is reached how.

use std::os::fd::OwnedFd;

use device::Node;

use crate::loopback::Loopback;
use crate::piece_counter::PieceCounter;
use crate::rdma::Rdma;
use crate::shm::Shm;
use crate::{Channel, CopyResult, End, Fault, First, Head, More, OneSided, Put, Result};

/// The pieces that a long message goes in through shared memory: the receiver copies one while we copy the next.
const SHARED_PIECE: usize = 16 << 10;
/// The longest packet to this rank itself.
const LOOPBACK_PIECE: usize = 64 << 10;

/// Every peer by the channel that reaches it: this rank itself, the ranks that share memory with it, and all others by
/// RDMA.
pub struct Channels {
    rank: usize,
    loopback: Loopback,
    shm: Option<Shm>,
    rdma: Option<Box<Rdma>>,
    /// It has left its machine.
    left: bool,
}

impl Channels {
    /// A rank on its own.
    pub fn alone() -> Channels {
        Channels::of(0, None, None)
    }

    /// Rank `rank` of a job, and the ways to its peers.
    pub fn of(rank: usize, shm: Option<Shm>, rdma: Option<Rdma>) -> Channels {
        Channels {
            rank,
            loopback: Loopback::default(),
            shm,
            rdma: rdma.map(Box::new),
            left: false,
        }
    }

    /// Shared memory, if that is how this peer is reached.
    #[inline]
    fn shm_to(&self, peer: usize) -> Option<&Shm> {
        self.shm
            .as_ref()
            .filter(|shm| peer != self.rank && shm.reaches(peer))
    }

    #[inline]
    fn shm_to_mut(&mut self, peer: usize) -> Option<&mut Shm> {
        let rank = self.rank;
        self.shm
            .as_mut()
            .filter(|shm| peer != rank && shm.reaches(peer))
    }

    pub fn shm(&self) -> Option<&Shm> {
        self.shm.as_ref()
    }

    /// Takes the first packet of a peer that has one if it is `wanted`. It looks where a packet comes soonest: whoever
    /// finds nothing here for some time must `get`.
    #[inline(always)]
    pub fn get_first_if<T>(
        &mut self,
        wanted: impl FnOnce(Head) -> bool,
        take: impl FnOnce(Head, &[u8]) -> T,
    ) -> Result<First<T>> {
        match &mut self.shm {
            Some(shm) => shm.get_first_if(wanted, take),
            None => Ok(First::Nothing),
        }
    }

    /// The channel by RDMA, if that is how this peer is reached.
    #[inline]
    pub fn rdma_to(&mut self, peer: usize) -> Option<&mut Rdma> {
        let here = peer == self.rank || self.shm.as_ref().is_some_and(|shm| shm.reaches(peer));
        self.rdma.as_deref_mut().filter(|_| !here)
    }

    pub fn rdma_mut(&mut self) -> Option<&mut Rdma> {
        self.rdma.as_deref_mut()
    }

    /// Waiting is a matter of the rank's node ([`Channels::wait`]): there is no doorbell that peers could ring.
    #[inline]
    pub fn waits_by_node(&self) -> bool {
        self.rdma.is_some() && self.shm.is_none()
    }

    /// All peers are reached by devices, and there is no rank that could ring this one's doorbell.
    pub fn only_devices(&self) -> bool {
        let alone = self.shm.as_ref().is_none_or(|shm| shm.places().here() == 1);
        self.rdma.is_some() && alone
    }

    /// The rank's devices move long messages at this moment.
    #[inline(always)]
    pub fn is_moving(&self) -> bool {
        self.rdma.as_ref().is_some_and(|rdma| rdma.is_moving())
    }

    /// Asks the rank's devices, if it has any, to raise an event when something comes. The answer: do they for all that
    /// may come?
    pub fn arm(&mut self) -> Result<Option<bool>> {
        self.rdma.as_mut().map(|rdma| rdma.arm()).transpose()
    }

    /// What can be read once the devices have raised an event.
    pub fn events(&mut self) -> Result<Option<OwnedFd>> {
        match &mut self.rdma {
            Some(rdma) => Ok(rdma.node().events()?),
            None => Ok(None),
        }
    }

    /// The longest body that goes to any peer in one piece, in bytes.
    pub fn least_piece(&self) -> usize {
        let shm = self.shm.as_ref().map(|shm| shm.max_body(self.rank));
        let rdma = self.rdma.as_ref().map(|rdma| rdma.max_body(self.rank));
        let shared = shm.map(|body| body.min(SHARED_PIECE));
        let least = [shared, rdma].into_iter().flatten().min();
        least.unwrap_or(LOOPBACK_PIECE)
    }

    /// From what size on the next body to a peer, which has so many bytes, is best written past the cache: where memory
    /// is shared by cores that are far apart.
    #[inline]
    pub fn past_cache(&mut self, peer: usize, len: usize) -> usize {
        self.shm_to_mut(peer)
            .map_or(usize::MAX, |shm| shm.past_cache(peer, len))
    }

    /// Is the next long message to a peer best moved through shared memory by packets?
    pub fn offers_near(&self, peer: usize) -> bool {
        self.shm_to(peer).is_some_and(|shm| shm.offers_near(peer))
    }

    /// A peer asks for help with a long message that goes to it, and has just opened its share with this generation.
    pub fn has_opened(&mut self, peer: usize, generation: u32) {
        if let Some(shm) = self.shm_to_mut(peer) {
            shm.has_opened(peer, generation);
        }
    }

    /// Is this peer reached by a device?
    #[inline]
    pub fn by_device(&self, peer: usize) -> bool {
        self.rdma.is_some() && peer != self.rank && self.shm_to(peer).is_none()
    }

    /// Lets time pass until something may have changed, at most so many nanoseconds, where the rank has a node.
    pub fn wait(&mut self, nanos: u64) -> Result<()> {
        self.rdma.as_mut().map_or(Ok(()), |rdma| rdma.wait(nanos))
    }

    /// The rank's place in a machine, if it has one.
    pub fn node(&mut self) -> Option<&mut dyn Node> {
        self.rdma.as_mut().map(|rdma| rdma.node())
    }

    /// The rank's devices are worked by this host's processors: whoever spins keeps them from it.
    pub fn needs_processors(&mut self) -> bool {
        self.rdma
            .as_ref()
            .is_some_and(|rdma| rdma.needs_processors())
    }

    /// Is there a core for each rank that shares memory with this one, so that spinning takes nothing from a peer? None: it
    /// cannot be told yet.
    pub fn has_core_each(&mut self) -> Option<bool> {
        self.shm
            .as_mut()
            .map_or(Some(true), |shm| shm.has_core_each())
    }

    /// Leaves the machine: this rank talks to nobody any more.
    pub fn leave(&mut self) {
        self.left |= self.rdma.take().is_some();
    }

    #[cold]
    fn check_not_left(&self) -> Result<()> {
        match self.left {
            true => Err(Fault::Device(device::Error::Deadlock).into()),
            false => Ok(()),
        }
    }

    /// Ends all connections: to be called until it says that they have ended.
    pub fn close(&mut self) -> Result<bool> {
        self.rdma.as_mut().map_or(Ok(true), |rdma| rdma.close())
    }

    /// The pieces in which a long message goes to this peer, in bytes.
    pub fn piece(&self, peer: usize) -> usize {
        match self.by_device(peer) {
            true => self.max_body(peer),
            false => self.max_body(peer).min(SHARED_PIECE),
        }
    }

    /// To this rank itself, by RDMA, or the first packet to a peer. The head comes word by word, so that a packet on the short
    /// way needs no memory for it.
    #[cold]
    #[inline(never)]
    fn put_elsewhere(
        &mut self,
        peer: usize,
        first: u64,
        second: u64,
        third: u64,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        let head = [first, second, third];
        if let Some(shm) = self.shm_to_mut(peer) {
            return shm.put(peer, head, len, fill);
        }
        match &mut self.rdma {
            Some(rdma) if peer != self.rank => rdma.put(peer, head, len, fill),
            _ => {
                self.check_not_left()?;
                self.loopback.put(head, len, fill);
                Ok(Put::Accepted)
            }
        }
    }

    /// A `get` would find nothing, as far as a short look can tell.
    #[inline(always)]
    pub fn has_nothing(&self) -> bool {
        self.loopback.is_empty()
            && self.rdma.is_none()
            && self.shm.as_ref().is_none_or(|shm| shm.has_nothing())
    }

    /// By RDMA, and by shared memory beside it. Transfers that are done are packets with the heads that their starters
    /// chose.
    #[inline(never)]
    fn get_otherwise(
        &mut self,
        mut handler: impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        let Some(rdma) = &mut self.rdma else {
            return self.check_not_left().map(|()| 0);
        };
        let mut packets = rdma.get(&mut handler)?;
        if let Some(shm) = self.shm.as_mut().filter(|shm| !shm.has_nothing()) {
            packets += shm.get(&mut handler)?;
        }
        while let Some(done) = rdma.done() {
            packets += 1;
            let _ = handler(done.peer, done.token, &[]);
        }
        Ok(packets)
    }

    /// Nothing has arrived at this moment.
    pub fn is_quiet(&mut self) -> bool {
        self.loopback.is_empty() && self.shm.as_mut().is_none_or(|shm| shm.is_quiet())
    }
}

impl Channel for Channels {
    #[inline]
    fn max_body(&self, peer: usize) -> usize {
        match (self.shm_to(peer), &self.rdma) {
            (Some(shm), _) => shm.max_body(peer),
            (None, Some(rdma)) if peer != self.rank => rdma.max_body(peer),
            _ => LOOPBACK_PIECE,
        }
    }

    #[inline(always)]
    fn put(
        &mut self,
        peer: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        if let Some(shm) = &mut self.shm
            && let Some(outbound) = shm.outbound(peer)
        {
            return Ok(outbound.put(head, len, fill));
        }
        let [first, second, third] = head;
        self.put_elsewhere(peer, first, second, third, len, fill)
    }

    #[inline(always)]
    fn get(&mut self, mut handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
        let mut packets = 0;
        while let Some((head, body)) = self.loopback.get() {
            packets += 1;
            if handler(self.rank, head, &body) == More::Enough {
                break;
            }
        }
        packets += match &mut self.shm {
            Some(shm) if self.rdma.is_none() => shm.get(handler)?,
            _ => self.get_otherwise(handler)?,
        };
        Ok(packets)
    }

    fn read(&mut self, peer: usize, address: u64, into: &mut [u8]) -> Result<CopyResult> {
        if let Some(shm) = self.shm_to_mut(peer) {
            return shm.read(peer, address, into);
        }
        if peer != self.rank {
            return Ok(CopyResult::Refused);
        }
        self.loopback.read(address, into);
        Ok(CopyResult::Done)
    }

    fn write(&mut self, peer: usize, address: u64, from: &[u8]) -> Result<CopyResult> {
        self.shm_to_mut(peer)
            .map_or(Ok(CopyResult::Refused), |shm| {
                shm.write(peer, address, from)
            })
    }

    fn share(&self, peer: usize, end: End) -> Option<&PieceCounter> {
        self.shm_to(peer)?.share(peer, end)
    }

    fn can_read(&mut self, peer: usize) -> bool {
        let own = peer == self.rank;
        self.shm_to_mut(peer).map_or(own, |shm| shm.can_read(peer))
    }
}
