//! The memory that messages come from and go to, and all that is unsafe here: registering it, and posting pieces of it.
//!
//! What must always hold: the memory stays where it is for as long as the device may touch it. A [`Memory`] is freed only
//! after its owner has destroyed the queue pairs that use it, and nothing here makes a reference to it: the device and the
//! other end may change it at any time.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use device::{Access, Device, Error, Operation, Qp, ReceiveQueue, Region, Result, Slice, Work};

const PAGE: usize = 4096;

/// Registered memory in whole pages, zeroed.
pub struct Memory {
    bytes: NonNull<u8>,
    layout: Layout,
    region: Region,
    kept: bool,
}

/// A work request on a piece of it.
pub struct Request<'a> {
    pub id: u64,
    pub operation: Operation,
    pub at: usize,
    pub len: usize,
    pub inline: bool,
    pub signaled: bool,
    pub to: Option<&'a device::Address>,
}

impl Memory {
    pub fn new(device: &mut dyn Device, len: usize) -> Result<Memory> {
        let layout = Layout::from_size_align(len.max(1).next_multiple_of(PAGE), PAGE)
            .map_err(|_| Error::Invalid(format!("{len} bytes of memory")))?;
        // SAFETY: the layout is of at least a page.
        let bytes = unsafe { alloc_zeroed(layout) };
        let Some(bytes) = NonNull::new(bytes) else {
            handle_alloc_error(layout)
        };
        // SAFETY: the memory is freed when this value is dropped, after the queue pairs that use it, and is only looked at
        // by volatile accesses.
        let region = unsafe { device.register(bytes.as_ptr(), layout.size(), Access::ALL) };
        match region {
            Ok(region) => Ok(Memory {
                bytes,
                layout,
                region,
                kept: false,
            }),
            Err(why) => {
                // SAFETY: allocated above with this layout, and nobody knows of it.
                unsafe { dealloc(bytes.as_ptr(), layout) };
                Err(why)
            }
        }
    }

    pub fn region(&self) -> Region {
        self.region
    }

    /// A byte as it is now.
    #[inline]
    pub fn byte(&self, at: usize) -> u8 {
        assert!(at < self.layout.size());
        // SAFETY: inside the memory; volatile, because a device may write it at the same time.
        unsafe { self.bytes.as_ptr().add(at).read_volatile() }
    }

    #[inline]
    pub fn set_byte(&mut self, at: usize, value: u8) {
        assert!(at < self.layout.size());
        // SAFETY: as for `byte`.
        unsafe { self.bytes.as_ptr().add(at).write_volatile(value) };
    }

    #[inline]
    fn slice(&self, at: usize, len: usize) -> Slice {
        assert!(at <= self.layout.size() && len <= self.layout.size() - at);
        Slice {
            address: self.region.address + at as u64,
            len: len as u32,
            lkey: self.region.lkey,
        }
    }

    #[inline]
    pub fn post(&self, device: &mut dyn Device, qp: Qp, request: &Request) -> Result<()> {
        let work = Work {
            id: request.id,
            operation: request.operation,
            local: &[self.slice(request.at, request.len)],
            inline: request.inline,
            signaled: request.signaled,
            to: request.to.copied(),
        };
        // SAFETY: the slice lies in this memory, which is registered and outlives the queue pair.
        unsafe { device.post(qp, &work) }
    }

    #[inline]
    pub fn post_receive(
        &self,
        device: &mut dyn Device,
        queue: ReceiveQueue,
        at: usize,
        len: usize,
    ) -> Result<()> {
        // SAFETY: as for `post`.
        unsafe { device.post_receive(queue, 0, &[self.slice(at, len)]) }
    }

    /// Gives the memory back. To be called when no queue pair uses it any more.
    pub fn deregister(&mut self, device: &mut dyn Device) -> Result<()> {
        device.deregister(self.region)
    }

    /// A device may still use it: it is never freed.
    pub fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // SAFETY: allocated with this layout; no device uses it any more, or `keep` would have been called.
        unsafe { dealloc(self.bytes.as_ptr(), self.layout) };
    }
}
