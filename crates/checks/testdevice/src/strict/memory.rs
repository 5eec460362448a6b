//! Accesses to registered memory as a device makes them: concurrent with the processor's. Loads
//! acquire and stores release: a reader that sees a store also sees what its writer had seen.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use device::Slice;

/// Reads `len` bytes at `address`.
///
/// # Safety
/// The memory must be registered, and must stay allocated meanwhile.
pub(super) unsafe fn load(address: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let from = address + bytes.len() as u64;
        if from.is_multiple_of(8) && len - bytes.len() >= 8 {
            // SAFETY: inside the memory, by the caller's promise, and aligned.
            let word = unsafe { &*(from as usize as *const AtomicU64) }.load(Ordering::Acquire);
            bytes.extend_from_slice(&word.to_ne_bytes());
        } else {
            // SAFETY: inside the memory, by the caller's promise.
            bytes.push(unsafe { &*(from as usize as *const AtomicU8) }.load(Ordering::Acquire));
        }
    }
    bytes
}

/// Writes bytes in the order of their addresses.
///
/// # Safety
/// The memory must be registered, and must stay allocated meanwhile.
pub(super) unsafe fn store(address: u64, bytes: &[u8]) {
    let (mut to, mut left) = (address, bytes);
    while let Some((&byte, after)) = left.split_first() {
        if to.is_multiple_of(8)
            && let Some((word, after)) = left.split_first_chunk::<8>()
        {
            let word = u64::from_ne_bytes(*word);
            // SAFETY: inside the memory, by the caller's promise, and aligned.
            unsafe { &*(to as usize as *const AtomicU64) }.store(word, Ordering::Release);
            (to, left) = (to + 8, after);
        } else {
            // SAFETY: inside the memory, by the caller's promise.
            unsafe { store_one(to, byte) };
            (to, left) = (to + 1, after);
        }
    }
}

/// Writes one byte.
///
/// # Safety
/// The memory must be registered, and must stay allocated meanwhile.
pub(super) unsafe fn store_one(address: u64, byte: u8) {
    // SAFETY: inside the memory, by the caller's promise.
    unsafe { &*(address as usize as *const AtomicU8) }.store(byte, Ordering::Release);
}

/// Writes bytes to the slices in order, as far as they fit. Returns false if they do not.
pub(super) fn scatter(to: &[Slice], bytes: &[u8]) -> bool {
    let mut rest = bytes;
    for slice in to {
        let (now, later) = rest.split_at(rest.len().min(slice.len as usize));
        // SAFETY: registered memory that its owner has posted for this.
        unsafe { store(slice.address, now) };
        rest = later;
    }
    rest.is_empty()
}
