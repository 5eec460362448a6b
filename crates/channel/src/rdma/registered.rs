//! Memory that a device writes to while we look.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use device::{Access, Device, Region, Slice};

use crate::Result;

const PAGE: usize = 4096;

/// Bytes at an address that stays. Who may be inside when is a matter of the ring's protocol.
pub struct Block {
    base: *mut u8,
    layout: Layout,
}

// SAFETY: the block owns its memory.
unsafe impl Send for Block {}

impl Block {
    pub fn new(bytes: usize) -> Block {
        assert!(bytes > 0);
        let layout = Layout::from_size_align(bytes.next_multiple_of(PAGE), PAGE)
            .expect("a size that memory can have");
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // Pages of the system's: zeroes that take no memory until they are written to, which most of a ring never is.
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                layout.size(),
                protection,
                flags,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            handle_alloc_error(layout);
        }
        Block {
            base: base.cast(),
            layout,
        }
    }

    pub fn base(&self) -> *mut u8 {
        self.base
    }

    pub fn len(&self) -> usize {
        self.layout.size()
    }

    #[inline(always)]
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset <= self.layout.size() && len <= self.layout.size() - offset);
        // SAFETY: in bounds.
        unsafe { self.base.add(offset) }
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8));
        // SAFETY: in bounds, aligned, and borrowed as an atomic only.
        unsafe { &*self.at(offset, 8).cast() }
    }

    /// A word that the peer's device may write at this moment.
    #[inline(always)]
    pub fn load(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// A word of our own that our device may read at this moment.
    #[inline(always)]
    pub fn store(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Bytes that nobody writes to: a packet that has come and has not been let go.
    #[inline(always)]
    pub fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        // SAFETY: in bounds; the peer writes here only once it has been told that the packet was taken.
        unsafe { std::slice::from_raw_parts(self.at(offset, len), len) }
    }

    /// Bytes that nobody else looks at: the place of a packet that has not been posted.
    #[inline(always)]
    pub fn bytes_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        // SAFETY: in bounds; the device reads a slot between post and completion only, and we write to it at no such time.
        unsafe { std::slice::from_raw_parts_mut(self.at(offset, len), len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout. The owner has taken the devices' access back.
        unsafe { libc::munmap(self.base.cast(), self.layout.size()) };
    }
}

/// A block that a device has access to.
pub struct Registered {
    pub block: Block,
    pub region: Region,
}

impl Registered {
    pub fn new(device: &mut dyn Device, bytes: usize, access: Access) -> Result<Registered> {
        let block = Block::new(bytes);
        // SAFETY: the block stays until it is deregistered, and what the peer writes to is read as atomics, or not at all
        // while it may be written to.
        let region = unsafe { device.register(block.base(), block.len(), access)? };
        Ok(Registered { block, region })
    }

    /// A piece of it.
    #[inline(always)]
    pub fn slice(&self, range: Range<usize>) -> Slice {
        Slice {
            address: self.region.address + range.start as u64,
            len: range.len() as u32,
            lkey: self.region.lkey,
        }
    }

    /// The queue pairs that used it are gone.
    pub fn end(self, device: &mut dyn Device) {
        // What the device says to this no longer matters.
        let _ = device.deregister(self.region);
    }
}
