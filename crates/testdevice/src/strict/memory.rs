//! Accesses to registered memory as a device makes them: concurrent with the processor's. Loads
//! acquire and stores release, so whoever sees a store also sees what its writer had seen.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Reads `len` bytes at `address`.
///
/// # Safety
/// The memory must be registered, and must stay allocated meanwhile.
pub(super) unsafe fn load(address: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut at = 0;
    while at < len {
        let from = address + at as u64;
        if from.is_multiple_of(8) && len - at >= 8 {
            // SAFETY: inside the memory, by the caller's promise, and aligned.
            let word = unsafe { &*(from as usize as *const AtomicU64) }.load(Ordering::Acquire);
            bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
            at += 8;
        } else {
            // SAFETY: inside the memory, by the caller's promise.
            bytes[at] = unsafe { &*(from as usize as *const AtomicU8) }.load(Ordering::Acquire);
            at += 1;
        }
    }
    bytes
}

/// Writes bytes in the order of their addresses.
///
/// # Safety
/// The memory must be registered, and must stay allocated meanwhile.
pub(super) unsafe fn store(address: u64, bytes: &[u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let to = address + at as u64;
        if to.is_multiple_of(8) && bytes.len() - at >= 8 {
            let word = u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
            // SAFETY: inside the memory, by the caller's promise, and aligned.
            unsafe { &*(to as usize as *const AtomicU64) }.store(word, Ordering::Release);
            at += 8;
        } else {
            // SAFETY: inside the memory, by the caller's promise.
            unsafe { store_one(to, bytes[at]) };
            at += 1;
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
