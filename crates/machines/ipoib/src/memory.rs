//! The kernel's packet buffers, with all `unsafe` of this crate: the registration of memory, and
//! the posting of work requests on it.
//!
//! Invariant: the memory is freed after the rank that owns it has left the machine, which ends the
//! device's access.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use device::{
    Access, Address, Device, Error, Operation, Qp, ReceiveQueue, Region, Result, Slice, Work,
};

const PAGE: usize = 4096;

/// Registered buffers of equal length for packets.
pub(crate) struct Buffers {
    bytes: NonNull<u8>,
    layout: Layout,
    region: Region,
    len: usize,
}

impl Buffers {
    pub(crate) fn new(device: &mut dyn Device, count: usize, len: usize) -> Result<Buffers> {
        let layout = count
            .checked_mul(len)
            .and_then(|size| Layout::from_size_align(size.max(1), PAGE).ok())
            .ok_or_else(|| Error::Invalid(format!("{count} buffers of {len} bytes")))?;
        // SAFETY: the layout is not empty.
        let bytes = unsafe { alloc_zeroed(layout) };
        let Some(bytes) = NonNull::new(bytes) else {
            handle_alloc_error(layout)
        };
        // SAFETY: the memory is freed with this value, after its owner's access to the machine has
        // ended, and is accessed only between a completion and the next post.
        let region = unsafe { device.register(bytes.as_ptr(), layout.size(), Access::ALL) };
        match region {
            Ok(region) => Ok(Buffers {
                bytes,
                layout,
                region,
                len,
            }),
            Err(why) => {
                // SAFETY: allocated above with this layout; the device refused it.
                unsafe { dealloc(bytes.as_ptr(), layout) };
                Err(why)
            }
        }
    }

    fn slice(&self, buffer: usize, len: usize) -> Slice {
        assert!(len <= self.len && (buffer + 1) * self.len <= self.layout.size());
        Slice {
            address: self.region.address + (buffer * self.len) as u64,
            len: len as u32,
            lkey: self.region.lkey,
        }
    }

    /// Copies two parts, one after the other, to a buffer that no request uses, and posts the
    /// buffer as a send.
    pub(crate) fn send(
        &mut self,
        device: &mut dyn Device,
        qp: Qp,
        to: Option<Address>,
        buffer: usize,
        parts: [&[u8]; 2],
    ) -> Result<()> {
        let slice = self.slice(buffer, parts[0].len() + parts[1].len());
        let mut at = buffer * self.len;
        for part in parts {
            // SAFETY: `slice` has checked the bounds, and nothing else accesses the buffer now.
            unsafe {
                let target = self.bytes.as_ptr().add(at);
                std::ptr::copy_nonoverlapping(part.as_ptr(), target, part.len());
            }
            at += part.len();
        }
        let work = Work {
            id: buffer as u64,
            operation: Operation::Send { immediate: None },
            local: &[slice],
            inline: false,
            signaled: true,
            to,
        };
        // SAFETY: the buffer is registered, and stays as it is until the completion.
        unsafe { device.post(qp, &work) }
    }

    /// Posts a buffer as a receive for one packet.
    pub(crate) fn receive(
        &self,
        device: &mut dyn Device,
        queue: ReceiveQueue,
        buffer: usize,
    ) -> Result<()> {
        // SAFETY: the buffer is registered, and is read only after the completion.
        unsafe { device.post_receive(queue, buffer as u64, &[self.slice(buffer, self.len)]) }
    }

    /// A copy of the first `len` bytes of a buffer that no request uses.
    pub(crate) fn read(&self, buffer: usize, len: usize) -> Vec<u8> {
        let slice = self.slice(buffer, len);
        let from = buffer * self.len;
        // SAFETY: `slice` has checked the bounds, and the device has completed its write.
        let bytes = unsafe {
            std::slice::from_raw_parts(self.bytes.as_ptr().add(from), slice.len as usize)
        };
        bytes.to_vec()
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; see the invariant of this module.
        unsafe { dealloc(self.bytes.as_ptr(), self.layout) };
    }
}
