//! One target of crate `fuzzed` under libFuzzer: the one that `FUZZ_TARGET` names. No allocation may be larger than
//! `FUZZ_ALLOCATION` bytes.

#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use fuzzed::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    fuzzed::target(&name).unwrap_or_else(|| panic!("FUZZ_TARGET={name}: there is no such target"))
});

/// The system's allocator, which ends the process for a piece of memory beyond the limit: libFuzzer then keeps the input. The limit
/// holds without AddressSanitizer, too.
struct Limited {
    most: AtomicUsize,
}

#[global_allocator]
static MEMORY: Limited = Limited { most: AtomicUsize::new(usize::MAX) };

impl Limited {
    fn check(&self, size: usize) {
        if size > self.most.load(Relaxed) {
            // The message itself needs memory.
            let most = self.most.swap(usize::MAX, Relaxed);
            eprintln!("an allocation of {size} bytes, for at most {most}");
            std::process::abort();
        }
    }
}

// SAFETY: each call goes to the system's allocator with its own arguments.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.check(layout.size());
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`; the memory is the system allocator's.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.check(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.check(size);
        // SAFETY: as in `dealloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

fuzz_target!(
    init: {
        if let Some(most) = std::env::var("FUZZ_ALLOCATION").ok().and_then(|bytes| bytes.parse().ok()) {
            MEMORY.most.store(most, Relaxed);
        }
    },
    |bytes: &[u8]| (TARGET.run)(bytes)
);
