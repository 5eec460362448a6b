//! Registered memory of ranks, by protection domains. A key consists of the number of a region and
//! the number of its earlier uses, so that a key is no longer valid after its region is
//! deregistered.

use sim::memory::{Vec, WorldMemory};

use device::check;
use device::{Access, Error, Region, Result};

pub(crate) struct Regions {
    all: Vec<Entry>,
    free: Vec<u32>,
    /// The number of registered regions of each rank.
    counts: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Entry {
    rank: u32,
    domain: u32,
    address: u64,
    len: u64,
    access: Access,
    key: u32,
    alive: bool,
}

/// A kind of access of an HCA to registered memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessKind {
    LocalRead,
    LocalWrite,
    RemoteWrite,
    RemoteRead,
    RemoteAtomic,
}

impl Regions {
    pub(crate) fn new(memory: WorldMemory) -> Regions {
        Regions {
            all: Vec::new_in(memory),
            free: Vec::new_in(memory),
            counts: Vec::new_in(memory),
        }
    }

    pub(crate) fn register(
        &mut self,
        (rank, domain): (u32, u32),
        address: u64,
        len: u64,
        access: Access,
    ) -> Result<Region> {
        check::register(address, len as usize, access).map_err(Error::Invalid)?;
        let number = self.free.pop().unwrap_or(self.all.len() as u32);
        let used = self.all.get(number as usize).map_or(0, |old| old.key + 1);
        let key = number << 8 | used & 0xff;
        let entry = Entry {
            rank,
            domain,
            address,
            len,
            access,
            key,
            alive: true,
        };
        match self.all.get_mut(number as usize) {
            Some(old) => *old = entry,
            None => self.all.push(entry),
        }
        if self.counts.len() <= rank as usize {
            self.counts.resize(rank as usize + 1, 0);
        }
        self.counts[rank as usize] += 1;
        Ok(Region {
            address,
            len,
            lkey: key,
            rkey: key,
        })
    }

    /// Deregisters a region; returns its length in bytes.
    pub(crate) fn deregister(&mut self, (rank, domain): (u32, u32), key: u32) -> Result<u64> {
        match self.all.get_mut(key as usize >> 8) {
            Some(entry)
                if entry.alive
                    && entry.key == key
                    && (entry.rank, entry.domain) == (rank, domain) =>
            {
                entry.alive = false;
                self.free.push(key >> 8);
                self.counts[rank as usize] -= 1;
                Ok(entry.len)
            }
            _ => Err(Error::Invalid(format!(
                "key {key:#x} is of no region of this device"
            ))),
        }
    }

    /// Deregisters all regions of a rank, which ends.
    pub(crate) fn forget(&mut self, rank: u32) {
        let left = self.counts.get_mut(rank as usize).map(std::mem::take);
        // A rank that ends in order has deregistered everything.
        if left.unwrap_or(0) == 0 {
            return;
        }
        for entry in self
            .all
            .iter_mut()
            .filter(|entry| entry.rank == rank && entry.alive)
        {
            entry.alive = false;
            self.free.push(entry.key >> 8);
        }
    }

    /// True if a rank's device may access `len` bytes at `address` in this manner. 0 bytes need no
    /// key.
    #[inline]
    pub(crate) fn allow(
        &self,
        (rank, domain): (u32, u32),
        key: u32,
        address: u64,
        len: u64,
        to: AccessKind,
    ) -> bool {
        if len == 0 {
            return true;
        }
        let Some(entry) = self.all.get(key as usize >> 8) else {
            return false;
        };
        let right = match to {
            AccessKind::LocalRead => true,
            AccessKind::LocalWrite => entry.access.local_write,
            AccessKind::RemoteWrite => entry.access.remote_write,
            AccessKind::RemoteRead => entry.access.remote_read,
            AccessKind::RemoteAtomic => entry.access.remote_atomic,
        };
        let inside = address >= entry.address
            && address
                .checked_add(len)
                .is_some_and(|end| end <= entry.address + entry.len);
        entry.alive
            && entry.key == key
            && (entry.rank, entry.domain) == (rank, domain)
            && inside
            && right
    }

    /// True if the region of a key is still registered, so that data in flight may be written to
    /// it.
    #[inline]
    pub(crate) fn stands(&self, key: u32) -> bool {
        let entry = self.all.get(key as usize >> 8);
        entry.is_some_and(|entry| entry.alive && entry.key == key)
    }
}
