//! The memory that stands for all buffers of all ranks: one file, which each rank maps at addresses
//! of its own.
//!
//! The file is long, and takes memory only for the pages that are touched: those of the longest
//! buffer, once, whatever the number of ranks. Each rank has one area for what it sends and one for
//! what it receives, so the source and the destination of a copy have different addresses.

use std::io;
use std::ptr::null_mut;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The size of the address range in which the memory of all ranks lies, in bytes.
const ALL: u64 = 1 << 45;
/// The distance between the addresses of buffers. Buffers overlap, but each has an address of its
/// own, by which the library distinguishes it from others.
const STRIDE: u64 = 16;
/// The most bytes of that address range that one rank gets.
const MOST: u64 = 1 << 41;
/// The most bytes that one rank gets under QEMU. It keeps a table of all mapped pages, 24 bytes for
/// each 4 KiB: 12 GB for 2 TiB.
const MOST_EMULATED: u64 = 1 << 34;

/// The address range in which the buffers of all ranks lie.
pub(crate) struct Scratch {
    maps: Vec<usize>,
    /// The length of each rank's part of the address range, in bytes.
    length: usize,
}

impl Scratch {
    /// Memory for `ranks` ranks.
    pub(crate) fn new(ranks: usize) -> io::Result<Scratch> {
        let most = if is_emulated() { MOST_EMULATED } else { MOST };
        let length = (ALL / ranks.max(1) as u64).min(most) >> 16 << 16;
        let file = memory_file::of_length("fishplate-buffers", length)?;
        let mut scratch = Scratch {
            maps: Vec::with_capacity(ranks),
            length: length as usize,
        };
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        for _ in 0..ranks {
            // SAFETY: a new mapping at an address that the system chooses.
            let map = unsafe { mmap(null_mut(), scratch.length, access, flags, &file, 0) }?;
            scratch.maps.push(map.expose_provenance());
        }
        Ok(scratch)
    }

    /// The address of a buffer of a rank: one of those that it sends, or receives. `None`: there
    /// are too many buffers.
    pub(crate) fn address(&self, rank: usize, receives: bool, number: u64) -> Option<u64> {
        let eighth = self.length as u64 / 8;
        let start = self.maps[rank] as u64 + if receives { 6 * eighth } else { 2 * eighth };
        let offset = number.checked_mul(STRIDE)?;
        (offset <= eighth).then_some(start + offset)
    }

    /// The addresses of a rank in which no buffer lies, for memory of its own.
    pub(crate) fn apart(&self, rank: usize) -> std::ops::Range<u64> {
        let eighth = self.length as u64 / 8;
        let start = self.maps[rank] as u64;
        start + 4 * eighth..start + 5 * eighth
    }

    /// The bytes before and behind the address of a buffer that belong to it.
    pub(crate) fn reach(&self) -> u64 {
        self.length as u64 / 8
    }
}

/// True if QEMU emulates this process: it refuses a question that Linux answers.
fn is_emulated() -> bool {
    rustix::process::child_subreaper() == Err(Errno::INVAL)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for map in &self.maps {
            let start = std::ptr::with_exposed_provenance_mut(*map);
            // SAFETY: mapped in `new`, and no rank is left that would use it.
            let _ = unsafe { munmap(start, self.length) };
        }
    }
}
