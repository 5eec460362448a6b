//! Copies between a user's buffer and packed memory during a walk over a layout. The caller
//! promises that the addresses are valid.

use crate::double::{Primitive, has_copied};
use crate::memcpy::LINE;
use crate::walk::{Flow, Visit};
use std::ptr;

/// A visitor that copies the runs of a walk to packed memory.
pub(crate) struct Pack {
    to: *mut u8,
}

/// A visitor that copies packed memory to the runs of a walk.
pub(crate) struct Unpack {
    from: *const u8,
}

impl Pack {
    /// A visitor that writes packed bytes from `to` on.
    ///
    /// # Safety
    /// Every address visited is readable, and `to` has room for all bytes visited.
    pub(crate) unsafe fn new(to: *mut u8) -> Pack {
        Pack { to }
    }
}

impl Unpack {
    /// A visitor that reads packed bytes from `from` on.
    ///
    /// # Safety
    /// Every address visited is writable, and `from` holds as many bytes as are visited.
    pub(crate) unsafe fn new(from: *const u8) -> Unpack {
        Unpack { from }
    }
}

impl Visit for Pack {
    #[inline]
    fn run(&mut self, address: usize, len: usize) -> Flow {
        // SAFETY: `new` was promised that both sides are valid for `len` bytes.
        unsafe {
            copy_short(ptr::with_exposed_provenance(address), self.to, len);
            self.to = self.to.add(len);
        }
        Flow::Continue(())
    }

    fn strided(&mut self, address: usize, stride: isize, block: usize, count: usize) -> Flow {
        let from: *const u8 = ptr::with_exposed_provenance(address);
        let at = |i: usize| from.wrapping_offset(stride.wrapping_mul(i as isize));
        // SAFETY: `new` was promised that each block is readable and `to` has room for all.
        unsafe {
            match block {
                1 => gather::<1>(at, self.to, count),
                2 => gather::<2>(at, self.to, count),
                4 => gather::<4>(at, self.to, count),
                8 => gather::<8>(at, self.to, count),
                12 => gather::<12>(at, self.to, count),
                16 => gather::<16>(at, self.to, count),
                24 => gather::<24>(at, self.to, count),
                32 => gather::<32>(at, self.to, count),
                _ => {
                    for i in 0..count {
                        copy_short(at(i), self.to.add(i * block), block);
                    }
                }
            }
            self.to = self.to.add(count * block);
        }
        Flow::Continue(())
    }

    fn scattered(&mut self, base: usize, offsets: &[isize], block: usize) -> Flow {
        let from: *const u8 = ptr::with_exposed_provenance(base);
        let at = |i: usize| from.wrapping_offset(offsets[i]);
        let count = offsets.len();
        // SAFETY: `new` was promised that each visited block and the packed side are valid.
        unsafe {
            match block {
                4 => gather::<4>(at, self.to, count),
                8 => gather::<8>(at, self.to, count),
                16 => gather::<16>(at, self.to, count),
                24 => gather::<24>(at, self.to, count),
                _ => {
                    for i in 0..count {
                        copy_short(at(i), self.to.add(i * block), block);
                    }
                }
            }
            self.to = self.to.add(count * block);
        }
        Flow::Continue(())
    }
}

impl Visit for Unpack {
    #[inline]
    fn run(&mut self, address: usize, len: usize) -> Flow {
        // SAFETY: `new` was promised that both sides are valid for `len` bytes.
        unsafe {
            copy_short(self.from, ptr::with_exposed_provenance_mut(address), len);
            self.from = self.from.add(len);
        }
        Flow::Continue(())
    }

    fn strided(&mut self, address: usize, stride: isize, block: usize, count: usize) -> Flow {
        let to: *mut u8 = ptr::with_exposed_provenance_mut(address);
        let at = |i: usize| to.wrapping_offset(stride.wrapping_mul(i as isize));
        // SAFETY: `new` was promised that each block is writable and `from` holds all bytes.
        unsafe {
            match block {
                1 => scatter::<1>(self.from, at, count),
                2 => scatter::<2>(self.from, at, count),
                4 => scatter::<4>(self.from, at, count),
                8 => scatter::<8>(self.from, at, count),
                12 => scatter::<12>(self.from, at, count),
                16 => scatter::<16>(self.from, at, count),
                24 => scatter::<24>(self.from, at, count),
                32 => scatter::<32>(self.from, at, count),
                _ => {
                    for i in 0..count {
                        copy_short(self.from.add(i * block), at(i), block);
                    }
                }
            }
            self.from = self.from.add(count * block);
        }
        Flow::Continue(())
    }

    fn scattered(&mut self, base: usize, offsets: &[isize], block: usize) -> Flow {
        let to: *mut u8 = ptr::with_exposed_provenance_mut(base);
        let at = |i: usize| to.wrapping_offset(offsets[i]);
        let count = offsets.len();
        // SAFETY: `new` was promised that each visited block and the packed side are valid.
        unsafe {
            match block {
                4 => scatter::<4>(self.from, at, count),
                8 => scatter::<8>(self.from, at, count),
                16 => scatter::<16>(self.from, at, count),
                24 => scatter::<24>(self.from, at, count),
                _ => {
                    for i in 0..count {
                        copy_short(self.from.add(i * block), at(i), block);
                    }
                }
            }
            self.from = self.from.add(count * block);
        }
        Flow::Continue(())
    }
}

/// Copies `count` blocks of N bytes, a size known to the compiler, from any addresses to packed
/// memory.
///
/// # Safety
/// `at(i)` is readable for N bytes for each i below `count`; `to` has room for `count * N`.
#[inline(always)]
unsafe fn gather<const N: usize>(at: impl Fn(usize) -> *const u8, to: *mut u8, count: usize) {
    for i in 0..count {
        // SAFETY: the caller promises N bytes at each block, and all of them on the packed side.
        unsafe {
            to.add(i * N)
                .cast::<[u8; N]>()
                .write(at(i).cast::<[u8; N]>().read())
        };
    }
}

/// Copies `count` blocks of N bytes, a size known to the compiler, from packed memory to any
/// addresses.
///
/// # Safety
/// `at(i)` is writable for N bytes for each i below `count`; `from` holds `count * N`.
#[inline(always)]
unsafe fn scatter<const N: usize>(from: *const u8, at: impl Fn(usize) -> *mut u8, count: usize) {
    for i in 0..count {
        // SAFETY: the caller promises N bytes at each block, and all of them on the packed side.
        unsafe {
            at(i)
                .cast::<[u8; N]>()
                .write(from.add(i * N).cast::<[u8; N]>().read())
        };
    }
}

/// A copy that is inline for the sizes of basic types.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
#[inline(always)]
unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller promises `len` bytes on both sides; arrays of bytes need no alignment.
    unsafe {
        match len {
            4 => to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()),
            8 => to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
            16 => to.cast::<[u8; 16]>().write(from.cast::<[u8; 16]>().read()),
            _ if len > LINE && has_copied(Primitive::String, from, to, len) => {}
            _ => ptr::copy_nonoverlapping(from, to, len),
        }
    }
}
