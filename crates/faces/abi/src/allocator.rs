//! The allocator of the library: that of the C library, with one clear line of text if memory runs
//! out.
//!
//! Invariant: the report of a refusal allocates nothing and takes no lock. No code of the library
//! can continue without memory that it requested, so a refusal ends the process. Memory for users
//! (`procedures::memory`) and memory whose length a peer chooses (`datatype::granted`) come from
//! the C library itself and may be refused.

use crate::constants::MPI_ERR_NO_MEM;
use crate::state::LIBRARY;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: every call is passed on to the system's allocator, which keeps these promises.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        granted(unsafe { System.realloc(memory, layout, size) }, size)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline(always)]
fn granted(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        refused(bytes);
    }
    memory
}

/// Ends the process: the system refused this many bytes for the library.
#[cold]
fn refused(bytes: usize) -> ! {
    let mut text = [0u8; 256];
    let mut rest = &mut text[..];
    // A line of at most 200 bytes fits.
    let _ = write!(rest, "fishplate: ");
    if let Some(rank) = LIBRARY.rank() {
        let _ = write!(rest, "rank {}: ", rank.rank());
    }
    let _ = writeln!(
        rest,
        "out of memory: the system refused {bytes} bytes for the library; see the limits of the process (ulimit -v, \
         ulimit -d) and of its group (memory.max)"
    );
    let length = 256 - rest.len();
    // SAFETY: the bytes are a local array; `_exit` runs no handler, which could request memory
    // again.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), length);
        libc::_exit(MPI_ERR_NO_MEM)
    }
}
