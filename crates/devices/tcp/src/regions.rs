//! Registered memory: only here do addresses become accesses.
//!
//! A key contains the position of its region in a table, and a count of the uses of that position,
//! so the key of a region that is gone gives no access.

use device::{Access, Region};

use super::frame::{Change, Right};

/// The number of bits of the position in a key. The other bits are the count of uses.
const PLACE_BITS: u32 = 20;
const PLACES: usize = 1 << PLACE_BITS;

/// The registered regions of a device.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place {
    uses: u32,
    region: Option<(u64, u64, Access)>,
}

impl Regions {
    /// Adds a region, and returns its key. `None`: there are too many regions.
    pub(crate) fn add(&mut self, address: u64, len: u64, access: Access) -> Option<Region> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.places.len() < PLACES => {
                self.places.push(Place {
                    uses: 0,
                    region: None,
                });
                self.places.len() as u32 - 1
            }
            None => return None,
        };
        let own = &mut self.places[place as usize];
        own.uses = own.uses.wrapping_add(1);
        own.region = Some((address, len, access));
        let key = own.uses << PLACE_BITS | place;
        Some(Region {
            address,
            len,
            lkey: key,
            rkey: key,
        })
    }

    /// Removes a region. False: there is none with this key.
    pub(crate) fn remove(&mut self, key: u32) -> bool {
        if self.find(key).is_none() {
            return false;
        }
        let place = key & (PLACES as u32 - 1);
        self.places[place as usize].region = None;
        self.free.push(place);
        true
    }

    #[inline]
    fn find(&self, key: u32) -> Option<&(u64, u64, Access)> {
        let place = self.places.get((key & (PLACES as u32 - 1)) as usize)?;
        let is_current = place.uses << PLACE_BITS == key & !(PLACES as u32 - 1);
        place.region.as_ref().filter(|_| is_current)
    }

    /// True if the region with this key allows the access to all these bytes.
    #[inline]
    pub(crate) fn allows(&self, key: u32, address: u64, len: u64, right: Right) -> bool {
        let Some((start, size, access)) = self.find(key) else {
            return false;
        };
        let may = match right {
            Right::LocalRead => true,
            Right::LocalWrite => access.local_write,
            Right::RemoteWrite => access.remote_write,
            Right::RemoteRead => access.remote_read,
            Right::RemoteAtomic => access.remote_atomic,
        };
        let offset = address.wrapping_sub(*start);
        may && address >= *start && len <= *size && offset <= *size - len
    }

    /// Copies bytes to memory that [`allows`](Regions::allows) has allowed.
    ///
    /// # Safety
    /// The bytes from `address` on lie in a region of this table.
    #[inline]
    pub(crate) unsafe fn place(&self, address: u64, bytes: &[u8]) {
        // SAFETY: whoever registered the region keeps its memory valid, and expects changes by the
        // device; `bytes` is memory of the device, outside of it.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
        }
    }

    /// Appends bytes of the owner's memory to `into`.
    ///
    /// # Safety
    /// The memory is valid, and nothing changes it.
    pub(crate) unsafe fn copy(&self, address: u64, len: usize, into: &mut Vec<u8>) {
        // SAFETY: the caller's promise.
        into.extend_from_slice(unsafe { std::slice::from_raw_parts(address as *const u8, len) });
    }

    /// Changes a word that [`allows`](Regions::allows) has allowed; returns its old value.
    ///
    /// # Safety
    /// The word at `address` lies in a region of this table, and `address` is a multiple of eight.
    pub(crate) unsafe fn change(&self, address: u64, change: Change) -> u64 {
        let word = address as *mut u64;
        // SAFETY: as in `place`; the word is aligned.
        unsafe {
            let old = word.read_volatile();
            match change {
                Change::Add(summand) => word.write_volatile(old.wrapping_add(summand)),
                Change::Swap(expected, new) if old == expected => word.write_volatile(new),
                Change::Swap(..) => {}
            }
            old
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Access = Access {
        local_write: false,
        remote_write: false,
        remote_read: true,
        remote_atomic: false,
    };

    #[test]
    fn a_region_allows_its_own_bytes_and_accesses_and_no_others() {
        let mut regions = Regions::default();
        let all = regions.add(1000, 100, Access::ALL).unwrap();
        let read = regions.add(1000, 100, READ).unwrap();
        let allows = |key, address, len| regions.allows(key, address, len, Right::RemoteWrite);
        assert!(allows(all.rkey, 1000, 100) && allows(all.rkey, 1100, 0));
        for (address, len) in [
            (999, 1),
            (1000, 101),
            (1100, 1),
            (u64::MAX, 2),
            (1001, u64::MAX),
        ] {
            assert!(!allows(all.rkey, address, len), "{address} {len}");
        }
        assert!(!allows(read.rkey, 1000, 1));
        assert!(regions.allows(read.rkey, 1000, 1, Right::RemoteRead));
        assert!(!allows(all.rkey + 256, 1000, 1));
    }

    #[test]
    fn the_key_of_a_region_that_is_gone_opens_nothing() {
        let mut regions = Regions::default();
        let first = regions.add(1000, 100, Access::ALL).unwrap();
        assert!(regions.remove(first.lkey));
        assert!(!regions.remove(first.lkey));
        let second = regions.add(1000, 100, Access::ALL).unwrap();
        assert!(!regions.allows(first.rkey, 1000, 1, Right::RemoteRead));
        assert!(regions.allows(second.rkey, 1000, 1, Right::RemoteRead));
    }
}
