//! Memory of this process instead of the job's file, for tests: Miri, or the fuzzer's sanitizer,
//! checks every access to it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::Arc;

#[cfg(test)]
use super::shared_ring::{CELLS_ROOM, CellMemory};
use super::shared_ring::{Shape, SharedRing};
#[cfg(test)]
use crate::cells::Half;

const PAGE: usize = 4096;

/// Zeroed memory aligned to a page.
pub(crate) struct Heap {
    base: *mut u8,
    layout: Layout,
}

// SAFETY: the memory is plain bytes; its users order their accesses.
unsafe impl Send for Heap {}
// SAFETY: as for `Send`.
unsafe impl Sync for Heap {}

impl Heap {
    /// Allocates `len` bytes of zeroed memory; `len` is not zero.
    pub(crate) fn new(len: usize) -> Arc<Heap> {
        let layout = Layout::from_size_align(len, PAGE).unwrap();
        assert!(len > 0);
        // SAFETY: the layout has bytes, as asserted.
        let base = unsafe { alloc_zeroed(layout) };
        assert!(!base.is_null());
        Arc::new(Heap { base, layout })
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout.
        unsafe { dealloc(self.base, self.layout) };
    }
}

/// The two rings of a pair of ranks with their cells, each as two mappings: the sender's and the
/// receiver's.
#[cfg(test)]
pub(crate) fn pair(shape: Shape) -> [(SharedRing, SharedRing); 2] {
    let heap = Heap::new(CELLS_ROOM);
    // SAFETY: the memory has these bytes, is kept, and serves this pair only.
    let cells = unsafe { CellMemory::over(heap.base(), heap.clone()) };
    [Half::First, Half::Second].map(|half| {
        let (sending, receiving) = ring(shape);
        let end = |ring: SharedRing| ring.with_cells(cells.clone(), half);
        (end(sending), end(receiving))
    })
}

/// One ring without cells: the sender's and the receiver's mapping of it.
pub(crate) fn ring(shape: Shape) -> (SharedRing, SharedRing) {
    let heap = Heap::new(shape.bytes());
    // SAFETY: the memory is zeroed, as long as the shape says, and kept by both.
    let end = || unsafe { SharedRing::over(heap.base(), shape, heap.clone()) };
    (end(), end())
}
