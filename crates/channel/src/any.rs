//! All the channels of one rank behind one face: who is reached how.

use crate::loopback::Loopback;
use crate::share::Share;
use crate::shm::Shm;
use crate::{Bulk, Channel, End, Head, More, Put, Result};

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

    #[inline(never)]
    fn get_from_itself(&mut self, handler: &mut dyn FnMut(usize, Head, &[u8]) -> More) -> usize {
        let mut packets = 0;
        while let Some((head, body)) = self.loopback.get() {
            packets += 1;
            if handler(self.rank, head, &body) == More::Enough {
                break;
            }
        }
        packets
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
        match &mut self.shm {
            Some(shm) if peer != self.rank => shm.put(peer, head, len, fill),
            _ => {
                self.loopback.put(head, len, fill);
                Ok(Put::Taken)
            }
        }
    }

    #[inline(always)]
    fn get(&mut self, mut handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
        let mut packets = 0;
        if !self.loopback.is_empty() {
            packets = self.get_from_itself(&mut handler);
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
