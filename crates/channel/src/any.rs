//! All the channels of one rank behind one face: who is reached how.

use crate::loopback::Loopback;
use crate::share::Share;
use crate::shm::Shm;
use crate::{Bulk, Channel, End, First, Head, More, Put, Result};

/// Every peer by the channel that reaches it: this rank itself, or the ranks that share memory with it.
pub struct Channels {
    rank: usize,
    loopback: Loopback,
    shm: Option<Shm>,
}

impl Channels {
    /// A rank on its own.
    pub fn alone() -> Channels {
        Channels {
            rank: 0,
            loopback: Loopback::default(),
            shm: None,
        }
    }

    /// A rank that shares memory with all its peers.
    pub fn shared(shm: Shm) -> Channels {
        Channels {
            rank: shm.rank(),
            loopback: Loopback::default(),
            shm: Some(shm),
        }
    }

    pub fn shm(&self) -> Option<&Shm> {
        self.shm.as_ref()
    }

    pub fn shm_mut(&mut self) -> Option<&mut Shm> {
        self.shm.as_mut()
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

    /// To this rank itself, or the first packet to a peer. The head comes word by word, so that a packet on the short
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
        match &mut self.shm {
            Some(shm) if peer != self.rank => shm.put(peer, head, len, fill),
            _ => {
                self.loopback.put(head, len, fill);
                Ok(Put::Taken)
            }
        }
    }

    /// A `get` would find nothing, as far as a short look can tell.
    #[inline(always)]
    pub fn has_nothing(&self) -> bool {
        self.loopback.is_empty() && self.shm.as_ref().is_none_or(|shm| shm.has_nothing())
    }

    /// Nothing has arrived at this moment.
    pub fn is_quiet(&mut self) -> bool {
        self.loopback.is_empty() && self.shm.as_mut().is_none_or(|shm| shm.is_quiet())
    }
}

impl Channel for Channels {
    #[inline]
    fn max_body(&self, peer: usize) -> usize {
        match &self.shm {
            Some(shm) if peer != self.rank => shm.max_body(peer),
            _ => 64 << 10,
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
        if let Some(shm) = &mut self.shm {
            packets += shm.get(handler)?;
        }
        Ok(packets)
    }

    fn read(&mut self, peer: usize, address: u64, into: &mut [u8]) -> Result<Bulk> {
        match &mut self.shm {
            Some(shm) if peer != self.rank => shm.read(peer, address, into),
            _ => {
                self.loopback.read(address, into);
                Ok(Bulk::Done)
            }
        }
    }

    fn write(&mut self, peer: usize, address: u64, from: &[u8]) -> Result<Bulk> {
        match &mut self.shm {
            Some(shm) if peer != self.rank => shm.write(peer, address, from),
            _ => Ok(Bulk::Refused),
        }
    }

    fn share(&self, peer: usize, end: End) -> Option<&Share> {
        self.shm
            .as_ref()
            .filter(|_| peer != self.rank)?
            .share(peer, end)
    }

    fn can_read(&mut self, peer: usize) -> bool {
        match &mut self.shm {
            Some(shm) if peer != self.rank => shm.can_read(peer),
            _ => true,
        }
    }
}
