//! Addresses for buffers whose contents nobody reads: one range of memory without pages. Few bytes
//! are ever written to it, by algorithms that prepare a message.

use std::io;
use std::ptr::{null_mut, with_exposed_provenance_mut};

use datatype::{Buffer, Elements, Type};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The length of the range.
const LENGTH: usize = 1 << 42;
/// The longest buffer.
pub(crate) const LONGEST: usize = LENGTH / 4;
/// The distance of buffers. They overlap, but each has an address of its own, by which algorithms
/// tell one from another.
const STRIDE: usize = 64;
/// The number of different addresses, after which they repeat.
const PLACES: usize = 1 << 16;

/// The range.
pub(crate) struct Addresses {
    start: usize,
    next: usize,
}

impl Addresses {
    pub(crate) fn new() -> io::Result<Addresses> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the system chooses.
        let start = unsafe { mmap_anonymous(null_mut(), LENGTH, access, flags) }?;
        Ok(Addresses {
            start: start.expose_provenance(),
            next: 0,
        })
    }

    /// A buffer of `bytes` bytes; `None`: it is too long.
    pub(crate) fn buffer(&mut self, bytes: usize) -> Option<Buffer> {
        let at = self.place(bytes)?;
        // SAFETY: the range is mapped as long as this exists, which outlives all buffers, and
        // `place` has checked the length. One thread uses it.
        Some(unsafe { Buffer::dense(with_exposed_provenance_mut(at), bytes) })
    }

    /// `count` elements; `None`: they are too long.
    pub(crate) fn elements(&mut self, count: usize, ty: &Type) -> Option<Elements> {
        let at = self.place(count.checked_mul(ty.size().max(ty.extent().unsigned_abs()))?)?;
        // SAFETY: as in `buffer`; predefined types and those of contiguous bytes begin at the
        // address.
        Some(unsafe { Elements::new(with_exposed_provenance_mut(at), count, ty) })
    }

    fn place(&mut self, bytes: usize) -> Option<usize> {
        if bytes > LONGEST {
            return None;
        }
        self.next = (self.next + 1) % PLACES;
        Some(self.start + self.next * STRIDE)
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and nothing uses it any more.
        let _ = unsafe { munmap(with_exposed_provenance_mut(self.start), LENGTH) };
    }
}
