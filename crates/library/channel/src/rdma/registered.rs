//! Memory that this rank and its devices access concurrently: the rings, and the buffers of
//! messages.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use device::{Access, Node, Region, Slice};

use super::rail_set::{KeyPair, RailKeys, RailSet};
use crate::Result;

const PAGE: usize = 4096;

/// Page-aligned bytes at an address that does not change. The ring's protocol decides who may
/// access which bytes when.
pub(super) struct Block {
    base: *mut u8,
    layout: Layout,
}

// SAFETY: the block owns its memory.
unsafe impl Send for Block {}

impl Block {
    pub(super) fn new(bytes: usize) -> Block {
        assert!(bytes > 0);
        let layout = Layout::from_size_align(bytes.next_multiple_of(PAGE), PAGE)
            .expect("a size that memory can have");
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // Anonymous pages: zeroes that take no memory until they are written to. Most of a ring
        // never is. SAFETY: a new mapping at an address that the kernel chooses.
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

    pub(super) fn base(&self) -> *mut u8 {
        self.base
    }

    pub(super) fn len(&self) -> usize {
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

    /// Reads a word that the peer's device may be writing.
    #[inline(always)]
    pub(super) fn load(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// Writes a word that this rank's device may be reading.
    #[inline(always)]
    pub(super) fn store(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Bytes that no device writes to: those of a packet that has arrived and is not released.
    #[inline(always)]
    pub(super) fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        // SAFETY: in bounds; the peer writes here only after it has learned that the packet is
        // consumed.
        unsafe { std::slice::from_raw_parts(self.at(offset, len), len) }
    }

    /// Bytes that no device reads: those of a slot whose packet is not posted.
    #[inline(always)]
    pub(super) fn bytes_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        // SAFETY: in bounds; the device reads a slot only between post and completion, and this
        // rank does not write to it then.
        unsafe { std::slice::from_raw_parts_mut(self.at(offset, len), len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: mapped with this layout. The owner has deregistered the block.
        unsafe { libc::munmap(self.base.cast(), self.layout.size()) };
    }
}

/// A block that is registered on one or several rails, once for each protection domain.
pub(super) struct Registered {
    pub block: Block,
    pub keys: RailKeys,
    /// The rails whose devices have registered the block, one of each protection domain.
    registrars: RailSet,
}

impl Registered {
    /// Allocates a block of `bytes` bytes, registered on each of `rails`.
    pub(super) fn new(
        node: &mut dyn Node,
        rails: RailSet,
        bytes: usize,
        access: Access,
    ) -> Result<Registered> {
        let mut registered = Registered {
            block: Block::new(bytes),
            keys: RailKeys::default(),
            registrars: RailSet::default(),
        };
        for rail in rails.iter() {
            let domain = node.rail(rail).attributes().domain;
            let mut registrars = registered.registrars.iter();
            if let Some(other) =
                registrars.find(|&rail| node.rail(rail).attributes().domain == domain)
            {
                registered.keys.insert(rail, registered.keys.on(other));
                continue;
            }
            let block = &registered.block;
            // SAFETY: the block stays until it is deregistered. Memory that the peer writes to is
            // read as atomics, or not at all while it may be written to.
            let region = unsafe { node.rail(rail).register(block.base(), block.len(), access) };
            match region {
                Ok(Region { lkey, rkey, .. }) => {
                    registered.keys.insert(rail, KeyPair { lkey, rkey });
                    registered.registrars = registered.registrars.with(rail);
                }
                Err(error) => {
                    registered.end(node);
                    return Err(error.into());
                }
            }
        }
        Ok(registered)
    }

    /// The address of the block in work requests of this rank and of peers.
    #[inline(always)]
    pub(super) fn address(&self) -> u64 {
        self.block.base() as u64
    }

    /// A part of the block, for a work request on `rail`.
    #[inline(always)]
    pub(super) fn slice(&self, rail: usize, range: Range<usize>) -> Slice {
        Slice {
            address: self.address() + range.start as u64,
            len: range.len() as u32,
            lkey: self.keys.on(rail).lkey,
        }
    }

    /// Deregisters and frees the block. The queue pairs that used it are gone.
    pub(super) fn end(self, node: &mut dyn Node) {
        for rail in self.registrars.iter() {
            let KeyPair { lkey, rkey } = self.keys.on(rail);
            let region = Region {
                address: self.address(),
                len: self.block.len() as u64,
                lkey,
                rkey,
            };
            // A device's error no longer matters.
            let _ = node.rail(rail).deregister(region);
        }
    }
}
