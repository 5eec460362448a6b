//! A ring in shared memory, and the cells that the two rings of a pair have in common.

use std::cell::UnsafeCell;
use std::sync::Arc;

use datatype::Buffer;

use crate::cells::{CellSize, Cells, Half};
use crate::path_preference::PathPreference;
use crate::piece_counter::PieceCounter;
use crate::ring::{self, Arenas, Contents, INLINE, Memory, Which};
use crate::sync::{AtomicU32, AtomicU64};
use crate::{Fault, Head, Result};

pub(super) const PAGE: usize = 4096;
/// Bytes of the file reserved for one ring. They take memory only where the ring is used.
pub(super) const RING_ROOM: usize = 4 << 20;
/// Bytes reserved for the cells of a pair of ranks, at the end of the range of one of its rings.
pub(super) const CELLS_ROOM: usize =
    (CellSize::Long.bytes() + CellSize::Short.bytes()).next_multiple_of(PAGE);

/// The shape of every ring of a job, on which all ranks must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Number of slots of a ring, a power of two.
    pub(crate) slots: u32,
    /// Bytes of both arenas of a ring together.
    pub(crate) arena: usize,
}

impl Shape {
    /// The shape with `slots` rounded up to a power of two and `arena` rounded up to whole pages.
    ///
    /// # Errors
    /// A ring of that shape exceeds its range of the file, or `arena` is zero.
    pub(crate) fn new(slots: usize, arena: usize) -> Result<Shape> {
        let shape = Shape {
            slots: slots.clamp(4, 1 << 15).next_power_of_two() as u32,
            arena: arena.next_multiple_of(PAGE),
        };
        if shape.arena == 0 || shape.bytes() > RING_ROOM - CELLS_ROOM {
            return Err(Fault::Mismatch(format!(
                "a ring of {slots} slots and {arena} bytes does not fit: at least one byte, and at most {} bytes with its slots",
                RING_ROOM - CELLS_ROOM
            )).into());
        }
        Ok(shape)
    }

    /// Bytes of a ring: the page of the tail, the slots and the arenas.
    pub(super) fn bytes(&self) -> usize {
        PAGE + self.slots as usize * 64 + self.arena
    }

    /// The sizes of the two arenas.
    pub(crate) fn arenas(&self) -> Arenas {
        Arenas::of(self.arena)
    }
}

/// The cells of a pair of ranks in shared memory. They stay mapped as long as this value exists.
#[derive(Clone)]
pub(crate) struct CellMemory {
    base: *mut u8,
    _memory: Arc<dyn Send + Sync>,
}

impl CellMemory {
    /// The cells at `base`; `memory` keeps them mapped.
    ///
    /// # Safety
    /// The memory has [`CELLS_ROOM`] bytes, begins at a page, and is used as the cells of one pair
    /// only.
    pub(super) unsafe fn over(base: *mut u8, memory: Arc<dyn Send + Sync>) -> CellMemory {
        CellMemory {
            base,
            _memory: memory,
        }
    }
}

/// A ring in shared memory: one page with the tail and the piece counter, the slots, the arenas.
pub(crate) struct SharedRing {
    tail: *const AtomicU64,
    slots: *const Slot,
    /// The number of slots less one, for modulo by a bit mask.
    mask: u32,
    /// The addresses of the small arena, the wide arena, the short cells and the long cells.
    bases: [*mut u8; 4],
    arenas: Arenas,
    /// The cells that the sender owns at the start.
    first_cells: Cells,
    _memory: Arc<dyn Send + Sync>,
    cells: Option<CellMemory>,
}

// SAFETY: the pointers lead into memory that the value keeps mapped; the ring's protocol orders
// accesses.
unsafe impl Send for SharedRing {}

#[repr(C, align(64))]
pub(crate) struct Slot {
    flag: AtomicU32,
    contents: UnsafeCell<Contents>,
}

/// The offset of the receiver's preference in the first page of a ring, behind the tail; the
/// counter of cooperative copies follows.
const PREFERENCE_AT: usize = PAGE / 4;
const COUNTER_AT: usize = PAGE / 2;

const _: () = assert!(size_of::<Slot>() == 64 && COUNTER_AT + size_of::<PieceCounter>() <= PAGE);
const _: () = assert!(PREFERENCE_AT + size_of::<PathPreference>() <= COUNTER_AT);

impl SharedRing {
    /// The ring at `base`; `memory` keeps it mapped.
    ///
    /// # Safety
    /// The memory has the bytes of the shape, begins at a page, was zero at first, and is used as a
    /// ring only.
    pub(super) unsafe fn over(
        base: *mut u8,
        shape: Shape,
        memory: Arc<dyn Send + Sync>,
    ) -> SharedRing {
        let arenas = shape.arenas();
        // SAFETY: the memory holds a page, the slots, the arenas, by the caller's promise.
        let (slots, bases) = unsafe {
            let slots = base.add(PAGE);
            let small = slots.add(shape.slots as usize * 64);
            let wide = small.add(arenas.len(Which::Small));
            let none = std::ptr::null_mut();
            (slots.cast(), [small, wide, none, none])
        };
        SharedRing {
            tail: base.cast(),
            slots,
            mask: shape.slots - 1,
            bases,
            arenas,
            first_cells: Cells::default(),
            _memory: memory,
            cells: None,
        }
    }

    /// Adds the cells of the pair of ranks, of which the sender owns `half` at the start.
    pub(super) fn with_cells(self, cells: CellMemory, half: Half) -> SharedRing {
        let [small, wide, ..] = self.bases;
        // SAFETY: the memory holds the cells of both sizes.
        let short = unsafe { cells.base.add(CellSize::Long.bytes()) };
        SharedRing {
            bases: [small, wide, short, cells.base],
            arenas: self.arenas.with_cells(),
            first_cells: Cells::of(half),
            cells: Some(cells),
            ..self
        }
    }

    /// The cells of this ring's pair of ranks; `None` for a ring without cells.
    pub(crate) fn cell_memory(&self) -> Option<CellMemory> {
        self.cells.clone()
    }

    /// The piece counter of cooperative copies from this ring's sender to its receiver.
    pub(crate) fn piece_counter(&self) -> &PieceCounter {
        // SAFETY: the first page of the mapping holds the counter there, which is all atomics and
        // aligned.
        unsafe { &*self.tail.byte_add(COUNTER_AT).cast::<PieceCounter>() }
    }

    /// The word by which this ring's receiver informs the sender which path messages should take.
    pub(crate) fn preference(&self) -> &PathPreference {
        // SAFETY: the first page of the mapping holds the word there, which is an atomic and
        // aligned.
        unsafe { &*self.tail.byte_add(PREFERENCE_AT).cast::<PathPreference>() }
    }
}

impl Memory for SharedRing {
    type Slot = Slot;

    #[inline(always)]
    fn slots(&self) -> u32 {
        self.mask + 1
    }

    #[inline(always)]
    fn arenas(&self) -> Arenas {
        self.arenas
    }

    fn first_cells(&self) -> Cells {
        self.first_cells
    }

    #[inline(always)]
    fn tail(&self) -> &AtomicU64 {
        // SAFETY: within the mapping, which lives as long as we do.
        unsafe { &*self.tail }
    }

    #[inline(always)]
    fn slot(&self, packets: u32) -> &Slot {
        // SAFETY: the number of slots is a power of two, so the masked index is in range; a slot is
        // an atomic and a cell.
        unsafe { &*self.slots.add((packets & self.mask) as usize) }
    }

    #[cfg(not(test))]
    fn now() -> u64 {
        crate::now()
    }

    #[cfg(test)]
    fn now() -> u64 {
        ring::test_clock::now()
    }

    #[cold]
    fn own_copy() -> u64 {
        const LEN: usize = 8 << 10;
        let (mut from, mut to) = ([1; LEN], [0; LEN]);
        // SAFETY: the bytes are ours, and stay as long as the buffer.
        let buffer = unsafe { Buffer::dense(from.as_mut_ptr(), LEN) };
        // The first copy fills the caches; the shortest is one without an interruption.
        let times = (0..4).map(|_| {
            let begun = Self::now();
            buffer.pack(0, std::hint::black_box(&mut to));
            Self::now().saturating_sub(begun)
        });
        times.min().unwrap_or(0) * 1000 / LEN as u64
    }

    #[inline(always)]
    fn arena<R>(
        &self,
        which: Which,
        offset: usize,
        len: usize,
        access: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        assert!(offset + len <= self.arenas.len(which));
        let base = self.bases[which as usize];
        // SAFETY: within the arena or the cells, as asserted; flag and tail order accesses as for
        // slots, and bytes have no invalid values.
        access(unsafe { std::slice::from_raw_parts_mut(base.add(offset), len) })
    }

    #[inline(always)]
    fn body<R>(
        &self,
        slot: &Slot,
        at: Option<(Which, usize)>,
        len: usize,
        access: impl FnOnce(&[u8]) -> R,
    ) -> R {
        let start = match at {
            None => {
                assert!(len <= INLINE);
                // SAFETY: an address within the slot; nothing is read yet.
                unsafe { (&raw const (*slot.contents.get()).inline).cast::<u8>() }
            }
            Some((which, offset)) => {
                assert!(offset + len <= self.arenas.len(which));
                // SAFETY: within the arena or the cells.
                unsafe { self.bases[which as usize].add(offset) }
            }
        };
        // SAFETY: within the slot's bytes, the arena or the cells, as asserted; flag and tail order
        // accesses as for slots.
        access(unsafe { std::slice::from_raw_parts(start, len) })
    }
}

impl ring::Slot for Slot {
    #[inline(always)]
    fn flag(&self) -> &AtomicU32 {
        &self.flag
    }

    #[inline(always)]
    fn write(&self, head: Head, len: usize, inline: usize, fill: impl FnOnce(&mut [u8])) {
        // SAFETY: as for `contents`.
        unsafe { (*self.contents.get()).write(head, len, inline, fill) }
    }

    #[inline(always)]
    fn contents<R>(&self, access: impl FnOnce(&mut Contents) -> R) -> R {
        // SAFETY: flag and tail give access to sender and receiver alternately, so a correct peer
        // does not access it now. Any bit pattern is a valid `Contents`.
        access(unsafe { &mut *self.contents.get() })
    }

    #[inline(always)]
    fn will_be_written(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch never faults.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) self, options(nostack, preserves_flags))
        };
    }
}
