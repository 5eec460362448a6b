//! The registered memory of messages, and all `unsafe` of this crate: registering memory, and
//! posting work requests on parts of it.
//!
//! Invariant: the memory stays allocated for as long as the device may access it. A [`Memory`] is
//! freed only after its owner has destroyed the queue pairs that use it. No reference to the memory
//! is ever made, because the device and the other side may change it at any time.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use device::{Access, Device, Error, Operation, Qp, ReceiveQueue, Region, Result, Slice, Work};

const PAGE: usize = 4096;

/// Registered memory in whole pages, initialized to zero.
pub(crate) struct Memory {
    bytes: NonNull<u8>,
    layout: Layout,
    region: Region,
    kept: bool,
}

/// A work request whose local buffer is a part of the memory.
pub(crate) struct Request<'a> {
    pub(crate) id: u64,
    pub(crate) operation: Operation,
    pub(crate) at: usize,
    pub(crate) len: usize,
    pub(crate) inline: bool,
    pub(crate) signaled: bool,
    pub(crate) to: Option<&'a device::Address>,
}

impl Memory {
    pub(crate) fn new(device: &mut dyn Device, len: usize) -> Result<Memory> {
        let layout = Layout::from_size_align(len.max(1).next_multiple_of(PAGE), PAGE)
            .map_err(|_| Error::Invalid(format!("{len} bytes of memory")))?;
        // SAFETY: the layout is of at least a page.
        let bytes = unsafe { alloc_zeroed(layout) };
        let Some(bytes) = NonNull::new(bytes) else {
            handle_alloc_error(layout)
        };
        // SAFETY: the memory is freed when this value is dropped, after the queue pairs that use
        // it, and is accessed only by volatile loads and stores.
        let region = unsafe { device.register(bytes.as_ptr(), layout.size(), Access::ALL) };
        match region {
            Ok(region) => Ok(Memory {
                bytes,
                layout,
                region,
                kept: false,
            }),
            Err(why) => {
                // SAFETY: allocated above with this layout; the device refused it.
                unsafe { dealloc(bytes.as_ptr(), layout) };
                Err(why)
            }
        }
    }

    pub(crate) fn region(&self) -> Region {
        self.region
    }

    /// Loads the byte at an offset.
    #[inline]
    pub(crate) fn byte(&self, at: usize) -> u8 {
        assert!(at < self.layout.size());
        // SAFETY: inside the memory; volatile, because a device may write it at the same time.
        unsafe { self.bytes.as_ptr().add(at).read_volatile() }
    }

    #[inline]
    pub(crate) fn set_byte(&mut self, at: usize, value: u8) {
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
    pub(crate) fn post(&self, device: &mut dyn Device, qp: Qp, request: &Request) -> Result<()> {
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
    pub(crate) fn post_receive(
        &self,
        device: &mut dyn Device,
        queue: ReceiveQueue,
        at: usize,
        len: usize,
    ) -> Result<()> {
        // SAFETY: as for `post`.
        unsafe { device.post_receive(queue, 0, &[self.slice(at, len)]) }
    }

    /// Deregisters the memory. The caller must have destroyed all queue pairs that use it.
    pub(crate) fn deregister(&mut self, device: &mut dyn Device) -> Result<()> {
        device.deregister(self.region)
    }

    /// Marks the memory as never to be freed, because a device may still access it.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // SAFETY: allocated with this layout; no device uses it any more, or `keep` would have been
        // called.
        unsafe { dealloc(self.bytes.as_ptr(), self.layout) };
    }
}
